"""The baselines (R9): what each prefers, that they peek nowhere, and that they rise in strength."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from cogeval.core.rng import stream
from cogeval.errors import InputError
from cogeval.games.cogz import Cogz, baselines, lookahead, rules
from cogeval.games.cogz.candidates import on_grid
from cogeval.games.cogz.chains import value_of
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.state import Action, Parameters, State
from cogeval.games.cogz.tiles import PLACED

Walk = Callable[[Parameters, int], Iterator[Any]]


def outcome(state: State, action: Action, seat: int) -> tuple[list[int], list[int], int]:
    """Points and nuts of each colour after a swap of the seat, and the bonus turns won: one arc at a time."""
    cell = action.row * state.layout.columns + action.column
    value = value_of(state.layout, cell, PLACED[state.hands[seat][action.slot]][action.rotation])
    points = [old + new for old, new in zip(state.points[seat], value.points, strict=True)]
    nuts, supply = list(state.nuts[seat]), list(state.supply)
    for colour in value.mechanisms:
        if supply[colour]:
            supply[colour] -= 1
            nuts[colour] += 1
    lever = 20 - len(state.hands)
    return points, nuts, sum(o < lever <= n for o, n in zip(state.points[seat], points, strict=True))


def total(state: State, action: Action) -> float:
    return sum(outcome(state, action, state.seat)[0])


def ascending(state: State, action: Action) -> list[int]:
    return sorted(outcome(state, action, state.seat)[0])


def logarithms(state: State, action: Action) -> float:
    points, nuts, levers = outcome(state, action, state.seat)
    return sum(math.log(p + 2 * n + 2) for p, n in zip(points, nuts, strict=True)) + 0.6 * levers


@pytest.mark.parametrize("seats", [2, 4, 6])
@pytest.mark.parametrize(("name", "worth"), [("greedy_total", total), ("greedy_lowest", ascending)])
def test_the_greedy_ones_take_the_first_of_the_best(walk: Walk, seats: int, name: str, worth: Any) -> None:
    parameters = Parameters(seats)
    for state, _, _ in list(walk(parameters, 3))[::5]:
        best = max(Swaps(state.layout, state.hands[state.seat]), key=lambda swap: worth(state, swap))
        assert baselines.decide(name, parameters, state, state.seat) == best


@pytest.mark.parametrize("seats", [2, 4, 6])
def test_balanced_takes_the_best_sum_of_logarithms(walk: Walk, seats: int) -> None:
    parameters = Parameters(seats)
    for state, _, _ in list(walk(parameters, 8))[::4]:
        best = max(logarithms(state, swap) for swap in Swaps(state.layout, state.hands[state.seat]))
        chosen = baselines.decide("balanced", parameters, state, state.seat)
        assert logarithms(state, chosen) == pytest.approx(best, abs=1e-5)


def calm_worth(state: State, swap: Action, seat: int, lowest: int, turns: int) -> float:
    calm = 2.0 + 0.5 * turns
    points, nuts, _ = outcome(state, swap, seat)
    before = [p + 2 * n - lowest for p, n in zip(state.points[seat], state.nuts[seat], strict=True)]
    after = [p + 2 * n - lowest for p, n in zip(points, nuts, strict=True)]
    return calm * sum(math.exp(-b / calm) - math.exp(-a / calm) for b, a in zip(before, after, strict=True))


def prospect(parameters: Parameters, state: State, swap: Action) -> float:
    """What `lookahead` says it maximizes, for two seats and a lever that is out of reach."""
    seat, other, turns = state.seat, 1 - state.seat, 8 - state.round
    lowest, threat = min(state.finals[seat]), min(state.finals[other])
    after, _ = rules.swapped_state(parameters, state, swap)
    worth = calm_worth(state, swap, seat, lowest, turns)
    if turns:
        following = Swaps(after.layout, after.hands[seat])
        worth += 0.5 * max(calm_worth(after, again, seat, lowest, turns - 1) for again in following)
    left = turns - (other < seat)
    if left >= 0:
        replies = Swaps(after.layout, after.hands[other])
        worth -= 0.5 * max(calm_worth(after, reply, other, threat, left) for reply in replies)
    return worth


@pytest.mark.parametrize(
    ("index", "seed"), [(1, 2), (6, 2), *itertools.product((14, 16, 17), (2, 3, 4, 5, 6, 7))]
)
def test_lookahead_takes_the_best_prospect(walk: Walk, monkeypatch: Any, index: int, seed: int) -> None:
    """Without pruning and with open hands; at 16 and 17 the seats have their last turns."""
    parameters = Parameters(open_hands=True, lever=99)
    state = list(walk(parameters, seed))[index][0]
    monkeypatch.setattr(lookahead, "_WIDTHS", (10**6,))
    best = max(prospect(parameters, state, swap) for swap in Swaps(state.layout, state.hands[state.seat]))
    chosen = baselines.decide("lookahead", parameters, state, state.seat)
    assert prospect(parameters, state, chosen) == pytest.approx(best, abs=1e-5)


def last_worth(state: State) -> float:
    return -sum(math.exp(-final / 2) for final in state.finals[1])


@pytest.mark.parametrize("seed", [0, 1])
def test_lookahead_plays_out_the_bonus_turns_that_a_swap_wins(
    walk: Walk, monkeypatch: Any, seed: int
) -> None:
    """The last turn of a game, in which red wins a bonus turn: no pair of swaps ends better (R4.5, R5.2)."""
    parameters = Parameters(lever=3)
    state = list(walk(Parameters(lever=99), seed))[-1][0]
    state = replace(state, points=((9,) * 4, (1, 6, 4, 5)))
    monkeypatch.setattr(lookahead, "_WIDTHS", (10**6,))
    ends = []
    for swap in Swaps(state.layout, state.hands[1]):
        after = rules.swap(parameters, state, swap).next
        again = () if after.reason else Swaps(after.layout, after.hands[1])
        ends += [rules.swap(parameters, after, bonus).next for bonus in again] or [after]
    while not state.reason:
        action = baselines.decide("lookahead", parameters, state, state.seat)
        state = rules.swap(parameters, state, action).next
    assert last_worth(state) == pytest.approx(max(map(last_worth, ends)), rel=1e-4)
    assert state.swaps > 18


@pytest.mark.parametrize("name", baselines.BASELINES)
@pytest.mark.parametrize("seats", [2, 3, 4, 5, 6])
def test_every_swap_of_an_episode_is_legal_and_the_state_stays_as_it_was(name: str, seats: int) -> None:
    parameters = Parameters(seats)
    state = rules.opening_state(parameters, 11)
    while not state.reason:
        before = pickle.dumps(state)
        action = baselines.decide(name, parameters, state, state.seat)
        assert Swaps(state.layout, state.hands[state.seat]).why_illegal(action) is None
        assert pickle.dumps(state) == before
        assert baselines.decide(name, parameters, state, state.seat) == action
        state = rules.swap(parameters, state, action).next
    assert state.reason == "complete"


@pytest.mark.parametrize("name", baselines.BASELINES)
def test_nobody_peeks_at_what_is_hidden(walk: Walk, name: str) -> None:
    game, parameters = Cogz(seats=3), Parameters(3)
    for state, _, _ in list(walk(parameters, 4))[:12]:
        other = game.resample_hidden(state, state.seat, np.random.default_rng(1))
        action = baselines.decide(name, parameters, state, state.seat)
        assert baselines.decide(name, parameters, other, state.seat) == action


def test_an_unknown_baseline_is_named_with_the_known_ones() -> None:
    state = rules.opening_state(Parameters(), 0)
    with pytest.raises(InputError, match="lookahead"):
        baselines.decide("lookahed", Parameters(), state, 0)


@cache
def final_keys(seed: int, first: str, second: str) -> tuple[tuple[float, ...], ...]:
    parameters, rng = Parameters(), stream(seed, "chance")
    state = rules.opening_state(parameters, seed)
    while not state.reason:
        name = (first, second)[state.seat]
        if name == "random":
            action = Swaps(state.layout, state.hands[state.seat]).sample(rng)
        else:
            action = baselines.decide(name, parameters, state, state.seat)
        state = rules.swap(parameters, state, action).next
    return tuple(rules.rank_key(final) for final in state.finals)


LADDER = ("random", "greedy_total", "greedy_lowest", "balanced", "lookahead")


@pytest.mark.parametrize(("weaker", "stronger"), list(itertools.pairwise(LADDER)))
def test_each_baseline_beats_the_one_below_it(weaker: str, stronger: str) -> None:
    """Twenty seeds, each from both seats; the ladder in docs/games/cogz.md has the intervals."""
    won = 0
    for seed in range(20):
        ours, theirs = final_keys(seed, stronger, weaker)
        won += ours > theirs
        theirs, ours = final_keys(seed, weaker, stronger)
        won += ours > theirs
    assert won >= 24, f"{stronger} won {won} of 40 against {weaker}"


@pytest.mark.parametrize("name", baselines.BASELINES)
def test_a_baseline_decides_for_the_seat_on_turn_only(name: str) -> None:
    state = rules.opening_state(Parameters(), 7)
    with pytest.raises(ValueError, match="expected the seat whose turn it is"):
        baselines.decide(name, Parameters(), state, 1)
    with pytest.raises(ValueError, match="nobody"):
        baselines.decide(name, Parameters(), rules.end(state, "deadline").next, 0)


def test_values_lie_on_a_grid_so_that_sums_and_ties_are_exact() -> None:
    values = on_grid(np.array([math.log(3), math.exp(-1), 0.6]))
    assert np.array_equal(values * 2**20, np.rint(values * 2**20))
    assert values == pytest.approx([math.log(3), math.exp(-1), 0.6], abs=2**-20)
