"""Another world that one seat cannot tell apart: everything hidden from it, drawn anew.

Invariant: the seat's observation stays equal, and every column keeps to its bounds (packs, stocks, coin,
distinct aliases, no cog in its own service). Must not know how an observation is shown.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from msgspec.structs import replace

from cogeval.games.cogmud.market import SELLERS, cheapest
from cogeval.games.cogmud.prose import OUTCOMES
from cogeval.games.cogmud.state import Goods, Line, Offer, State
from cogeval.games.cogmud.world import (
    ASK,
    CARRY_CAP,
    COMMISSION_UNITS,
    COMMISSIONED,
    COMMISSIONS,
    GOODS,
    KEEPER_IN,
    KEEPERS,
    RETAINER_TURNS,
    ROOMS,
    SEATS,
    STOCK_CAP,
)
from cogeval.games.league import ALIASES

T = TypeVar("T")

_WORDS: Final = tuple(OUTCOMES)
_UNSHOWN: Final = ("prev_room", "robberies", "robbed")  # columns of which a seat does not see its own entry
_MOST_COIN: Final = 200  # that a redrawn purse or till holds
_MOST_LYING: Final = 4  # units of one good on a redrawn floor


def resample_hidden(state: State, seat: int, rng: np.random.Generator) -> State:
    """Draws anew what an open state hides from the seat (R8.2).

    Args:
        state: a turn just opened.
        seat: whose observation stays equal.
        rng: where the draws come from.

    Returns:
        The state with other cogs' columns, other rooms, other shops, the bonds and offers of others, and
        the aliases that the seat has no way to know, redrawn. A cog that the seat saw leave for a room
        is in that room.
    """
    if state.turn == 0:
        return _first_turn(state, seat, rng)
    names = _names(state, seat, rng)
    state = replace(state, **_cogs(state, seat, rng), names=names)
    employer, bond = _bonds(state, seat, rng)
    here = state.room[seat]
    return replace(
        state,
        employer=employer,
        bond=bond,
        **_shops(state, seat, rng),
        floor=_floors(state, here, rng),
        heard=tuple(
            [lines if room == here else _lines(names, rng) for room, lines in enumerate(state.heard)]
        ),
        offers=_offers(state, seat, rng),
    )


def _first_turn(state: State, seat: int, rng: np.random.Generator) -> State:
    """Before anybody has acted only the names, rooms and commissions of others and far floors are hidden."""
    here, drawn = state.room[seat], _cogs(state, seat, rng)
    return replace(
        state,
        names=_names(state, seat, rng),
        room=drawn["room"],
        commissions=drawn["commissions"],
        floor=_floors(state, here, rng),
    )


def _floors(state: State, here: int, rng: np.random.Generator) -> tuple[Goods, ...]:
    return tuple(
        [
            lying if room == here else tuple(rng.integers(_MOST_LYING + 1, size=len(GOODS)).tolist())
            for room, lying in enumerate(state.floor)
        ]
    )


def _names(state: State, seat: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Other aliases for the cogs that the seat neither sees nor has read of."""
    shown = set(_known_names(state, seat))
    said = [line.text for line in state.heard[state.room[seat]]]
    read = " ".join([state.sentence[seat], state.notes[seat], *said]).lower()
    kept = {name for name in state.names if name in shown or name.lower() in read}
    fresh = iter(rng.permutation([name for name in ALIASES if name not in kept]).tolist())
    return tuple([name if name in kept else next(fresh) for name in state.names])


def _known_names(state: State, seat: int) -> list[str]:
    """The aliases that the seat's observation holds, with repeats."""
    here = state.room[seat]
    cogs = {seat, state.employer[seat]} - {-1}
    cogs |= {other for other in range(SEATS) if state.room[other] == here or state.employer[other] == seat}
    for offer in state.offers:
        if seat in (offer.to, offer.sender):
            cogs |= {offer.to, offer.sender}
    lines = state.heard[here]
    return [state.names[cog] for cog in cogs] + [name for line in lines for name in (line.who, line.other)]


def _own(column: tuple[T, ...], seat: int, drawn: list[T]) -> tuple[T, ...]:
    """The drawn column, but for the seat's own entry."""
    return (*drawn[:seat], column[seat], *drawn[seat + 1 :])


def _cogs(state: State, seat: int, rng: np.random.Generator) -> dict[str, Any]:
    """Everything about other cogs but their names and bonds; those in the seat's room stay there."""
    room = _rooms(state, seat, rng)
    seats = range(SEATS)
    prev_room = [int(rng.choice((-1, *ROOMS[place].exits))) for place in room]
    drawn: dict[str, list[Any]] = {
        "prev_room": prev_room,
        "coin": rng.integers(_MOST_COIN + 1, size=SEATS).tolist(),
        "pack": [_pack(rng) for _ in seats],
        "commissions": [tuple(rng.choice(COMMISSIONED, COMMISSIONS, replace=False).tolist()) for _ in seats],
        "delivered": [tuple(rng.integers(COMMISSION_UNITS + 1, size=COMMISSIONS).tolist()) for _ in seats],
        "robberies": rng.integers(4, size=SEATS).tolist(),
        "robbed": rng.integers(4, size=SEATS).tolist(),
        "outcome": [_WORDS[rng.integers(len(_WORDS))] for _ in seats],
        "sentence": [f"I mutter {rng.integers(1 << 32)}." for _ in seats],
        "hint": [bool(rng.integers(2)) for _ in seats],
        "notes": [f"note {rng.integers(1 << 32)}" for _ in seats],
    }
    columns = {
        name: tuple(column) if name in _UNSHOWN else _own(getattr(state, name), seat, column)
        for name, column in drawn.items()
    }
    return {"room": room, **columns}


def _rooms(state: State, seat: int, rng: np.random.Generator) -> tuple[int, ...]:
    here = state.room[seat]
    elsewhere = [room for room in range(len(ROOMS)) if room != here]
    gone = {line.who: line.room for line in state.heard[here] if line.kind == "left"}
    return tuple(
        [
            here if room == here else gone.get(name, elsewhere[rng.integers(len(elsewhere))])
            for name, room in zip(state.names, state.room, strict=True)
        ]
    )


def _pack(rng: np.random.Generator) -> Goods:
    pack = [0] * len(GOODS)
    for good in rng.integers(len(GOODS), size=rng.integers(CARRY_CAP + 1)).tolist():
        pack[good] += 1
    return tuple(pack)


def _bonds(state: State, seat: int, rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Who serves whom for how long, but for the bonds that the seat is a party to."""
    employer, bond = list(state.employer), list(state.bond)
    for cog in range(SEATS):
        if seat in (cog, employer[cog]):
            continue
        others = [other for other in range(SEATS) if other not in (cog, seat)]
        if rng.integers(2):
            employer[cog] = others[rng.integers(len(others))]
            bond[cog] = int(rng.integers(1, RETAINER_TURNS + 1))
        else:
            employer[cog], bond[cog] = -1, 0
    return tuple(employer), tuple(bond)


def _shops(state: State, seat: int, rng: np.random.Generator) -> dict[str, Any]:
    """Stocks and tills of the other rooms; what the seat was told of the cheapest asks stays true."""
    here = KEEPER_IN[state.room[seat]]
    stock = [rng.integers(STOCK_CAP + 1, size=len(GOODS)).tolist() for _ in KEEPERS]
    if here >= 0:
        for good in KEEPERS[here].deals:  # what it was handed and does not deal in is hidden too
            stock[here][good] = state.stock[here][good]
    for index, best, ask in cheapest(state, seat) if state.hint[seat] else ():
        good = state.commissions[seat][index]
        for keeper in SELLERS[good]:
            if keeper != here:
                allowed = [units for units in range(STOCK_CAP + 1) if _leaves(keeper, units, good, best, ask)]
                stock[keeper][good] = allowed[rng.integers(len(allowed))]
    till = [
        coin if keeper == here else int(rng.integers(_MOST_COIN + 1))
        for keeper, coin in enumerate(state.till)
    ]
    return {"stock": tuple(map(tuple, stock)), "till": tuple(till)}


def _leaves(keeper: int, units: int, good: int, best: int, ask: int) -> bool:
    """True when a keeper with so many units leaves the cheapest ask with the best one (R6.4)."""
    here = ASK[good][units]
    if keeper == best:
        return units > 0 and here == ask
    return units == 0 or (best >= 0 and (here, keeper) > (ask, best))


def _lines(names: tuple[str, ...], rng: np.random.Generator) -> tuple[Line, ...]:
    """What might have been heard in a room."""
    lines = []
    for who in rng.permutation(names).tolist()[: rng.integers(4)]:
        keeper, good = int(rng.integers(len(KEEPERS))), int(rng.integers(len(GOODS)))
        lines.append(
            Line("bought", who, npc=keeper, item=good, qty=1, coin=int(rng.integers(1, 20)))
            if rng.integers(2)
            else Line("said", who, text=f"word {rng.integers(1 << 32)}")
        )
    return tuple(lines)


def _offers(state: State, seat: int, rng: np.random.Generator) -> tuple[Offer, ...]:
    """The offers that the seat made or got, in their order, among others that it has no part in."""
    offers = [offer for offer in state.offers if seat in (offer.to, offer.sender)]
    others = [other for other in range(SEATS) if other != seat]
    for sender in rng.permutation(others).tolist()[: rng.integers(3)]:
        to = int(rng.choice([other for other in others if other != sender]))
        good, coin = int(rng.integers(len(GOODS))), int(rng.integers(1, 20))
        drawn = (
            Offer("trade", sender, to, good, 1, coin, state.turn - 1)
            if rng.integers(2)
            else Offer("hire", sender, to, -1, 0, coin, state.turn - 1)
        )
        offers.insert(int(rng.integers(len(offers) + 1)), drawn)
    return tuple(offers)
