"""The values of an episode: actions, seals, the state, and the events that a phase leads to.

Invariant: everything here is frozen; a state is a table of columns with one entry a seat, and two
states share every column that did not change. Must not know rules, agents or how anything is shown.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from cogeval.games.cogchemists.constants import COIN_WEIGHT
from cogeval.games.cogchemists.deduction import Fact, Knowledge, MixFull


class Action(msgspec.Struct, frozen=True, gc=False):
    """One seat's decision in one phase. Unused fields hold their defaults; -1 means none."""

    action: str = "pass"  # verb: one of LAB_VERBS or MARKET_VERBS
    a: int = -1  # ingredient, 0..7
    b: int = -1  # second ingredient or the reagent of a debunk, 0..7
    signature: int = -1  # 0..7, publish only
    artifact: str = ""  # "mortar" or "press", buy only
    say: str = ""  # remark that all seats hear in the next phase; raw, cut when the phase resolves
    notes: str = ""  # the seat's private memory; empty leaves the old notes


PASS = Action()


class Parameters(msgspec.Struct, frozen=True, gc=False):
    """What a user may choose about the game (R1.2)."""

    rounds: int = 6  # 3..10
    talk: bool = True  # False: every remark is empty
    artifacts: bool = True  # False: nothing can be bought


class Seal(msgspec.Struct, frozen=True, gc=False):
    """One published theory on the board; burned seals stay on it."""

    ingredient: int  # 0..7
    claim: int  # claimed signature, 0..7
    author: int  # seat
    round: int  # round of publication, from 0
    endorsers: tuple[int, ...] = ()  # seats, in the order in which they endorsed
    status: str = "standing"  # "standing" or "burned"
    vindications: int = 0  # debunks survived
    burned_by: int = -1  # seat, -1 while standing
    round_burned: int = -1  # -1 while standing


class Act(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="act"):
    """What one decision led to. As an event it is complete; `State.record` keeps the public part."""

    round: int
    phase: str
    seat: int
    action: str  # the action as attempted, also when rejected
    a: int
    b: int
    signature: int
    artifact: str
    outcome: str  # ok hit miss poisoned glowed burned survived rejected:<reason>
    potion: str = ""  # one of POTIONS, "" when none was made
    secret: bool = False  # True: only the seat learns the potion
    draws: tuple[int, ...] = ()  # cards drawn, in order, discarded ones included
    discarded: tuple[int, ...] = ()  # cards drawn onto a full hand
    coin_delta: int = 0  # the actor's only
    rep_delta: int = 0  # the actor's only
    target: int = -1  # author of the seal that was endorsed or debunked
    claim: int = -1  # claim of the seal that was endorsed or debunked
    say: str = ""  # remark as stored; empty in the record: remarks are heard for one phase


class Started(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="start"):
    """The table is set."""

    names: tuple[str, ...]  # alias of each seat


class RoundOpened(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="round"):
    """A round begins: royalties are paid, demand and initiative are published."""

    round: int
    demand: str
    initiative: tuple[int, ...]  # seats in resolution order
    royalties: tuple[int, ...]  # coin paid to each seat


class PhaseOpened(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="phase"):
    """A phase begins: grids are fresh, all four seats decide."""

    round: int
    phase: str


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The exhibition's judgement of one standing seal."""

    ingredient: int
    claim: int
    author: int
    endorsers: tuple[int, ...]
    true: bool


class Exhibition(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="exhibition"):
    """The chemistry is shown and every standing seal is settled."""

    round: int  # the round that was open, from 0
    verdicts: tuple[Verdict, ...]  # in board order
    rep_deltas: tuple[int, ...]  # per seat
    chemistry: tuple[int, ...]  # signature of each ingredient


class Ended(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="end"):
    """The episode is over."""

    round: int  # rounds played: those whose market resolved
    reason: str  # "complete" or "deadline"


Event: TypeAlias = Started | RoundOpened | PhaseOpened | Act | Exhibition | Ended


def event_kind(event: Event) -> str:
    """The event's kind in the rules' words: start round phase act exhibition end."""
    return str(event.__struct_config__.tag)


class State(msgspec.Struct, frozen=True, gc=False):
    """One moment of an episode. Columns hold one entry a seat, seat 0 first.

    As `Step.next` it is a phase just opened (or the end); as `Step.resolved` it is the same phase after
    it resolved: `phase` and `round` are still the old ones, `phases` and `rounds_played` count it, and
    `known` is as old as the last opening. `knowledge_of(state.public_facts, state.private_facts[seat])`
    gives what a seat could deduce now.
    """

    names: tuple[str, ...]  # alias of each seat
    chemistry: tuple[int, ...]  # hidden: signature of each ingredient, a permutation of 0..7
    demands: tuple[str, ...]  # one potion a round; those of later rounds are hidden
    words: tuple[int, int]  # hidden: state of the stream that forage cards come from
    round: int  # from 0
    phase: str  # "lab" or "market"
    phases: int  # phases resolved so far
    rounds_played: int  # rounds whose market resolved
    reason: str  # "" while the episode runs, then "complete" or "deadline"
    coin: tuple[int, ...]  # >= 0
    reputation: tuple[int, ...]  # may be negative
    hands: tuple[tuple[int, ...], ...]  # hidden from the others: ingredients in drawing order, at most 6
    mortar: tuple[bool, ...]
    press: tuple[bool, ...]
    seals: tuple[Seal, ...]  # in order of publication, burned ones included
    public_facts: tuple[Fact, ...]  # in the order in which they became public
    private_facts: tuple[tuple[MixFull, ...], ...]  # hidden from the others: results of own tests
    say: tuple[str, ...]  # remarks of the last resolved phase, heard by all in the open one
    notes: tuple[str, ...]  # hidden from the others
    record: tuple[Act, ...]  # public part of everything done so far
    known: tuple[Knowledge, ...]  # what each seat's facts left when the phase opened (R7.3)

    @property
    def demand(self) -> str:
        """The potion in demand this round."""
        return self.demands[self.round]

    @property
    def initiative(self) -> tuple[int, ...]:
        """Seats in the order in which this round's phases resolve (R3.2)."""
        first = self.round % 4
        return (0, 1, 2, 3)[first:] + (0, 1, 2, 3)[:first]

    @property
    def heard(self) -> tuple[str, ...]:
        """Remarks that the seats hear while this phase is open."""
        return self.say

    @property
    def scores(self) -> tuple[float, ...]:
        """Reputation plus 0.2 a coin (R8.3)."""
        return tuple(score(r, c) for r, c in zip(self.reputation, self.coin, strict=True))


def score(reputation: int, coin: int) -> float:
    """A seat's score (R8.3)."""
    return reputation + COIN_WEIGHT * coin
