"""Worked boards with their exact numbers: chains, points, mechanisms, locks, nuts, the lever, the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from cogeval.games.cogz import rules
from cogeval.games.cogz.chains import Layout, is_legal, layout_of, swapped, value_of
from cogeval.games.cogz.state import Colours, Ended, Parameters, State, Swap
from cogeval.games.cogz.tiles import COLOURS, TILE_TEXTS, parse_placed

Arrange = Callable[..., State]
Counts = Callable[..., Colours]
Play = Callable[..., Any]
Locked = Callable[[Layout], set[Any]]

IDENTICAL = ("1BR 1GR 0RB", "1BR 0RY 0GG", "0BG 0YG 1BG")
DOUBLE_FIVE = ("1RY 0GB 0BY", "0BB 0BY 0YG", "1RY 0GG 1YG")
CORNER_FIVE = ("0BY 0GG 0BR", "0GY 1YG 1YG", "0YR 1YR 1BG")
LOOP = ("1RG 0RR 1RY", "0RY 1GB 1YG", "0YR 1YR 1BG")
LONE_CORNER = ("0YB 0RB 0YY", "1YG 0YR 1YR", "1BG 0BR 0RR")
BORDER_THREE = ("0RB 0BR 0RG", "1YY 1GR 0BY", "0YY 0YB 0RB")
RED_FIVE = ("0YR 1RG 1BR 0BY", "1RG 1BG 1BY 1RY", "1GR 1YG 1BR 1RG", "1BY 0YR 1YG 0GR")
WORKED_TURN = (
    "1GB 1BB 1YB 1RY 1RG",
    "1BY 1GB 1BY 1RY 0BY",
    "1YB 1GY 0GR 0GY 1BY",
    "1BY 0YG 0YR 1BG 1YB",
    "1BR 1YR 0GG 0BR 0RR",
)
TWO_COLOURS = ("1RG 0RR 1RY", "0RY 1GY 0YB", "1GR 0BY 1RB")
ONE_COLOUR_TWICE = ("1RG 0RR 1RY", "0RY 1GY 0YR", "1GR 0RY 1RR")
HALF_IDENTICAL = ("1RY 0GB 0BY", "0BB 0GY 0YG", "1RY 0GG 1YG")
JOINING = ("1RR 0YB 0BR 0YG", "0BG 1GB 1YR 1BG", "0RG 0RB 0GB 1RB", "0YB 1YB 1BY 1RY")
U_TURN = ("0RB 1RY 1RB", "1YY 1GR 1RY", "1RY 1GR 1RR")
SETUP_LOOP = ("1RG 0RR 1RY", "0RY 1GR 1YG", "0YR 1YR 1BG")


class Example(NamedTuple):
    """A swap on a board and what it brings."""

    name: str
    board: Sequence[str]
    cell: tuple[int, int]
    old: str
    new: str
    points: dict[str, int]
    mechanisms: str = ""  # their colours
    num_locked: int = 0  # after the swap


EXAMPLES = (
    Example("E1 one arc anew", IDENTICAL, (1, 1), "0RY", "0BY", {"B": 1}),
    Example("E1 other diagonal", IDENTICAL, (1, 1), "0RY", "1RY", {"R": 1, "Y": 1}),
    Example("E1 half a turn", IDENTICAL, (1, 1), "0RY", "0YR", {"R": 1, "Y": 1}),
    Example("E1 nothing", IDENTICAL, (1, 1), "0RY", "0RY", {}),
    Example("E2 double five", DOUBLE_FIVE, (1, 1), "0BY", "0GG", {"G": 10}),
    Example("E3 corner five", CORNER_FIVE, (0, 0), "0BY", "0GG", {"G": 10}, "G", 5),
    Example("E4 loop", LOOP, (1, 1), "1GB", "1GR", {"R": 4}, "R", 4),
    Example("E5 lone corner", LONE_CORNER, (0, 0), "0YB", "1YR", {"Y": 1, "R": 1}),
    Example("E6 border three", BORDER_THREE, (0, 2), "0RG", "0RB", {"B": 3}, "B", 3),
    Example("E7 red five", RED_FIVE, (1, 1), "1BG", "1BR", {"R": 5}, "R", 5),
    Example("E8 worked turn", WORKED_TURN, (1, 1), "1GB", "1YB", {"Y": 7}, "Y", 12),
    Example("E8 kept blue", WORKED_TURN, (1, 1), "1GB", "1RB", {"R": 1}, "", 5),
    Example("E8 copy", WORKED_TURN, (1, 1), "1GB", "1GB", {}, "", 5),
    Example("E9 two colours", TWO_COLOURS, (1, 1), "1GY", "1BR", {"B": 4, "R": 4}, "BR", 8),
    Example("E10 one colour twice", ONE_COLOUR_TWICE, (1, 1), "1GY", "1RR", {"R": 8}, "RR", 8),
    Example("E11 half identical", HALF_IDENTICAL, (1, 1), "0GY", "0GG", {"G": 5}),
    Example("E12 joining", JOINING, (1, 1), "1GB", "1RB", {"R": 4}),
    Example("E12b border U-turn", U_TURN, (0, 1), "1RY", "0BY", {"B": 2, "Y": 1}, "B", 2),
    Example("E12c inside a locked loop", SETUP_LOOP, (1, 1), "1GR", "1BR", {"B": 1}, "", 4),
)
BY_NAME = {example.name: example for example in EXAMPLES}


def recoloured(lines: Sequence[str], one: str, other: str) -> tuple[str, ...]:
    """The board with two colours exchanged."""
    return tuple(line.translate(str.maketrans(one + other, other + one)) for line in lines)


# E1 to E12: what a swap is worth


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_r4_a_swap_is_worth_what_the_example_says(example: Example, counts: Counts) -> None:
    layout, code = layout_of(example.board), parse_placed(example.new)
    cell = example.cell[0] * layout.columns + example.cell[1]
    assert layout.board[cell] == parse_placed(example.old)
    assert is_legal(layout, cell, code)
    value = value_of(layout, cell, code)
    assert value.points == counts(**example.points)
    assert sorted(COLOURS[colour] for colour in value.mechanisms) == list(example.mechanisms)
    after = swapped(layout, cell, code, locks=bool(value.mechanisms))
    assert sum(bits.bit_count() for bits in after.locked) == example.num_locked


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_slow_engine_agrees_with_the_examples(example: Example, slow: ModuleType) -> None:
    board, placed = slow.read_board(example.board), slow.read(example.new)
    assert board[example.cell] == slow.read(example.old)
    assert slow.is_legal(board, slow.locked_in(board), example.cell, placed)
    worth = slow.worth_of(board, example.cell, placed)
    assert {colour: points for colour, points in worth.points.items() if points} == example.points
    assert worth.completed == tuple(example.mechanisms)
    assert len(slow.locked_in(worth.board)) == example.num_locked


@pytest.mark.parametrize(
    "example", [each for each in EXAMPLES if each.name[:3] not in ("E8 ", "E12")], ids=lambda each: each.name
)
def test_no_example_but_these_begins_with_a_mechanism(example: Example) -> None:
    assert not any(layout_of(example.board).locked)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_r4_a_turn_pays_what_the_example_says(
    example: Example, arrange: Arrange, play: Play, counts: Counts
) -> None:
    tile = "".join(sorted(example.new[1:], key=COLOURS.index))
    state = arrange(example.board, [f"RR {tile} YY"])
    step = play(state, example.new, *example.cell)
    event, after = step.events[0], step.next
    nuts = counts(**{colour: example.mechanisms.count(colour) for colour in example.mechanisms})
    assert isinstance(event, Swap)
    assert (event.points, event.nuts) == (counts(**example.points), nuts)
    assert (after.points[0], after.nuts[0]) == (event.points, event.nuts)
    assert after.supply == tuple(3 - nut for nut in nuts)
    assert TILE_TEXTS[event.taken] == "".join(sorted(example.old[1:], key=COLOURS.index))
    assert event.taken in after.hands[0]  # R4.6
    assert after.seat == 1


# What the examples say beside their numbers


def test_e3_locks_both_arcs_of_the_tile_and_the_chain_round_its_corner(
    locked: Locked,
) -> None:
    layout = layout_of(CORNER_FIVE)
    after = swapped(layout, 0, parse_placed("0GG"), locks=True)
    assert locked(after) == {((0, 0), 0), ((0, 0), 2), ((0, 1), 2), ((1, 0), 0), ((1, 1), 3)}


def test_e5_an_arc_in_a_corner_is_no_mechanism() -> None:
    after = swapped(layout_of(LONE_CORNER), 0, parse_placed("1YR"), locks=False)
    assert not any(layout_of(["1YR 0RB 0YY", *LONE_CORNER[1:]]).locked)
    assert not any(after.locked)


def test_e6_locks_the_three(
    locked: Locked,
) -> None:
    after = swapped(layout_of(BORDER_THREE), 2, parse_placed("0RB"), locks=True)
    assert locked(after) == {((0, 1), 0), ((0, 2), 2), ((1, 2), 0)}


def test_e8_begins_with_five_locked_blue_arcs(
    locked: Locked,
) -> None:
    layout = layout_of(WORKED_TURN)
    assert len(locked(layout)) == 5
    assert ((1, 1), 3) in locked(layout)


@pytest.mark.parametrize(
    ("placed", "legal"), [("1YG", False), ("0YB", False), ("1RB", True), ("1GB", True), ("1YB", True)]
)
def test_e8_r3_4_a_locked_arc_must_reappear_at_its_corner(placed: str, legal: bool) -> None:
    assert is_legal(layout_of(WORKED_TURN), 6, parse_placed(placed)) is legal


def test_e8_the_tile_taken_is_blue_and_green(arrange: Arrange, play: Play) -> None:
    step = play(arrange(WORKED_TURN, ["RR BY YY"]), "1YB", 1, 1)  # its blue arc was locked and came again
    assert [TILE_TEXTS[tile] for tile in step.next.hands[0]] == ["RR", "GB", "YY"]


def test_e8_the_lowest_colour_rises_from_6_to_11_and_the_nut_counts_at_the_end_only(
    arrange: Arrange, play: Play, counts: Counts
) -> None:
    state = arrange(WORKED_TURN, ["RR BY YY"], points={0: counts(R=12, G=11, B=14, Y=6)})
    step = play(state, "1YB", 1, 1)
    assert (min(state.points[0]), min(step.next.points[0])) == (6, 11)
    assert step.next.points[0] == counts(R=12, G=11, B=14, Y=13)
    assert step.next.finals[0] == counts(R=12, G=11, B=14, Y=15)
    assert step.events[0].levers == 0
    assert step.next.seat == 1


def test_the_lowest_colour_rises_from_6_to_8_beside_gains_of_4_and_3(counts: Counts) -> None:
    before = counts(R=8, G=9, B=12, Y=6)
    after = tuple(a + b for a, b in zip(before, counts(Y=4, B=3), strict=True))
    assert rules.rank_key(before)[0] == 6
    assert rules.rank_key(after)[0] == 8


@pytest.mark.parametrize(("left", "won"), [(3, 2), (2, 2), (1, 1), (0, 0)])
def test_e10_r4_4_a_nut_each_while_the_supply_lasts(
    locked: Locked, left: int, won: int, arrange: Arrange, play: Play, counts: Counts
) -> None:
    state = arrange(ONE_COLOUR_TWICE, ["RR YY YY"], supply=counts(R=left, G=3, B=3, Y=3))
    step = play(state, "1RR", 1, 1)
    assert step.next.nuts[0] == counts(R=won)
    assert step.next.supply == counts(R=left - won, G=3, B=3, Y=3)
    assert step.next.points[0] == counts(R=8)
    assert len(locked(step.next.layout)) == 8


def test_e12c_what_lies_closed_at_the_start_is_locked_and_brings_no_nut(
    locked: Locked, arrange: Arrange
) -> None:
    layout = layout_of(SETUP_LOOP)
    assert locked(layout) == {((0, 0), 1), ((0, 1), 2), ((1, 0), 0), ((1, 1), 3)}
    assert [is_legal(layout, 4, parse_placed(placed)) for placed in ("1BR", "1GB", "0GR")] == [
        True, False, False,
    ]  # fmt: skip
    assert arrange(SETUP_LOOP).nuts == ((0, 0, 0, 0), (0, 0, 0, 0))
    assert arrange(SETUP_LOOP).supply == (3, 3, 3, 3)


# E13: the lever


class Gain(NamedTuple):
    """A swap that moves one colour by a known number of spaces."""

    board: Sequence[str]
    cell: tuple[int, int]
    new: str
    colour: str


BLUE_3 = Gain(BORDER_THREE, (0, 2), "0RB", "B")
YELLOW_4 = Gain(recoloured(LOOP, "R", "Y"), (1, 1), "1GY", "Y")
YELLOW_7 = Gain(WORKED_TURN, (1, 1), "1YB", "Y")
RED_1 = Gain(WORKED_TURN, (1, 1), "1RB", "R")
ALL_SEATS = frozenset(range(2, 7))


@pytest.mark.parametrize(
    ("gain", "old", "new", "seats_with_bonus"),
    [
        (BLUE_3, 12, 15, {5, 6}),
        (YELLOW_4, 6, 10, set()),
        (YELLOW_7, 6, 13, set()),
        (RED_1, 17, 18, {2}),
        (YELLOW_7, 18, 25, set()),
        (YELLOW_4, 14, 18, {2, 3, 4, 5}),
    ],
)
def test_e13_r4_5_a_token_that_passes_the_lever_wins_a_bonus_turn(
    gain: Gain, old: int, new: int, seats_with_bonus: set[int], arrange: Arrange, play: Play, counts: Counts
) -> None:
    won = set()
    for seats in ALL_SEATS:
        parameters = Parameters(seats=seats)
        tile = "".join(sorted(gain.new[1:], key=COLOURS.index))
        state = arrange(gain.board, [f"{tile} RR GG"], parameters, points={0: counts(**{gain.colour: old})})
        step = play(state, gain.new, *gain.cell, parameters)
        assert step.next.points[0][COLOURS.index(gain.colour)] == new
        assert (step.next.seat, step.next.bonus) == ((0, True) if step.events[0].levers else (1, False))
        if step.events[0].levers:
            won.add(seats)
    assert won == seats_with_bonus


def test_e13_r5_2_two_tokens_win_two_bonus_turns_and_a_third_one_more(
    arrange: Arrange, play: Play, counts: Counts
) -> None:
    six = Parameters(seats=6)
    two_fives = ("1RY 0GR 1BR", "1RR 0BB 0RB", "0BB 1RB 1BB")
    state = arrange(two_fives, ["RB GY YY"], six, points={0: counts(R=13, G=13, B=13, Y=2)})
    step = play(state, "1BR", 1, 1, six)
    assert step.next.points[0] == counts(R=18, G=13, B=18, Y=2)
    assert (step.events[0].levers, step.next.pending, step.next.bonus) == (2, 2, True)
    step = play(step.next, "1GY", 0, 2, six)
    assert step.next.points[0][COLOURS.index("G")] >= 14
    assert (step.events[0].bonus, step.events[0].levers) == (True, 1)
    assert (step.next.seat, step.next.pending, step.next.bonuses[0]) == (0, 2, 3)
    step = play(step.next, "1BR", 0, 0, six)  # the tile that the second swap took
    assert (step.next.seat, step.next.pending, step.next.bonus) == (0, 1, True)
    step = play(step.next, "0YY", 2, 0, six)
    assert (step.next.seat, step.next.pending, step.next.bonus) == (1, 1, False)


def fits_the_worked_bonus(lever: Callable[[int], int]) -> bool:
    """Blue + 3 passes with 5 and 6 seats alone, yellow + 4 with none, and 6 to 13 not with 2."""

    def passed(seats: int, old: int, new: int) -> bool:
        return old < lever(seats) <= new

    return not passed(2, 6, 13) and any(
        {seats for seats in ALL_SEATS if passed(seats, blue, blue + 3)} == {5, 6}
        and not any(passed(seats, yellow, yellow + 4) for seats in ALL_SEATS)
        for blue, yellow in [(6, y) for y in range(6, 30)] + [(b, 6) for b in range(6, 30)]
    )


def test_r4_5_the_default_levers_agree_with_both_worked_bonuses() -> None:
    def default(seats: int) -> int:
        return rules.lever_of(Parameters(seats=seats))

    assert [default(seats) for seats in range(2, 7)] == [18, 17, 16, 15, 14]
    assert fits_the_worked_bonus(default)


@pytest.mark.parametrize(
    ("table", "fits"),
    [
        ((19, 17, 15, 13, 11), True),
        ((15, 12, 12, 9, 9), True),
        ((2, 3, 4, 5, 6), False),
        ((9, 8, 7, 6, 5), False),
        ((18, 18, 18, 18, 18), False),
    ],
)
def test_r4_5_other_tables_of_levers_are_told_apart(table: Sequence[int], fits: bool) -> None:
    assert fits_the_worked_bonus(lambda seats: table[seats - 2]) is fits


# E14: the end


def test_e14_r6_2_the_lowest_colour_decides_then_the_next(arrange: Arrange) -> None:
    finals = {0: (15, 10, 18, 15), 1: (10, 18, 15, 17)}
    seats = rules.results(arrange(LOOP, points=finals, reason="complete")).seats
    assert [seat.score for seat in seats] == [10, 10]
    assert [seat.rank_key for seat in seats] == [(10, 15, 15, 18), (10, 15, 17, 18)]
    assert seats[0].rank_key < seats[1].rank_key


def test_e14_r6_1_nuts_count_before_the_colours_are_compared(arrange: Arrange) -> None:
    state = arrange(LOOP, points={0: (14, 9, 12, 14)}, nuts={0: (0, 1, 0, 0)}, reason="complete")
    assert rules.results(state).seats[0].rank_key == (11, 12, 14, 14)


# E15: the turns


def test_e15_r5_three_seats_swap_24_times(walk: Any) -> None:
    parameters = Parameters(seats=3, lever=99)
    swaps = list(walk(parameters, 1))[-1][2].next.record
    assert [(swap.round, swap.seat) for swap in swaps] == [(r, s) for r in range(8) for s in range(3)]


def test_e15_r5_3_a_bonus_of_the_last_seat_is_still_played(
    arrange: Arrange, play: Play, counts: Counts
) -> None:
    three = Parameters(seats=3)
    last = arrange(BORDER_THREE, ["RB RB RB"] * 3, three, round=7, seat=2, points={2: counts(B=14)}, swaps=23)
    step = play(last, "0RB", 0, 2, three)
    assert (step.next.reason, step.next.seat, step.next.bonus) == ("", 2, True)
    step = play(step.next, "0BR", 2, 2, three)
    assert step.next.reason == "complete"
    assert step.events[-1] == Ended("complete")
    assert step.next.swaps == 25
