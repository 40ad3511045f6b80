"""What moves is never made or lost, but as the rules say: whole random episodes, and single acts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.core.game import Step
from cogeval.core.rng import stream
from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.state import Act, State
from cogeval.games.cogmud.world import KEEPERS, VALUES

SEEDS = st.integers(0, 1 << 62)
GAMES = st.fixed_dictionaries(
    {"turns": st.integers(6, 40), "speech": st.booleans(), "thievery": st.booleans()}
)


def coin(state: State) -> int:
    return sum(state.coin) + sum(state.till)


def units(state: State) -> list[int]:
    """Units of each good in town."""
    everywhere = (*state.pack, *state.stock, *state.floor)
    return [sum(place[good] for place in everywhere) for good in range(6)]


def walk(seed: int, parameters: dict[str, Any]) -> Iterator[tuple[State, Step[State]]]:
    """Every open state of an episode of random phrases, and the step from it."""
    game, rng = Cogmud(**parameters), stream(seed, "conservation")
    state = game.initial_state(seed)
    while decisions := game.decisions(state):
        step = game.step(state, {d.seat: d.legal.sample(rng) for d in decisions})
        yield state, step
        state = step.next


@settings(deadline=None, max_examples=40)
@given(SEEDS, GAMES)
def test_coin_moves_and_is_never_made_or_lost(seed: int, parameters: dict[str, Any]) -> None:
    for state, step in walk(seed, parameters):
        assert coin(state) == coin(step.resolved) == coin(step.next) == 6 * 40 + 5 * 120


@settings(deadline=None, max_examples=40)
@given(SEEDS, GAMES)
def test_goods_come_from_restock_only_and_go_over_full_counters_only(
    seed: int, parameters: dict[str, Any]
) -> None:
    for state, step in walk(seed, parameters):
        handed = {
            event.item
            for event in step.events
            if isinstance(event, Act) and event.intent in ("sell", "give") and event.npc >= 0
        }
        for good, (before, after) in enumerate(zip(units(state), units(step.resolved), strict=True)):
            assert after == before or (after < before and good in handed)
            if after < before:  # a pack holds 8: a counter had 5 or more before somebody laid more on it
                assert max(stock[good] for stock in state.stock) > 12 - 8
        if not step.next.reason:
            grown = [b - a for a, b in zip(units(step.resolved), units(step.next), strict=True)]
            due = [0] * 6
            for k, keeper in enumerate(KEEPERS):
                good = keeper.deals[step.next.turn % len(keeper.deals)]
                due[good] += step.resolved.stock[k][good] < 12
            assert grown == due


@settings(deadline=None, max_examples=40)
@given(SEEDS, GAMES)
def test_no_pack_above_8_no_stock_above_12_nothing_negative(seed: int, parameters: dict[str, Any]) -> None:
    for _, step in walk(seed, parameters):
        for state in (step.resolved, step.next):
            assert all(0 <= sum(pack) <= 8 and min(pack) >= 0 for pack in state.pack)
            assert all(0 <= unit <= 12 for stock in state.stock for unit in stock)
            assert all(unit >= 0 for floor in state.floor for unit in floor)
            assert min(*state.coin, *state.till) >= 0
            assert all(0 <= done <= 2 for delivered in state.delivered for done in delivered)
            assert all(0 <= bond <= 3 for bond in state.bond)
            assert all((who < 0) == (bond == 0) for who, bond in zip(state.employer, state.bond, strict=True))


@settings(deadline=None, max_examples=40)
@given(SEEDS, GAMES)
def test_the_score_is_its_formula(seed: int, parameters: dict[str, Any]) -> None:
    for _, step in walk(seed, parameters):
        state = step.next
        for seat in range(6):
            held = sum(n * value for n, value in zip(state.pack[seat], VALUES, strict=True))
            points = sum(4 * done + (8 if done == 2 else 0) for done in state.delivered[seat])
            assert state.points[seat] == points
            assert state.scores[seat] == (state.coin[seat] + held + 3 * points - 40) / 40


@settings(deadline=None, max_examples=30)
@given(SEEDS)
def test_every_seat_acts_once_a_turn_and_refusals_move_nothing(seed: int) -> None:
    for state, step in walk(seed, {"turns": 14}):
        acts = [event for event in step.events if isinstance(event, Act)]
        assert sorted(act.seat for act in acts) == list(range(6))
        assert sorted(act.order for act in acts) == list(range(6))
        if all(act.reason not in ("ok", "robbery_failed", "no_matching_commission") for act in acts):
            assert step.resolved.coin == state.coin
            assert step.resolved.pack == state.pack
            assert step.resolved.stock == state.stock


def test_walks_reach_every_way_in_which_things_move() -> None:
    seen: set[tuple[str, str]] = set()
    for seed in range(30):
        for _, step in walk(seed, {"turns": 20}):
            seen |= {(event.intent, event.reason) for event in step.events if isinstance(event, Act)}
    moving = {"buy", "sell", "take", "drop", "give", "accept", "rob", "move", "trade", "hire", "quest", "say"}
    assert {kind for kind, reason in seen if reason == "ok"} == moving
    assert ("rob", "robbery_failed") in seen
