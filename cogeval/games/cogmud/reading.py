"""What a sentence says, whoever says it: its words and what they name, found in one pass.

Invariant: a pure function of the text, for any text, in a time that grows with its length only. Must not
know who speaks, nor what a verb needs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from cogeval.games.cogmud.vocabulary import COIN_WORDS, WORDS
from cogeval.games.cogmud.words import lifted, words
from cogeval.games.cogmud.world import EVERYTHING

_NUMBER_MAX: Final = 2**63 - 1
_NUMBER_DIGITS: Final = len(str(_NUMBER_MAX))


class Mention(NamedTuple):
    """A phrase that names something."""

    at: int  # index of its first word
    length: int  # words
    id: int  # of what it names


class Reading(msgspec.Struct, frozen=True, gc=False):
    """What a sentence says. Indexes count words; they ascend."""

    sentence: str
    words: tuple[str, ...]
    spoken: str  # what was quoted, "" for nothing
    verbs: tuple[int, ...]  # indexes of words that can be verbs
    rooms: tuple[Mention, ...]
    goods: tuple[Mention, ...]
    keepers: tuple[Mention, ...]
    aliases: tuple[str, ...]  # of cogs at any table of the league
    alias_at: tuple[int, ...]  # index of each
    reflexive: bool  # the speaker is named by a word like "myself"
    first_number: tuple[int, int]  # its index and value; (-1, 1) for none
    coin: int  # 0 when no amount is named
    last_pocket: int  # index of the last word for a pocket, -1 for none
    last_purse: int

    @property
    def names_cogs(self) -> bool:
        """True when it depends on the table and the speaker what the sentence means."""
        return self.reflexive or bool(self.aliases)


def read(sentence: str) -> Reading:
    """Finds the words of a sentence and what they name.

    Args:
        sentence: any text.
    """
    rest, spoken = lifted(sentence)
    tokens = tuple(words(rest))
    named: dict[str, list[Mention]] = {"room": [], "good": [], "keeper": []}
    verbs: list[int] = []
    alias_at: list[int] = []
    numbers: dict[int, int] = {}
    reflexive = False
    last_pocket = last_purse = -1
    for at, token in enumerate(tokens):
        word = WORDS.get(token)
        if word is None:
            if token[0] in "0123456789" and (value := _digits(token)) >= 0:
                numbers[at] = value
            continue
        for phrase in word.phrases:
            length = len(phrase.words)
            if length == 1 or tokens[at : at + length] == phrase.words:
                named[phrase.kind].append(Mention(at, length, phrase.id))
        if word.verb:
            verbs.append(at)
        if word.count >= 0:
            numbers[at] = word.count
        if word.alias:
            alias_at.append(at)
        reflexive = reflexive or word.reflexive
        last_pocket = at if word.pocket else last_pocket
        last_purse = at if word.purse else last_purse
    return Reading(
        sentence,
        tokens,
        spoken,
        tuple(verbs),
        tuple(named["room"]),
        tuple(named["good"]),
        tuple(named["keeper"]),
        tuple([WORDS[tokens[at]].alias for at in alias_at]),
        tuple(alias_at),
        reflexive,
        next(iter(numbers.items()), (-1, 1)),
        _coin(tokens, numbers) if numbers else 0,
        last_pocket,
        last_purse,
    )


def _digits(word: str) -> int:
    """The value of a word of digits, -1 when it is something else or beyond 64 bits (R3.8)."""
    if not (word.isascii() and word.isdigit()):
        return -1
    digits = word.lstrip("0") or "0"
    if len(digits) > _NUMBER_DIGITS:  # Python itself refuses to convert very long ones
        return -1
    value = int(digits)
    return value if value <= _NUMBER_MAX else -1


def _coin(tokens: tuple[str, ...], numbers: dict[int, int]) -> int:
    """The amount that a sentence names (R3.9)."""
    amounts = [(at, value) for at, value in numbers.items() if value != EVERYTHING]
    for at, value in amounts:
        if tokens[at + 1 : at + 2] and tokens[at + 1] in COIN_WORDS:
            return value
        if at and tokens[at - 1] in COIN_WORDS:
            return value
    for at, value in amounts:
        if at and tokens[at - 1] == "for":
            return value
    return 0
