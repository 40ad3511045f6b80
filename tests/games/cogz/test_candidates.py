"""All swaps weighed at once are worth what `chains.value_of` says of each (R3.4, R4.1 to R4.3)."""

from __future__ import annotations

import doctest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cogeval.games.cogz.candidates import MECHANISMS, NUM_WORTHS, POINTS, Candidates
from cogeval.games.cogz.chains import Layout, chain, is_legal, layout_of, make_layout, swapped, value_of
from cogeval.games.cogz.legal import Swaps, choices
from cogeval.games.cogz.state import Hand, Parameters
from cogeval.games.cogz.tiles import TILE_TEXTS, TILES, parse_placed, placed_code

COLOURS = range(4)
NOTHING = np.zeros(NUM_WORTHS)


def one_colour(colour: int, values: Any) -> list[Any]:
    return [values.astype(float) if other == colour else NOTHING for other in COLOURS]


def check_against_values(layout: Layout, hand: Hand) -> None:
    candidates = Candidates(layout, hand)
    points = [candidates.weigh(one_colour(colour, POINTS)) for colour in COLOURS]
    mechanisms = [candidates.weigh(one_colour(colour, MECHANISMS)) for colour in COLOURS]
    for row, (_, _, code) in enumerate(choices(hand)):
        for cell in range(len(layout.board)):
            got = ([p[row, cell] for p in points], [m[row, cell] for m in mechanisms])
            if is_legal(layout, cell, code):
                value = value_of(layout, cell, code)
                assert got == (list(value.points), [value.mechanisms.count(c) for c in COLOURS]), (cell, code)
            else:
                assert got == ([-np.inf] * 4, [-np.inf] * 4), (cell, code)


@st.composite
def boards(draw: st.DrawFn) -> Layout:
    """Of few colours often, so that chains come back to where they began."""
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    colour = st.integers(0, draw(st.integers(0, 3)))
    tile = st.builds(placed_code, st.integers(0, 1), colour, colour)
    layout = make_layout(
        rows, columns, bytes(draw(st.lists(tile, min_size=rows * columns, max_size=rows * columns)))
    )
    return layout if draw(st.booleans()) else replace(layout, locked=bytes(rows * columns))


@settings(max_examples=150, deadline=None)
@given(boards(), st.lists(st.integers(0, len(TILES) - 1), min_size=1, max_size=3).map(tuple))
def test_every_swap_on_any_board_is_worth_what_its_chains_say(layout: Layout, hand: Hand) -> None:
    check_against_values(layout, hand)


@pytest.mark.parametrize("seats", [2, 3, 4, 5, 6])
def test_every_swap_along_an_episode_is_worth_what_its_chains_say(
    walk: Callable[[Parameters, int], Iterator[Any]], seats: int
) -> None:
    for state, _, _ in list(walk(Parameters(seats), 5))[::4]:
        check_against_values(state.layout, state.hands[state.seat])


ROUND_A_CELL = {
    "ring round an arc": ["1YR 1RG 1BY", "0GY 0RR 1GB", "0RG 0BR 0YB"],
    "two arcs, one open chain": ["1RY 0GB 0BY", "0BB 0BY 0YG", "1RY 0GG 1YG"],
    "two arcs, one mechanism": ["0BY 0GG 0BR", "0GY 1YG 1YG", "0YR 1YR 1BG"],
    "two rings of one colour": ["1RG 0RR 1RY", "0RY 1GY 0YR", "1GR 0RY 1RR"],
    "everything is one ring": ["1RR 0RR 1RR", "0RR 1RR 0RR", "1RR 0RR 1RR"],
}


@pytest.mark.parametrize("name", ROUND_A_CELL)
@pytest.mark.parametrize("hand", ["RR GG RG", "GR RR BB", "GG YY BB"])
def test_chains_that_come_back_to_the_cell(name: str, hand: str) -> None:
    tiles = tuple(
        TILES.index(tuple(sorted("RGBY".index(letter) for letter in tile))) for tile in hand.split()
    )
    layout = layout_of(ROUND_A_CELL[name])
    check_against_values(layout, tiles)
    check_against_values(replace(layout, locked=bytes(9)), tiles)


@settings(max_examples=60, deadline=None)
@given(boards(), st.tuples(*[st.integers(0, len(TILES) - 1)] * 3))
def test_swaps_come_in_the_canonical_order(layout: Layout, hand: Hand) -> None:
    candidates = Candidates(layout, hand)
    legal = np.flatnonzero(candidates.weigh([NOTHING] * 4).ravel() == 0)
    assert [candidates.action(index) for index in legal.tolist()] == list(Swaps(layout, hand))


def test_the_code_of_the_page_runs() -> None:
    page = Path(__file__).parents[3] / "docs" / "games" / "cogz.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert (failed, tried) == (0, 8)


HALF_NEW_JOINED_AND_CLOSED = [
    (("1GR 0RG 0GG", "1RG 1RG 0GR", "1RG 1RR 0RG"), 3, "1GG", 0, 6),
    (("0GR 0RR 1GG 0GG", "0GR 0RR 0GR 0RG", "1RG 0GR 1GG 0GG"), 7, "0GG", 0, 6),
    (("0RG 0GR 1RR 1GG", "0RG 1RR 1GR 1RG", "0GR 0GR 0RG 1GG"), 0, "0RR", 1, 5),
]


@pytest.mark.parametrize(("lines", "cell", "text", "arc", "length"), HALF_NEW_JOINED_AND_CLOSED)
def test_r4_3_a_new_arc_that_closes_a_chain_through_the_old_one_wins_one_nut_and_locks_all(
    lines: tuple[str, ...], cell: int, text: str, arc: int, length: int
) -> None:
    layout, code = layout_of(lines), parse_placed(text)
    assert chain(layout, cell, code, arc) == (length, True, True)
    colour = code & 3
    value = value_of(layout, cell, code)
    assert value.mechanisms == (colour,)
    assert value.points[colour] == length
    tile = TILE_TEXTS.index(text[1:])
    worths = Candidates(layout, (tile,) * 3).weigh([MECHANISMS.astype(float)] * 4)
    row = [laid for _, _, laid in choices((tile,) * 3)].index(code)
    assert worths[row, cell] == 1.0
    after = swapped(layout, cell, code, locks=True)
    assert after == make_layout(layout.rows, layout.columns, after.board)
    assert after.locked[cell] == 0b11
