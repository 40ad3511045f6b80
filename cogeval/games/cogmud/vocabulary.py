"""The words that the town understands: verbs with their guards, names of things, numbers.

Invariant: tables, fixed by the rules; a word that is in none of them is passed over. Must not know how a
sentence is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from cogeval.games.cogmud.words import words
from cogeval.games.cogmud.world import EVERYTHING, GOODS, KEEPERS, ROOMS
from cogeval.games.league import ALIASES

Guard: TypeAlias = Literal[
    "always",
    "room",  # a room is named
    "good, no room",  # a good is named and no room
    "keeper",  # a keeper is named
    "keeper or cog",  # the speaker counts
    "another cog",  # the first alias is not the speaker's
    "offer",  # one of OFFER_WORDS occurs
    "next for",  # the next word is "for"
    "pocket later",  # one of POCKETS comes after it
    "purse later",  # one of PURSES comes after it
    "down soon",  # within three words
    "in or over soon",
    "nothing soon",
]
"""What must hold for a verb to have a meaning (R3.3)."""

_VERBS: Final[tuple[tuple[str, tuple[tuple[Guard, str], ...]], ...]] = (
    (
        "go goes going walk walks head heads move travel run ride enter cross return wander",
        (("always", "move"),),
    ),
    ("slip off", (("room", "move"),)),
    ("make", (("next for", "move"),)),
    ("leave", (("good, no room", "drop"), ("always", "move"))),
    ("take takes", (("offer", "accept"), ("always", "take"))),
    ("pick", (("pocket later", "rob"), ("always", "take"))),
    ("picks grab collect scoop pocket", (("always", "take"),)),
    ("lift", (("another cog", "rob"), ("always", "take"))),
    ("drop drops put discard", (("always", "drop"),)),
    ("set", (("down soon", "drop"),)),
    ("buy buys purchase acquire", (("always", "buy"),)),
    ("pay", (("another cog", "give"), ("always", "buy"))),
    ("sell sells offload unload flog", (("always", "sell"),)),
    ("give gives hand hands deliver delivers present donate", (("always", "give"),)),
    ("turn", (("in or over soon", "give"),)),
    ("have has", (("keeper or cog", "give"),)),
    ("offer offers propose trade swap barter", (("always", "trade"),)),
    ("accept accepts agree deal shake", (("always", "accept"),)),
    ("hire hires employ retain engage", (("always", "hire"),)),
    ("rob robs steal stealing mug jump ambush waylay", (("always", "rob"),)),
    ("cut", (("purse later", "rob"),)),
    ("ask asks", (("keeper", "quest"), ("always", "say"))),
    ("say says tell tells shout call announce whisper", (("always", "say"),)),
    ("enquire inquire check consult read", (("always", "quest"),)),
    ("wait waits rest linger idle listen watch stay look", (("always", "wait"),)),
    ("do", (("nothing soon", "wait"),)),
)

VERBS: Final = {token: meanings for tokens, meanings in _VERBS for token in tokens.split()}
"""Meanings of a verb, each with its guard, in the order in which they are tried (R3.3)."""

OFFER_WORDS: Final = frozenset(["offer", "offers", "deal", "bargain", "terms", "proposal"])
POCKETS: Final = frozenset(("pocket", "pockets"))
PURSES: Final = frozenset(("purse", "purses"))
REFLEXIVES: Final = frozenset(["myself", "me", "self", "himself", "herself", "itself", "yourself"])
COIN_WORDS: Final = frozenset(["coin", "coins", "gp", "silver", "piece", "pieces", "crown", "crowns"])

_COUNTED: Final = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
NUMBERS: Final = {
    **{word: count for count, word in enumerate(_COUNTED, start=1)},
    "a": 1,
    "an": 1,
    "both": 2,
    "couple": 2,
    "dozen": 12,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "hundred": 100,
    **dict.fromkeys(("all", "every", "everything"), EVERYTHING),
}
"""What a word counts as (R3.8)."""


class Phrase(msgspec.Struct, frozen=True):
    """One way to name a thing (R3.5)."""

    kind: Literal["room", "good", "keeper"]
    words: tuple[str, ...]
    id: int


def phrases() -> Iterator[Phrase]:
    """Every way to name a room, a good or a keeper."""
    for room_id, room in enumerate(ROOMS):
        for name in (*room.keywords, room.name):
            yield Phrase("room", tuple(words(name)), room_id)
    for good_id, good in enumerate(GOODS):
        for name in good.keywords:
            yield Phrase("good", tuple(words(name)), good_id)
    for keeper_id, keeper in enumerate(KEEPERS):
        for name in (*keeper.keywords, keeper.name):
            yield Phrase("keeper", tuple(words(name)), keeper_id)


class Word(msgspec.Struct):
    """All that one word can be."""

    phrases: tuple[Phrase, ...] = ()  # that begin with it
    alias: str = ""  # of a cog, as the league spells it
    reflexive: bool = False
    verb: bool = False
    pocket: bool = False
    purse: bool = False
    count: int = -1  # -1: no number


def _words() -> dict[str, Word]:
    table = {token: Word() for token in (*VERBS, *POCKETS, *PURSES, *REFLEXIVES, *NUMBERS)}
    for phrase in phrases():
        word = table.setdefault(phrase.words[0], Word())
        word.phrases = (*word.phrases, phrase)
    for alias in ALIASES:
        table.setdefault(alias.lower(), Word()).alias = alias
    for token, word in table.items():
        word.reflexive = token in REFLEXIVES
        word.verb = token in VERBS
        word.pocket = token in POCKETS
        word.purse = token in PURSES
        word.count = NUMBERS.get(token, -1)
    return table


WORDS: Final = _words()
"""Everything above by its first word, so that a sentence is read in one pass."""
