"""Hypothesis strategies for what agents may send: any JSON object, with text as nasty as it gets.

Invariant: everything drawn is what a JSON reader can return. Must not know any game; the words of one
may be mixed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hypothesis import strategies as st

from cogeval.core.game import Json

NASTY_TEXT: Final = (
    "",
    " ",
    "\x00",
    "\r\n\t",
    "\u00a0\u2003",  # blanks that are not ASCII
    "\u2212\u2013\u2014",  # dashes that are not hyphens
    "\u0130\u212a\u03a3\u00df\ufb01",  # letters that change their number or shape with their case
    "e\u0301\u200d\u200f\ufeff",  # combining, joining, direction and byte-order marks
    "\ud800",  # half a surrogate pair, which a JSON reader lets through
    "\U0001f9ea" * 3,
    "\u0663\u00b2\uff13",  # digits that are not 0-9
    "-1",
    "007",
    "9" * 40,
    "1e999",
    "NaN",
    "null",
    '{"action": "pass"}',
    "'; drop table seats; --",
    "%s%n{0}{}",
    "x" * 5_000,
)


def nasty_text(words: Iterable[str] = ()) -> st.SearchStrategy[str]:
    """Text: arbitrary, from `NASTY_TEXT`, or made of a game's own words.

    Args:
        words: that mean something to the game.
    """
    known = st.sampled_from([*words, *NASTY_TEXT])
    return st.one_of(st.text(max_size=40), known, st.lists(known, max_size=4).map("".join))


def json_values(words: Iterable[str] = ()) -> st.SearchStrategy[Json]:
    """Any JSON value, big integers and non-finite floats included, as Python's reader returns them."""
    words = tuple(words)
    leaves = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), nasty_text(words), st.just(10**400)
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(nasty_text(words), inner, max_size=3),
        max_leaves=6,
    )


def replies(fields: Iterable[str] = (), words: Iterable[str] = ()) -> st.SearchStrategy[Mapping[str, Json]]:
    """A reply object: any fields, the known ones more often than others.

    Args:
        fields: that the game reads.
        words: that mean something to the game, for their values.
    """
    fields, words = tuple(fields), tuple(words)
    known = st.fixed_dictionaries({}, optional={name: json_values(words) for name in fields})
    texts = st.fixed_dictionaries({}, optional={name: nasty_text(words) for name in fields})
    other = st.dictionaries(nasty_text((*fields, *words)), json_values(words), max_size=4)
    return st.one_of(known, texts, other, st.builds(lambda a, b: {**a, **b}, known, other))
