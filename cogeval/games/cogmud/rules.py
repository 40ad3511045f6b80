"""The course of an episode: how it opens, how a turn leads to the next, how it ends.

Invariant: every function takes a state and gives new values; the numbers (R2.1) are those of RULES.md.
Must not know agents, observations or text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from cogeval.core.game import Results, SeatResult, Step
from cogeval.core.rng import NimStream
from cogeval.games.cogmud.state import Action, Ended, Event, Parameters, Started, State, TurnOpened, score
from cogeval.games.cogmud.town import with_units
from cogeval.games.cogmud.turn import played
from cogeval.games.cogmud.world import (
    COMMISSIONED,
    COMMISSIONS,
    FOUND_IN,
    GOODS,
    KEEPER_COIN,
    KEEPERS,
    POINT_COIN,
    RELIC,
    ROOMS,
    SEATS,
    START_COIN,
    STOCK_CAP,
    YARD,
)
from cogeval.games.league import seated_aliases

_ZEROS: Final = (0,) * SEATS
_NOBODY: Final = (-1,) * SEATS
_SILENCE: Final = ("",) * SEATS
_NO_LINES: Final = ((),) * len(ROOMS)
_EMPTY: Final = (0,) * len(GOODS)


def opening_state(seed: int) -> State:
    """The state in which the first turn opens (R1.3, R1.4)."""
    stream = NimStream(seed * 7919 + 17)
    rooms = list(range(len(ROOMS)))
    stream.shuffle(rooms)
    commissions = []
    for _ in range(SEATS):
        goods = list(COMMISSIONED)
        stream.shuffle(goods)
        commissions.append(tuple(goods[:COMMISSIONS]))
    floor = [_EMPTY] * len(ROOMS)
    for room in FOUND_IN:
        floor[room] = with_units(floor[room], stream.rand(len(GOODS) - 1), 1)
    floor[YARD] = with_units(floor[YARD], RELIC, 1)
    return State(
        names=seated_aliases(seed, SEATS),
        commissions=tuple(commissions),
        turn=0,
        turns_played=0,
        reason="",
        room=tuple(rooms[:SEATS]),
        prev_room=_NOBODY,
        coin=(START_COIN,) * SEATS,
        pack=(_EMPTY,) * SEATS,
        delivered=((0,) * COMMISSIONS,) * SEATS,
        employer=_NOBODY,
        bond=_ZEROS,
        robberies=_ZEROS,
        robbed=_ZEROS,
        stock=tuple([keeper.stock for keeper in KEEPERS]),
        till=(KEEPER_COIN,) * len(KEEPERS),
        floor=tuple(floor),
        offers=(),
        heard=_NO_LINES,
        room_log=_NO_LINES,
        outcome=_SILENCE,
        sentence=_SILENCE,
        hint=(False,) * SEATS,
        notes=_SILENCE,
    )


def opening_events(state: State) -> tuple[Event, ...]:
    """The events that precede the first decision; no step carries them."""
    return (Started(state.names), TurnOpened(state.turn))


def resolve_turn(parameters: Parameters, state: State, actions: Mapping[int, Action]) -> Step[State]:
    """Resolves the open turn, then opens the next one or ends (R2)."""
    resolved, acts = played(parameters, state, actions)
    opened = TurnOpened(resolved.turns_played)
    if resolved.turns_played == parameters.turns:  # R7.4: it is told, but nothing opens
        ending = end(resolved, "complete")
        return Step(ending.next, resolved, (*acts, opened, *ending.events))
    return Step(_opened(resolved), resolved, (*acts, opened))


def _opened(resolved: State) -> State:
    """Opens the next turn: offers expire, bonds tick, shops restock, the logs are heard (R2.1)."""
    turn = resolved.turns_played
    employer, bond, offers = resolved.employer, resolved.bond, resolved.offers
    if any(bond):
        bond = tuple([max(0, turns - 1) for turns in bond])
        employer = tuple([who if turns else -1 for who, turns in zip(employer, bond, strict=True)])
    if offers:
        offers = tuple([offer for offer in offers if offer.posted >= turn - 1])
    return State(  # written out: `replace` would cost five times as much
        resolved.names,
        resolved.commissions,
        turn,
        turn,
        "",
        resolved.room,
        resolved.prev_room,
        resolved.coin,
        resolved.pack,
        resolved.delivered,
        employer,
        bond,
        resolved.robberies,
        resolved.robbed,
        _restocked(resolved.stock, turn),
        resolved.till,
        resolved.floor,
        offers,
        resolved.room_log,
        _NO_LINES,
        resolved.outcome,
        resolved.sentence,
        resolved.hint,
        resolved.notes,
    )


_DELIVERIES: Final = tuple(
    [tuple([keeper.deals[turn % len(keeper.deals)] for keeper in KEEPERS]) for turn in range(6)]
)
"""Each keeper's good of the turn; with lists of two or three goods all begin anew every six turns."""


def _restocked(stock: tuple[tuple[int, ...], ...], turn: int) -> tuple[tuple[int, ...], ...]:
    """One unit more of each keeper's good of the turn (R4.5)."""
    return tuple(
        [
            with_units(goods, good, 1) if goods[good] < STOCK_CAP else goods
            for goods, good in zip(stock, _DELIVERIES[turn % 6], strict=True)
        ]
    )


def end(state: State, reason: str) -> Step[State]:
    """Ends the episode as it stands (R7.4)."""
    over = replace(state, reason=reason, turn=state.turns_played)
    return Step(over, state, (Ended(state.turns_played, reason),))


def results(state: State) -> Results:
    """The outcome of a finished episode (R7.1 to R7.3)."""
    wealth, points = state.wealth, state.points
    seats = [
        SeatResult(
            score(wealth[seat], points[seat]),
            (wealth[seat] + POINT_COIN * points[seat],),  # the score in whole coin
            {
                "coin": state.coin[seat],
                "wealth": wealth[seat],
                "quest_points": points[seat],
                "delivered": sum(state.delivered[seat]),
                "robberies": state.robberies[seat],
                "robbed": state.robbed[seat],
            },
        )
        for seat in range(SEATS)
    ]
    return Results(state.reason, state.turns_played, tuple(seats))
