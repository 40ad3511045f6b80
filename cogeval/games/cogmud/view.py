"""What one seat sees, as a value of its own.

Invariant: an `Observation` holds no reference to the state, only what the seat may see (R8.1), and no
alias that it has not met; what follows from it (prices, exits, free slots) is worked out when asked for.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cogeval.core.game import Json
from cogeval.games.cogmud import prose
from cogeval.games.cogmud.lines import render
from cogeval.games.cogmud.market import Tip, cheapest, listed
from cogeval.games.cogmud.state import (
    Action,
    Goods,
    Line,
    Parameters,
    State,
    commission_points,
    pack_value,
    score,
)
from cogeval.games.cogmud.world import (
    ASK,
    BID,
    CARRY_CAP,
    COMMISSION_UNITS,
    GOODS,
    KEEPER_IN,
    KEEPERS,
    ROOMS,
    VELL,
)


class OpenOffer(msgspec.Struct, frozen=True, gc=False):
    """An offer that the seat may accept now."""

    kind: str  # "trade": goods for the seat's coin; "hire": coin for its service
    sender: str  # alias
    item: int  # good, -1 for a hire
    qty: int  # units, 0 for a hire
    coin: int  # what the seat would pay for goods, or be paid for its service


class Ware(msgspec.Struct, frozen=True, gc=False):
    """One row of a keeper's list."""

    good: int
    stock: int  # units
    ask: int  # coin for the next unit bought
    bid: int  # coin for the next unit sold


class Observation(msgspec.Struct, frozen=True, gc=False):
    """Everything that one seat may know when a turn opens."""

    seat: int  # the seat that sees this, 0..5
    name: str  # its alias
    turns: int  # of the whole game
    speech: bool
    thievery: bool
    turn: int  # from 0
    coin: int  # own purse
    pack: Goods  # own goods
    commissions: tuple[int, ...]  # goods that the two commissions ask for
    delivered: tuple[int, ...]  # units handed in for each, 0..2
    room: int  # where it stands
    floor: Goods  # what lies here
    here: tuple[str, ...]  # aliases of the other cogs here, in seat order
    stock: Goods  # of the keeper here, of the goods on its list; all 0 when there is none
    till: int  # coin of the keeper here; 0 when there is none
    heard: tuple[Line, ...]  # what happened last turn in the room that it stands in now
    offers: tuple[OpenOffer, ...]  # oldest first
    employer: str  # alias of the cog that it serves, "" for nobody
    bond: int  # turns that it still serves
    retainers: tuple[tuple[str, int], ...]  # aliases of those who serve it, and for how many turns
    tips: tuple[Tip, ...]  # what a keeper told it last turn, empty when it did not ask
    sentence: str  # its last sentence, "" before its first
    outcome: str  # of that sentence, one of turn.OUTCOMES or ""
    notes: str  # own notes

    @property
    def free_slots(self) -> int:
        """Goods that the pack still takes."""
        return CARRY_CAP - sum(self.pack)

    @property
    def outstanding(self) -> tuple[int, ...]:
        """Units that each commission still wants."""
        return tuple([COMMISSION_UNITS - units for units in self.delivered])

    @property
    def points(self) -> int:
        """Own commission points."""
        return commission_points(self.delivered)

    @property
    def wealth(self) -> int:
        """Own coin and the base values of the goods carried."""
        return self.coin + pack_value(self.pack)

    @property
    def score(self) -> float:
        """Own score, were the episode over now."""
        return score(self.wealth, self.points)

    @property
    def exits(self) -> tuple[int, ...]:
        """Rooms one step away."""
        return ROOMS[self.room].exits

    @property
    def dark(self) -> bool:
        """True where no watch looks."""
        return ROOMS[self.room].dark

    @property
    def keeper(self) -> int:
        """The keeper here, -1 for nobody."""
        return KEEPER_IN[self.room]

    @property
    def wares(self) -> tuple[Ware, ...]:
        """The list of the keeper here, in restock order; empty when there is none."""
        if self.keeper < 0:
            return ()
        return tuple(
            [
                Ware(good, self.stock[good], ASK[good][self.stock[good]], BID[good][self.stock[good]])
                for good in KEEPERS[self.keeper].deals
            ]
        )

    @property
    def place_in_turn(self) -> int:
        """How many seats resolve before this one, in each class of acts."""
        return (self.seat - self.turn) % 6


_NO_STOCK: Final[Goods] = (0,) * len(GOODS)


def observe(parameters: Parameters, state: State, seat: int) -> Observation:
    """What the seat sees of an open state (R8.1)."""
    room, names, employer = state.room[seat], state.names, state.employer[seat]
    keeper = KEEPER_IN[room]
    return Observation(
        seat,
        names[seat],
        parameters.turns,
        parameters.speech,
        parameters.thievery,
        state.turn,
        state.coin[seat],
        state.pack[seat],
        state.commissions[seat],
        state.delivered[seat],
        room,
        state.floor[room],
        tuple([names[other] for other in range(6) if state.room[other] == room and other != seat]),
        listed(keeper, state.stock[keeper]) if keeper >= 0 else _NO_STOCK,
        state.till[keeper] if keeper >= 0 else 0,
        state.heard[room],
        open_offers(state, seat) if state.offers else (),
        names[employer] if employer >= 0 else "",
        state.bond[seat],
        _retainers(state, seat) if seat in state.employer else (),
        cheapest(state, seat) if state.hint[seat] else (),
        state.sentence[seat],
        state.outcome[seat],
        state.notes[seat],
    )


def open_offers(state: State, seat: int) -> tuple[OpenOffer, ...]:
    """The offers that the seat may accept this turn, oldest first (R5.6)."""
    return tuple(
        [
            OpenOffer(offer.kind, state.names[offer.sender], offer.item, offer.qty, offer.coin)
            for offer in state.offers
            if offer.to == seat and offer.posted == state.turn - 1
        ]
    )


def _retainers(state: State, seat: int) -> tuple[tuple[str, int], ...]:
    return tuple(
        [
            (state.names[other], state.bond[other])
            for other, employer in enumerate(state.employer)
            if employer == seat
        ]
    )


def observation_to_wire(observation: Observation) -> dict[str, Json]:
    """The observation as JSON, with what follows from it spelled out for agents in any language."""
    wire: dict[str, Any] = msgspec.to_builtins(observation)
    room, keeper = ROOMS[observation.room], observation.keeper
    wire["room_name"], wire["dark"] = room.name, room.dark
    wire["exits"] = [ROOMS[near].name for near in room.exits]
    wire["map"] = _map()
    wire["lying_here"] = _named(observation.floor)
    wire["carrying"], wire["free_slots"] = _named(observation.pack), observation.free_slots
    wire["keeper"] = KEEPERS[keeper].name if keeper >= 0 else None
    wire["shelf"] = [
        {"good": GOODS[ware.good].name, "stock": ware.stock, "ask": ware.ask, "bid": ware.bid}
        for ware in observation.wares
    ]
    wire["orders"] = [
        {
            "good": GOODS[good].name,
            "delivered": delivered,
            "outstanding": outstanding,
            "settled_with": KEEPERS[VELL].name,
        }
        for good, delivered, outstanding in zip(
            observation.commissions, observation.delivered, observation.outstanding, strict=True
        )
    ]
    wire["cheapest"] = [_tip_to_wire(observation, tip) for tip in observation.tips]
    wire["heard_text"] = [render(line) for line in observation.heard]
    wire["outcome_text"] = prose.outcome_text(observation.outcome, room.name)
    wire["points"], wire["score"] = observation.points, observation.score
    wire["place_in_turn"] = observation.place_in_turn
    return wire


def _map() -> list[Json]:
    """The whole town, which every seat knows."""
    return [
        {
            "room": room.name,
            "dark": room.dark,
            "exits": [ROOMS[near].name for near in room.exits],
            "keeper": KEEPERS[keeper].name if keeper >= 0 else None,
            "deals_in": [GOODS[good].name for good in KEEPERS[keeper].deals] if keeper >= 0 else [],
        }
        for room, keeper in zip(ROOMS, KEEPER_IN, strict=True)
    ]


def _named(goods: Goods) -> dict[str, Json]:
    return {good.name: units for good, units in zip(GOODS, goods, strict=True) if units}


def _tip_to_wire(observation: Observation, tip: Tip) -> dict[str, Json]:
    index, keeper, ask = tip
    known = keeper >= 0
    return {
        "good": GOODS[observation.commissions[index]].name,
        "keeper": KEEPERS[keeper].name if known else None,
        "room": ROOMS[KEEPERS[keeper].room].name if known else None,
        "ask": ask if known else None,
    }


def observation_from_wire(value: Json) -> Observation:
    """The inverse of `observation_to_wire`; what follows from the rest is worked out again."""
    return msgspec.convert(value, Observation)


def action_to_wire(action: Action) -> dict[str, Json]:
    """The action as JSON, every field present."""
    wire: dict[str, Json] = msgspec.to_builtins(action)
    return wire


def action_from_wire(value: Json) -> Action:
    """The inverse of `action_to_wire`; whoever writes no sentence has not decided."""
    if not isinstance(value, dict) or "sentence" not in value:
        raise msgspec.ValidationError(f"expected an object with a sentence, got {value!r:.200}")
    return msgspec.convert(value, Action)
