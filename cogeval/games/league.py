"""What the two games of the hosted league share: the cogs' names and how their texts are trimmed.

Invariant: a function of its arguments; whitespace is that of the league's own language, not Python's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogeval.core.rng import NimStream

ALIASES: Final = (
    "Sprocket",
    "Gizmo",
    "Ratchet",
    "Widget",
    "Bolt",
    "Piston",
    "Flywheel",
    "Rivet",
    "Tinker",
    "Gasket",
)

# What the generator's language strips; Python's own strip also takes the separators 1C..1F.
BLANKS: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


def seated_aliases(seed: int, seats: int) -> tuple[str, ...]:
    """The alias of each seat of an episode."""
    aliases = list(ALIASES)
    NimStream(seed * 6779 + 31).shuffle(aliases)
    return tuple(aliases[:seats])


def encodable(text: str) -> str:
    """The text with "?" for every lone surrogate, so that prompts, wires and files can hold it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def trimmed(text: str) -> str:
    """The text as it is stored: encodable, without blanks at its ends."""
    return encodable(text).strip(BLANKS)


def reply_field(reply: Mapping[str, object], name: str, cap: int) -> str:
    """A text field of a model's reply: trimmed, then cut to `cap` code points with an ellipsis.

    What is absent or no text reads as "".
    """
    value = reply.get(name)
    if not isinstance(value, str):
        return ""
    text = trimmed(value)
    return text if len(text) <= cap else text[: cap - 1] + "…"
