"""Reads a sentence as an intent: a pure function of the sentence and of what the speaker's turn opened with.

Invariant: any text is read, and no slot holds what the sentence does not name, but for the keeper of the
room and the sender of the only offer. What depends on the sentence alone is found once and kept. Must not
know whether an intent can be carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from cogeval.games.cogmud.intents import BY_KEEPER, FIXED, NOTHING, PLANS, Plan, Slot, Slots, fixed
from cogeval.games.cogmud.reading import Mention, Reading, read
from cogeval.games.cogmud.state import Intent
from cogeval.games.cogmud.vocabulary import OFFER_WORDS, VERBS, Guard
from cogeval.games.cogmud.world import KEEPER_IN

KINDS: Final = tuple(PLANS)
"""What a sentence can mean: move take drop buy sell give trade hire accept rob quest say wait."""

KEPT_LENGTH: Final = 400  # longest sentence that is kept, code points
_KEPT: Final = 8_192  # sentences that name no cog, and as many that do, with their speakers


def parse(sentence: str, names: tuple[str, ...], seat: int, room: int, senders: tuple[int, ...]) -> Intent:
    """Reads what one seat wrote.

    Args:
        sentence: any text.
        names: alias of each seat, one of the league's.
        seat: of the speaker.
        room: where the speaker stands when the turn opens.
        senders: seats whose offers to the speaker are open this turn, one entry an offer, oldest first.

    Returns:
        The intent; its kind is "none" and it has a reason when the sentence cannot be read.
    """
    kept = len(sentence) <= KEPT_LENGTH
    plan = _plan_of_anyone(sentence) if kept else read(sentence)
    if not isinstance(plan, Plan):  # it names cogs, or is too long to be kept
        seats = tuple([names.index(alias) if alias in names else -1 for alias in plan.aliases])
        plan = _plan_of_seat(sentence, seats, seat) if kept else _plan(plan, seats, seat)
    left_open, intents = plan
    if left_open == FIXED:
        return intents[0]
    if left_open == BY_KEEPER:
        return intents[KEEPER_IN[room]]  # R3.7
    return intents[senders[0] if len(senders) == 1 else -1]  # R3.7


@lru_cache(_KEPT)
def _plan_of_anyone(sentence: str) -> Plan | Reading:
    """The plan of a sentence that names no cog, the reading of one that does."""
    reading = read(sentence)
    return reading if reading.names_cogs else _plan(reading, (), -1)


@lru_cache(_KEPT)
def _plan_of_seat(sentence: str, seats: tuple[int, ...], seat: int) -> Plan:
    reading = _plan_of_anyone(sentence)
    return _plan(read(sentence) if isinstance(reading, Plan) else reading, seats, seat)


def _plan(reading: Reading, seats: tuple[int, ...], seat: int) -> Plan:
    """What a seat means.

    Args:
        reading: of its sentence.
        seats: whose the aliases in it are, one entry an alias, -1 for a cog that is not at the table.
        seat: of the speaker.
    """
    if not reading.words:  # R3.1
        if reading.spoken:
            return fixed(Intent("say", spoken=reading.spoken))
        return fixed(Intent("none", reason="unparsed"))
    cogs = tuple([Mention(at, 1, cog) for at, cog in zip(reading.alias_at, seats, strict=True) if cog >= 0])
    kind, verb_at = _verb(reading, cogs, seat)
    if not kind:
        return fixed(Intent("none", reason="no_verb", spoken=reading.spoken))
    good = _slot(reading.goods, verb_at)
    cog = _slot(cogs, verb_at)
    number_at, number = reading.first_number
    counts = good is NOTHING or number_at < good.at  # R3.8
    return PLANS[kind](
        Slots(
            room=_slot(reading.rooms, verb_at),
            good=good,
            keeper=_slot(reading.keepers, verb_at),
            cog=Slot(seat) if cog is NOTHING and reading.reflexive else cog,  # R3.6
            qty=number if counts else 1,
            coin=reading.coin,
            spoken=reading.spoken,
            sentence=reading.sentence,
            seat=seat,
        )
    )


def _slot(mentions: tuple[Mention, ...], verb_at: int) -> Slot:
    """What fills a slot (R3.5): the longest phrase after the verb, else the longest anywhere."""
    if not mentions:
        return NOTHING
    near = [mention for mention in mentions if mention.at > verb_at] or mentions
    longest = max([mention.length for mention in near])
    best = [mention for mention in near if mention.length == longest]
    first = best[0]
    return Slot(first.id, any(mention.id != first.id for mention in best), first.at)


class _Verb(NamedTuple):
    """A word that can be a verb, and what its guards look at."""

    at: int  # index of the word
    reading: Reading
    cogs: tuple[Mention, ...]  # those at the table
    seat: int  # of the speaker

    def soon(self) -> tuple[str, ...]:
        """The three words after it."""
        return self.reading.words[self.at + 1 : self.at + 4]


def _verb(reading: Reading, cogs: tuple[Mention, ...], seat: int) -> tuple[str, int]:
    """The kind of intent, "" for none at all, and the index of its verb, -1 when there is none."""
    for at in reading.verbs:  # R3.3
        for guard, kind in VERBS[reading.words[at]]:
            if guard == "always" or _GUARDS[guard](_Verb(at, reading, cogs, seat)):
                return kind, at
    return "buy" if reading.keepers and reading.goods else "", -1  # R3.4


_GUARDS: Final[dict[Guard, Callable[[_Verb], bool]]] = {
    "room": lambda verb: bool(verb.reading.rooms),
    "good, no room": lambda verb: bool(verb.reading.goods) and not verb.reading.rooms,
    "keeper": lambda verb: bool(verb.reading.keepers),
    "keeper or cog": lambda verb: bool(verb.reading.keepers or verb.cogs or verb.reading.reflexive),
    "another cog": lambda verb: bool(verb.cogs) and verb.cogs[0].id != verb.seat,
    "offer": lambda verb: not OFFER_WORDS.isdisjoint(verb.reading.words),
    "next for": lambda verb: verb.soon()[:1] == ("for",),
    "pocket later": lambda verb: verb.reading.last_pocket > verb.at,
    "purse later": lambda verb: verb.reading.last_purse > verb.at,
    "down soon": lambda verb: "down" in verb.soon(),
    "in or over soon": lambda verb: not {"in", "over"}.isdisjoint(verb.soon()),
    "nothing soon": lambda verb: "nothing" in verb.soon(),
}
