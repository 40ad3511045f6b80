"""The strongest baseline: plays out its best swaps and weighs what each of them leads to (R9).

Invariant: a pure function of the state and the seat that decides; of another hand it reads only the tiles
that the seat knows. A point is worth less the higher its colour stands, and the more so the fewer turns are
left. The constants are measured, no rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import exp
from typing import Final, NamedTuple

import numpy as np

from cogeval.games.cogz.candidates import MECHANISMS, POINTS, Candidates, Floats, on_grid
from cogeval.games.cogz.rules import lever_of, swapped_state
from cogeval.games.cogz.state import NUT_POINTS, Action, Hand, Parameters, State
from cogeval.games.cogz.tiles import SHAPES

_WIDTHS: Final = (
    8,
    4,
    2,
)  # swaps played out: of the turn at hand, of its first bonus turn, of each further one
_CALM: Final = 2.0  # points up a colour at which one is worth a factor e less, in the last turn
_CALM_A_TURN: Final = 0.5  # added for each turn that is left
_NEXT: Final = 0.5  # share of the seat's best next swap that counts: others may spoil it
_REPLY: Final = 0.5  # share of the next seat's best reply
_BONUS: Final = 3.0  # points of the lowest colour: what a bonus turn is worth before it is played out


class _Side(NamedTuple):
    """What a seat can do and what it wants, fixed while one swap is being decided."""

    seat: int
    hand: Hand  # as far as it is known; of the deciding seat that of the state counts
    lever: int
    lowest: int  # of its colours at the start: points are counted from there
    turns: int  # after the present one


class _Outlook(NamedTuple):
    """The sides that a prospect looks at."""

    parameters: Parameters
    own: _Side
    rival: _Side | None  # the next seat; None when it has no turn left or nothing of its hand is known


def lookahead(parameters: Parameters, state: State, seat: int) -> Action:
    """Takes the swap of the best prospect: what it is worth, and the next one, less the best reply (R9)."""
    turns = SHAPES[parameters.seats].rounds - 1 - state.round
    lever, finals = lever_of(parameters), state.finals
    other = (seat + 1) % parameters.seats
    known = tuple(
        [
            tile
            for tile, seen in zip(state.hands[other], state.seen[other], strict=True)
            if seen or parameters.open_hands
        ]
    )
    rival = _Side(other, known, lever, min(finals[other]), turns - (other < seat))
    own = _Side(seat, state.hands[seat], lever, min(finals[seat]), turns)
    outlook = _Outlook(parameters, own, rival if known and rival.turns >= 0 else None)
    candidates = Candidates(state.layout, own.hand)
    index = max(_prospects(outlook, state, candidates, 0))[1]
    return candidates.action(-index)


def _prospects(
    outlook: _Outlook, state: State, candidates: Candidates, depth: int
) -> Iterator[tuple[float, int]]:
    """Of each swap that looks best: its prospect, and minus its index so that the first of equals wins."""
    own = outlook.own
    values = candidates.weigh(_tables(state, own, own.turns)).ravel()
    for index in np.argsort(-values, kind="stable")[: _WIDTHS[min(depth, len(_WIDTHS) - 1)]].tolist():
        if values[index] == -np.inf:
            return
        after, swap = swapped_state(outlook.parameters, state, candidates.action(index))
        worth = float(values[index]) - swap.levers * _bonus(own.turns)
        yield worth + _future(outlook, after, depth), -index


def _future(outlook: _Outlook, state: State, depth: int) -> float:
    """What comes after a swap: the bonus turns, or else the next turn less the rival's reply."""
    own, rival, future = outlook.own, outlook.rival, 0.0
    if state.pending or own.turns:
        candidates = Candidates(state.layout, state.hands[own.seat])
        if state.pending:
            best = max(_prospects(outlook, state, candidates, depth + 1), default=None)
            if best is not None:
                return best[0]
        if own.turns:
            future += _NEXT * max(0.0, float(candidates.weigh(_tables(state, own, own.turns - 1)).max()))
    if rival is not None:
        replies = Candidates(state.layout, rival.hand).weigh(_tables(state, rival, rival.turns))
        future -= _REPLY * max(0.0, float(replies.max()))
    return future


def _tables(state: State, side: _Side, turns: int) -> list[Floats]:
    """What each worth of each colour adds for a side (`Candidates.weigh`)."""
    points, nuts, lowest = state.points[side.seat], state.nuts[side.seat], side.lowest
    return [
        _table(stands - lowest, won, left, side.lever - lowest, turns)
        for stands, won, left in zip(points, nuts, state.supply, strict=True)
    ]


@lru_cache(1024)
def _table(points: int, nuts: int, supply: int, lever: int, turns: int) -> Floats:
    calm = _CALM + _CALM_A_TURN * turns
    reached = points + POINTS
    kept = reached + NUT_POINTS * (nuts + np.minimum(MECHANISMS, supply))
    gain = calm * (exp(-(points + NUT_POINTS * nuts) / calm) - np.exp(-kept / calm))
    return on_grid(gain) + _bonus(turns) * ((reached >= lever) & (points < lever))


@lru_cache
def _bonus(turns: int) -> float:
    calm = _CALM + _CALM_A_TURN * turns
    return float(on_grid(np.array(calm * (1.0 - exp(-_BONUS / calm)))))
