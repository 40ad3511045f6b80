"""The values of an episode: actions, intents, offers, lines, the state, and the events of a turn.

Invariant: everything here is frozen; a state is a table of columns, and two states share every column
that did not change. Must not know the grammar, the rules or how anything is shown.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from cogeval.games.cogmud.world import (
    COMMISSION_UNITS,
    COMPLETION_POINTS,
    POINT_COIN,
    START_COIN,
    UNIT_POINTS,
    VALUES,
)

Goods: TypeAlias = tuple[int, ...]
"""Units of each of the six goods, in the order of `world.GOODS`."""


class Action(msgspec.Struct, frozen=True, gc=False):
    """One seat's decision in one turn."""

    sentence: str = "I wait."  # raw: trimmed and cut when the turn resolves
    say: str = ""  # a remark for the room; raw
    notes: str = ""  # the seat's private memory; empty leaves the old notes


WAIT: Final = Action()


class Parameters(msgspec.Struct, frozen=True, gc=False):
    """What a user may choose about the game (R1.2)."""

    turns: int = 14  # 6..40
    speech: bool = True  # False: nothing that is said is heard
    thievery: bool = True  # False: nobody can be robbed


class Intent(msgspec.Struct, frozen=True, gc=False):
    """What a sentence means (R3). Unused slots are -1; a sentence that means nothing keeps what matched."""

    kind: str  # one of grammar.KINDS, or "none" when the sentence cannot be read
    item: int = -1  # good
    qty: int = 1  # 0 .. 2**63 - 1; 999 is "all"
    npc: int = -1  # keeper
    other: int = -1  # seat
    coin: int = 0
    to_room: int = -1
    reason: str = "ok"  # why it cannot be read, else "ok"
    spoken: str = ""  # what was said between quotes, or by a speech act


class Offer(msgspec.Struct, frozen=True, gc=False):
    """A trade or a hire that one seat has put to another."""

    kind: str  # "trade" or "hire"
    sender: int  # seat
    to: int  # seat
    item: int  # good, -1 for a hire
    qty: int  # 0 for a hire
    coin: int  # price or fee
    posted: int  # turn


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of a room's log, as what it says; `lines.render` puts it in words."""

    kind: str  # one of lines.KINDS
    who: str  # alias
    other: str = ""  # alias of the second cog
    npc: int = -1  # keeper
    room: int = -1  # that `who` left for
    item: int = -1  # good
    qty: int = 0
    coin: int = 0  # coin, commission points or turns, as the kind has it
    text: str = ""  # what was said


class Act(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="act"):
    """What one sentence led to."""

    seat: int
    order: int  # place in the turn's initiative, 0..5
    intent: str  # the intent's kind
    room: int  # where the seat stood when the turn opened
    to_room: int
    item: int
    qty: int  # units that really changed hands
    npc: int
    other: int
    coin: int  # that really changed hands; commission points of a delivery
    reason: str  # the outcome, one of turn.OUTCOMES
    salience: int  # 0..100, how much a highlight reel would want it
    sentence: str  # as stored
    say: str  # as stored
    notes: str  # as stored


class Started(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="start"):
    """The town is set."""

    names: tuple[str, ...]  # alias of each seat


class TurnOpened(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="turn"):
    """A turn begins, or, at the end of the last one, would begin."""

    turn: int


class Ended(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="end"):
    """The episode is over."""

    turn: int  # turns played
    reason: str  # "complete" or "deadline"


Event: TypeAlias = Started | TurnOpened | Act | Ended


def event_kind(event: Event) -> str:
    """The event's kind in the rules' words: start turn act end."""
    return str(event.__struct_config__.tag)


class State(msgspec.Struct, frozen=True, gc=False):
    """One moment of an episode. Columns of cogs hold one entry a seat, those of shops one a keeper.

    As `Step.next` it is a turn just opened (or the end); as `Step.resolved` the same turn after it
    resolved: `turn` and `heard` are still the old ones, `turns_played` counts it, and what happened
    stands in `room_log`.
    """

    names: tuple[str, ...]  # alias of each seat
    commissions: tuple[tuple[int, ...], ...]  # per seat the goods of its two commissions
    turn: int  # from 0
    turns_played: int
    reason: str  # "" while the episode runs, then "complete" or "deadline"
    room: tuple[int, ...]  # where each cog stands
    prev_room: tuple[int, ...]  # where it came from, -1 before its first step
    coin: tuple[int, ...]  # >= 0
    pack: tuple[Goods, ...]  # at most 8 units each
    delivered: tuple[tuple[int, ...], ...]  # per seat the units handed in for its two commissions, 0..2
    employer: tuple[int, ...]  # seat that each cog is hired to, -1 for nobody
    bond: tuple[int, ...]  # turns that it is still hired for, 0..3
    robberies: tuple[int, ...]  # that succeeded
    robbed: tuple[int, ...]  # times that it was robbed
    stock: tuple[Goods, ...]  # of each keeper, at most 12 units of a good
    till: tuple[int, ...]  # coin of each keeper
    floor: tuple[Goods, ...]  # what lies in each room
    offers: tuple[Offer, ...]  # not yet taken or expired, oldest first
    heard: tuple[tuple[Line, ...], ...]  # per room what happened there last turn
    room_log: tuple[tuple[Line, ...], ...]  # per room what happened there this turn
    outcome: tuple[str, ...]  # of each cog's last sentence, "" before its first
    sentence: tuple[str, ...]  # each cog's last sentence
    hint: tuple[bool, ...]  # True: the cog asked, and sees the cheapest asks this turn
    notes: tuple[str, ...]

    @property
    def initiative(self) -> tuple[int, ...]:
        """Seats in the order in which this turn resolves (R2.4)."""
        first = self.turn % 6
        return (0, 1, 2, 3, 4, 5)[first:] + (0, 1, 2, 3, 4, 5)[:first]

    @property
    def points(self) -> tuple[int, ...]:
        """Commission points of each seat (R6.1)."""
        return tuple(map(commission_points, self.delivered))

    @property
    def wealth(self) -> tuple[int, ...]:
        """Coin of each seat and the base values of what it carries (R7.1)."""
        return tuple([coin + pack_value(pack) for coin, pack in zip(self.coin, self.pack, strict=True)])

    @property
    def scores(self) -> tuple[float, ...]:
        """What each seat has made of its purse (R7.1)."""
        return tuple(
            [
                score(wealth, commission_points(delivered))
                for wealth, delivered in zip(self.wealth, self.delivered, strict=True)
            ]
        )


def pack_value(pack: Goods) -> int:
    """The base values of goods, in coin."""
    return sum([units * value for units, value in zip(pack, VALUES, strict=True)])


def commission_points(delivered: tuple[int, ...]) -> int:
    """Points for units handed in (R6.1)."""
    return sum([POINTS[units] for units in delivered])


POINTS: Final = (0, UNIT_POINTS, COMMISSION_UNITS * UNIT_POINTS + COMPLETION_POINTS)
"""POINTS[units]: of one commission of two units: four a unit, eight more for both."""


def score(wealth: int, points: int) -> float:
    """A seat's score (R7.1)."""
    return (wealth + POINT_COIN * points - START_COIN) / START_COIN
