"""How a table is set up: seventy tiles, the hands, the board, its locks; the seed alone decides."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.core.rng import stream
from cogeval.games.cogz import rules
from cogeval.games.cogz.chains import Layout
from cogeval.games.cogz.state import Parameters, State
from cogeval.games.cogz.tiles import PLACED, TILE_OF, TILE_TEXTS

AsSlow = Callable[[Layout], Any]
Locked = Callable[[Layout], set[Any]]

SEEDS = st.integers(-(1 << 63), (1 << 63) - 1)
TABLES = st.builds(
    Parameters,
    seats=st.integers(2, 6),
    pair_copies=st.sampled_from((1, 3, 5, 7, 9, 11)),
    nuts_per_colour=st.integers(0, 12),
)


def dealt_of(state: State) -> list[str]:
    """Every tile on the board and in the hands."""
    in_hands = [TILE_TEXTS[tile] for hand in state.hands for tile in hand]
    return in_hands + [TILE_TEXTS[TILE_OF[code]] for code in state.layout.board]


@settings(deadline=None, max_examples=60)
@given(SEEDS, TABLES)
def test_r1_4_the_bag_is_shuffled_then_hands_are_dealt_then_the_board_is_laid(
    seed: int, parameters: Parameters
) -> None:
    draws = stream(seed, "cogz")
    singles = (70 - 6 * parameters.pair_copies) // 4
    bag = [
        text for text in TILE_TEXTS for _ in range(singles if text[0] == text[1] else parameters.pair_copies)
    ]
    assert len(bag) == 70
    draws.shuffle(bag)
    state, seats = rules.opening_state(parameters, seed), parameters.seats
    rows, columns = {2: (5, 5), 3: (5, 6), 4: (6, 6), 5: (6, 7), 6: (7, 7)}[seats]
    assert [len(hand) for hand in state.hands] == [3] * seats
    assert dealt_of(state)[: 3 * seats] == bag[: 3 * seats]
    laid = [(text, draws.below(4)) for text in bag[3 * seats : 3 * seats + rows * columns]]
    assert (state.layout.rows, state.layout.columns) == (rows, columns)
    assert list(state.layout.board) == [PLACED[TILE_TEXTS.index(text)][turns] for text, turns in laid]
    assert len(dealt_of(state)) == {2: 31, 3: 39, 4: 48, 5: 57, 6: 67}[seats]


@settings(deadline=None, max_examples=60)
@given(SEEDS, TABLES)
def test_r1_4_mechanisms_of_the_set_up_are_locked_and_nobody_has_anything(
    as_slow: AsSlow, locked: Locked, slow: ModuleType, seed: int, parameters: Parameters
) -> None:
    state = rules.opening_state(parameters, seed)
    assert locked(state.layout) == slow.locked_in(as_slow(state.layout))
    assert set(state.points) == set(state.nuts) == {(0, 0, 0, 0)}
    assert state.supply == (parameters.nuts_per_colour,) * 4
    assert (state.round, state.seat, state.pending, state.bonus, state.swaps) == (0, 0, 1, False, 0)
    assert (state.reason, state.record) == ("", ())


@pytest.mark.parametrize(("pair", "single"), [(1, 16), (3, 13), (5, 10), (7, 7), (9, 4), (11, 1)])
def test_r2_2_there_are_70_tiles_however_they_are_split(pair: int, single: int) -> None:
    assert rules.single_copies(pair) == single
    assert 6 * pair + 4 * single == 70
    for seed in range(30):
        dealt = dealt_of(rules.opening_state(Parameters(seats=6, pair_copies=pair), seed))
        for tile in TILE_TEXTS:
            assert dealt.count(tile) <= (single if tile[0] == tile[1] else pair)


@pytest.mark.parametrize("seats", range(2, 7))
def test_r1_4_different_seeds_are_different_tables(seats: int) -> None:
    openings = [rules.opening_state(Parameters(seats=seats), seed) for seed in range(-20, 20)]
    assert len({(bytes(state.layout.board), state.hands) for state in openings}) == 40
    assert openings == [rules.opening_state(Parameters(seats=seats), seed) for seed in range(-20, 20)]
