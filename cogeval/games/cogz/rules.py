"""The course of an episode: how it is set up, how a swap leads to the next, how it ends.

Invariant: after the set-up there is no chance; every function takes a state and gives new values; the
numbers (R5.1) are those of RULES.md. Must not know agents, observations or text.
"""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from cogeval.core.game import Results, SeatResult, Step
from cogeval.core.rng import stream
from cogeval.games.cogz.chains import Layout, make_layout, swapped, value_of
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.state import (
    Action,
    Colours,
    Ended,
    Event,
    Hand,
    Parameters,
    Passed,
    Started,
    State,
    Swap,
)
from cogeval.games.cogz.tiles import (
    COLOUR_NAMES,
    HAND,
    NUM_COLOURS,
    NUM_ROTATIONS,
    PLACED,
    SHAPES,
    TILE_OF,
    TILES,
)

T = TypeVar("T")

NUM_TILES: Final = 70
LEVER_BASE: Final = 20

_NONE: Final[Colours] = (0,) * NUM_COLOURS
_UNSEEN: Final = (False,) * HAND


def single_copies(pair_copies: int) -> int:
    """Copies of each tile of one colour, so that there are 70 in all."""
    return (NUM_TILES - 6 * pair_copies) // 4


def lever_of(parameters: Parameters) -> int:
    """The first space that counts as past the bonus lever (R4.5)."""
    return parameters.lever or LEVER_BASE - parameters.seats


def opening_state(parameters: Parameters, seed: int) -> State:
    """The state in which the first seat decides (R1.4)."""
    draws = stream(seed, "cogz")
    singles = single_copies(parameters.pair_copies)
    bag = [
        tile
        for tile, (a, b) in enumerate(TILES)
        for _ in range(singles if a == b else parameters.pair_copies)
    ]
    draws.shuffle(bag)
    seats, shape = parameters.seats, SHAPES[parameters.seats]
    hands = tuple([tuple(bag[HAND * seat : HAND * (seat + 1)]) for seat in range(seats)])
    laid = bag[HAND * seats : HAND * seats + shape.rows * shape.columns]
    board = bytes([PLACED[tile][draws.below(NUM_ROTATIONS)] for tile in laid])
    layout = make_layout(shape.rows, shape.columns, board)
    if not parameters.setup_locks:
        layout = replace(layout, locked=bytes(len(board)))
    return _first_able(parameters, arranged(parameters, layout, hands), 0, 0, 1, False, [])


def arranged(parameters: Parameters, layout: Layout, hands: tuple[Hand, ...]) -> State:
    """A state before the first swap, on any board and with any hands."""
    seats = parameters.seats
    return State(
        layout=layout,
        round=0,
        seat=0,
        pending=1,
        bonus=False,
        swaps=0,
        reason="",
        hands=hands,
        seen=(_UNSEEN,) * seats,
        points=(_NONE,) * seats,
        nuts=(_NONE,) * seats,
        supply=(parameters.nuts_per_colour,) * NUM_COLOURS,
        bonuses=(0,) * seats,
        record=(),
    )


def opening_events(state: State) -> tuple[Event, ...]:
    """The events that precede the first decision; no step carries them."""
    return (Started(tuple(state.layout.board)),)


def swap(parameters: Parameters, state: State, action: Action) -> Step[State]:
    """Carries out a legal swap of the seat whose turn it is (R4), then passes the turn on (R5)."""
    resolved, event = swapped_state(parameters, state, action)
    events: list[Event] = [event]
    opened = _next_turn(parameters, resolved, events)
    return Step(opened, resolved, tuple(events))


def swapped_state(parameters: Parameters, state: State, action: Action) -> tuple[State, Swap]:
    """The state after a swap and before the turn is passed on, and what the swap did."""
    seat, layout = state.seat, state.layout
    hand, seen = state.hands[seat], state.seen[seat]
    slot, cell = action.slot, action.row * layout.columns + action.column
    code, taken = PLACED[hand[slot]][action.rotation], TILE_OF[layout.board[cell]]
    value = value_of(layout, cell, code)
    supply, nuts = state.supply, _NONE
    for colour in value.mechanisms:
        if supply[colour]:  # R4.4
            supply, nuts = _plus(supply, colour, -1), _plus(nuts, colour, 1)
    points = tuple([old + new for old, new in zip(state.points[seat], value.points, strict=True)])
    lever = lever_of(parameters)
    levers = sum(old < lever <= new for old, new in zip(state.points[seat], points, strict=True))  # R4.5
    event = Swap(
        state.round, seat, state.bonus, action.row, action.column, code, taken, not seen[slot],
        value.points, nuts, value.mechanisms, levers,
    )  # fmt: skip
    after = State(
        swapped(layout, cell, code, locks=bool(value.mechanisms)),
        state.round,
        seat,
        state.pending - 1 + levers,
        state.bonus,
        state.swaps + 1,
        "",
        _with(state.hands, seat, (*hand[:slot], taken, *hand[slot + 1 :])),
        _with(state.seen, seat, (*seen[:slot], True, *seen[slot + 1 :])),
        _with(state.points, seat, points),
        _with(state.nuts, seat, _sum(state.nuts[seat], nuts)) if value.mechanisms else state.nuts,
        supply,
        _with(state.bonuses, seat, state.bonuses[seat] + levers) if levers else state.bonuses,
        (*state.record, event),
    )
    return after, event


def _next_turn(parameters: Parameters, state: State, events: list[Event]) -> State:
    """Who decides next: the same seat while it has swaps left, else the next that can swap (R5)."""
    if state.pending:
        return _first_able(parameters, state, state.seat, state.round, state.pending, True, events)
    return _first_able(parameters, state, state.seat + 1, state.round, 1, False, events)


def _first_able(
    parameters: Parameters,
    state: State,
    seat: int,
    round_: int,
    pending: int,
    bonus: bool,
    events: list[Event],
) -> State:
    """The state in which this seat decides, or the next one that has a legal swap (R5.4)."""
    while True:
        if seat == parameters.seats:
            seat, round_ = 0, round_ + 1
        if round_ == SHAPES[parameters.seats].rounds:
            events.append(Ended("complete"))
            return replace(state, seat=-1, round=round_, pending=0, bonus=False, reason="complete")
        if Swaps(state.layout, state.hands[seat]):
            return replace(state, seat=seat, round=round_, pending=pending, bonus=bonus)
        events.append(Passed(round_, seat))
        seat, pending, bonus = seat + 1, 1, False


def end(state: State, reason: str) -> Step[State]:
    """Ends the episode as it stands (R6.3)."""
    return Step(replace(state, reason=reason, seat=-1, pending=0, bonus=False), state, (Ended(reason),))


def rank_key(final: Colours) -> tuple[float, ...]:
    """The colours from the lowest up: the first that differs decides (R6.2)."""
    return tuple(sorted(final))


def results(state: State) -> Results:
    """The outcome of a finished episode (R6)."""
    seats = [
        SeatResult(
            float(min(final)),
            rank_key(final),
            {
                **dict(zip(COLOUR_NAMES, final, strict=True)),
                "total": sum(final),
                "nuts": sum(state.nuts[seat]),
                "bonus_turns": state.bonuses[seat],
                "swaps": sum(swap.seat == seat for swap in state.record),
            },
        )
        for seat, final in enumerate(state.finals)
    ]
    return Results(state.reason, state.swaps, tuple(seats))


def _plus(numbers: Colours, colour: int, change: int) -> Colours:
    return (*numbers[:colour], numbers[colour] + change, *numbers[colour + 1 :])


def _sum(a: Colours, b: Colours) -> Colours:
    return tuple([x + y for x, y in zip(a, b, strict=True)])


def _with(column: tuple[T, ...], seat: int, value: T) -> tuple[T, ...]:
    return (*column[:seat], value, *column[seat + 1 :])
