"""The scripted baselines, rising in strength (R9).

Invariant: a pure function of the state and the seat, that uses only what the seat may know. Of equal swaps
the first in the game's order is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np

from cogeval.errors import unknown_name
from cogeval.games.cogz.candidates import MECHANISMS, NUM_WORTHS, POINTS, Candidates, Floats, on_grid
from cogeval.games.cogz.lookahead import lookahead
from cogeval.games.cogz.rules import lever_of
from cogeval.games.cogz.state import NUT_POINTS, Action, Parameters, State
from cogeval.games.cogz.tiles import NUM_COLOURS

BASELINES: Final = ("balanced", "greedy_total", "greedy_lowest", "lookahead")

_OFFSET: Final = 2.0  # added to a colour before its logarithm: what the first point is worth beside the tenth
_LEVER_WORTH: Final = 0.6  # of a bonus turn, in units of the logarithm

_PLAIN: Final[Floats] = POINTS.astype(np.float64)
_NOTHING: Final[Floats] = np.zeros(NUM_WORTHS)
_PLACES: Final[Floats] = np.array(
    [1e9, 1e6, 1e3, 1.0]
)  # of a sorted vector's colours, far below 1000: keys are exact


def decide(name: str, parameters: Parameters, state: State, seat: int) -> Action:
    """The swap of the baseline of that name.

    Raises:
        InputError: when there is none of that name.
        ValueError: when it is not the seat's turn.
    """
    if state.seat != seat:
        raise ValueError(f"expected the seat whose turn it is ({state.seat}, -1 for nobody), got {seat}")
    decider = _DECIDERS.get(name)
    if decider is None:
        raise unknown_name("baseline of cogz", name, BASELINES)
    return decider(parameters, state, seat)


def greedy_total(parameters: Parameters, state: State, seat: int) -> Action:  # noqa: ARG001 - all baselines are called alike
    """Takes the most points, whatever their colours (R9)."""
    candidates = Candidates(state.layout, state.hands[seat])
    return candidates.action(int(candidates.weigh((_PLAIN,) * NUM_COLOURS).argmax()))


def greedy_lowest(parameters: Parameters, state: State, seat: int) -> Action:  # noqa: ARG001 - the same
    """Makes the colours' vector, sorted ascending, the greatest; nuts do not count (R9)."""
    candidates = Candidates(state.layout, state.hands[seat])
    colours = range(NUM_COLOURS)
    reached = np.array(
        [
            candidates.weigh([_PLAIN if other == colour else _NOTHING for other in colours])
            + state.points[seat][colour]
            for colour in colours
        ]
    )
    reached.sort(axis=0)
    keys = np.tensordot(_PLACES, reached, 1)
    return candidates.action(int(keys.argmax()))


def balanced(parameters: Parameters, state: State, seat: int) -> Action:
    """Takes the greatest sum of logarithms of the colours, with nuts and bonus turns (R9)."""
    lever, supply = lever_of(parameters), state.supply
    tables = [
        _logarithms(points, nuts, left, lever)
        for points, nuts, left in zip(state.points[seat], state.nuts[seat], supply, strict=True)
    ]
    candidates = Candidates(state.layout, state.hands[seat])
    return candidates.action(int(candidates.weigh(tables).argmax()))


@lru_cache(1024)
def _logarithms(points: int, nuts: int, supply: int, lever: int) -> Floats:
    """What each worth adds for a colour that has so many points and nuts."""
    reached = points + POINTS
    kept = reached + NUT_POINTS * (nuts + np.minimum(MECHANISMS, supply))
    gain = np.log(kept + _OFFSET) - np.log(points + NUT_POINTS * nuts + _OFFSET)
    return on_grid(gain + _LEVER_WORTH * ((reached >= lever) & (points < lever)))


_DECIDERS: Final[dict[str, Callable[[Parameters, State, int], Action]]] = {
    "balanced": balanced,
    "greedy_total": greedy_total,
    "greedy_lowest": greedy_lowest,
    "lookahead": lookahead,
}
