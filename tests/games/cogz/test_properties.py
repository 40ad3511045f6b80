"""What holds on every board and in every episode: the engine against the slow one, and what never changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.core.game import Step
from cogeval.core.rng import stream
from cogeval.games.cogz import rules
from cogeval.games.cogz.chains import Layout, is_legal, layout_of, make_layout, swapped, value_of
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.state import Action, Parameters, State, Swap, action_of, code_of
from cogeval.games.cogz.tiles import (
    COLOURS,
    PLACED,
    SHAPES,
    TILE_OF,
    TILE_TEXTS,
    TILES,
    placed_code,
    placed_text,
)

Walk = Callable[[Parameters, int], Iterator[tuple[State, Action, Step[State]]]]
AsSlow = Callable[[Layout], Any]
Locked = Callable[[Layout], set[Any]]

SEEDS = st.integers(-(1 << 63), (1 << 63) - 1)
TABLES = st.builds(
    Parameters,
    seats=st.integers(2, 6),
    lever=st.sampled_from((0, 1, 3, 6, 20)),  # low ones: random swaps rarely reach the usual lever
    pair_copies=st.sampled_from((1, 3, 5, 7, 9, 11)),
    nuts_per_colour=st.sampled_from((0, 1, 3)),
)
QUICK = settings(deadline=None, max_examples=25)


@st.composite
def boards(draw: st.DrawFn) -> Layout:
    """Boards of 1 by 1 to 7 by 7; of one or two colours about half the time, so that chains close."""
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    colour = st.integers(0, draw(st.sampled_from((0, 1, 1, 2, 3))))
    placed = st.builds(placed_code, st.integers(0, 1), colour, colour)
    size = rows * columns
    return make_layout(rows, columns, bytes(draw(st.lists(placed, min_size=size, max_size=size))))


def hands_of(state: State) -> list[list[str]]:
    return [[TILE_TEXTS[tile] for tile in hand] for hand in state.hands]


def tiles_in(state: State) -> Counter[int]:
    """Every tile on the board and in the hands."""
    return Counter(TILE_OF[code] for code in state.layout.board) + Counter(
        tile for hand in state.hands for tile in hand
    )


# chains


@settings(deadline=None, max_examples=60)
@given(boards(), st.data())
def test_r4_every_tile_in_a_cell_is_worth_what_a_recount_of_the_board_says(
    as_slow: AsSlow, slow: ModuleType, layout: Layout, data: st.DataObject
) -> None:
    board = as_slow(layout)
    cell = data.draw(st.integers(0, len(layout.board) - 1))
    for code in range(32):
        worth = slow.worth_of(board, divmod(cell, layout.columns), slow.read(placed_text(code)))
        value = value_of(layout, cell, code)
        assert dict(zip(COLOURS, value.points, strict=True)) == worth.points
        assert sorted(COLOURS[colour] for colour in value.mechanisms) == list(worth.completed)


@settings(deadline=None, max_examples=60)
@given(boards())
def test_r3_3_the_locks_are_the_segments_of_mechanisms(
    as_slow: AsSlow, locked: Locked, slow: ModuleType, layout: Layout
) -> None:
    assert locked(layout) == slow.locked_in(as_slow(layout))


@settings(deadline=None, max_examples=60)
@given(boards(), st.lists(st.tuples(st.integers(0, 48), st.integers(0, 31)), max_size=25))
def test_a_layout_after_swaps_is_the_layout_of_its_board(
    layout: Layout, moves: list[tuple[int, int]]
) -> None:
    for cell, code in moves:
        cell %= len(layout.board)
        if is_legal(layout, cell, code):
            before = (*layout.board, *layout.arm_length, *layout.locked)
            after = swapped(layout, cell, code, locks=bool(value_of(layout, cell, code).mechanisms))
            assert after == make_layout(layout.rows, layout.columns, after.board)
            assert before == (*layout.board, *layout.arm_length, *layout.locked)
            layout = after


@settings(deadline=None, max_examples=60)
@given(boards(), st.data())
def test_r3_4_a_swap_is_legal_when_every_locked_arc_reappears(
    as_slow: AsSlow, slow: ModuleType, layout: Layout, data: st.DataObject
) -> None:
    board, cell = as_slow(layout), data.draw(st.integers(0, len(layout.board) - 1))
    held, place = slow.locked_in(board), divmod(cell, layout.columns)
    for code in range(32):
        placed = slow.read(placed_text(code))
        assert is_legal(layout, cell, code) is slow.is_legal(board, held, place, placed)


# legal actions


@settings(deadline=None, max_examples=60)
@given(boards(), st.tuples(*[st.integers(0, 9)] * 3))
def test_r3_4_legal_swaps_are_those_of_brute_force_over_all_codes(
    as_slow: AsSlow, slow: ModuleType, layout: Layout, hand: tuple[int, ...]
) -> None:
    board, letters = as_slow(layout), [TILE_TEXTS[tile] for tile in hand]
    legal = slow.legal_swaps(board, slow.locked_in(board), letters)
    swaps = Swaps(layout, hand)
    every = [action_of(code, layout.rows, layout.columns) for code in range(12 * len(layout.board))]
    assert [(a.slot, a.rotation, (a.row, a.column)) for a in every if a in swaps] == legal
    listed = list(swaps)
    assert [(a.slot, a.rotation, (a.row, a.column)) for a in listed] == slow.first_of_each(legal, letters)
    codes = [code_of(action, layout.rows, layout.columns) for action in listed]
    assert codes == sorted(set(codes))
    assert len(swaps) == len(listed)
    assert bool(swaps) is bool(listed)


@settings(deadline=None, max_examples=60)
@given(boards(), st.tuples(*[st.integers(0, 9)] * 3), SEEDS)
def test_a_sampled_swap_is_one_of_the_list(layout: Layout, hand: tuple[int, ...], seed: int) -> None:
    swaps = Swaps(layout, hand)
    listed = set(swaps)
    if listed:
        rng = stream(seed, "sample")
        assert {swaps.sample(rng) for _ in range(10)} <= listed


@pytest.mark.parametrize(
    "lines", [("0RG 1BY", "1GG 0YB"), ("1RG 0RR 1RY", "0RY 1GR 1YG", "0YR 1YR 1BG")], ids=["free", "locked"]
)
def test_samples_are_uniform_over_the_list(lines: tuple[str, ...]) -> None:
    swaps = Swaps(layout_of(lines), (0, 1, 9))
    listed, rng = list(swaps), stream(7, "uniform")
    drawn = Counter(swaps.sample(rng) for _ in range(200 * len(listed)))
    assert set(drawn) == set(listed)
    squares = sum((num - 200) ** 2 / 200 for num in drawn.values())
    assert squares < 2 * len(listed)  # chi-square: its mean is their number less one


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Action(3, 0, 0, 0), "no_such_slot"),
        (Action(-1, 0, 0, 0), "no_such_slot"),
        (Action(0, 4, 0, 0), "no_such_rotation"),
        (Action(0, -1, 0, 0), "no_such_rotation"),
        (Action(0, 0, 2, 0), "off_board"),
        (Action(0, 0, 0, 2), "off_board"),
        (Action(0, 0, -1, 0), "off_board"),
        ("0RG", "no_swap"),
        (None, "no_swap"),
    ],
)
def test_what_is_no_swap_of_the_board_is_illegal(action: object, reason: str) -> None:
    swaps = Swaps(layout_of(["0RG 1BY", "1GG 0YB"]), (0, 1, 9))
    assert swaps.why_illegal(action) == reason
    assert action not in swaps


def test_a_code_and_its_action_are_inverse() -> None:
    for rows, columns in ((5, 6), (7, 7), (1, 3)):
        for code in range(12 * rows * columns):
            assert code_of(action_of(code, rows, columns), rows, columns) == code


def test_r2_3_a_tile_has_four_placements_or_two() -> None:
    for tile, (a, b) in enumerate(TILES):
        assert len(set(PLACED[tile])) == (2 if a == b else 4)
    assert len({code for codes in PLACED for code in codes}) == 32


# whole episodes


@QUICK
@given(SEEDS, TABLES)
def test_r4_r5_an_episode_is_the_one_that_the_slow_engine_plays(
    as_slow: AsSlow, slow: ModuleType, walk: Walk, seed: int, parameters: Parameters
) -> None:
    opening, steps = rules.opening_state(parameters, seed), list(walk(parameters, seed))
    lever = parameters.lever or 20 - parameters.seats
    rounds = {2: 9, 3: 8, 4: 7, 5: 6, 6: 5}[parameters.seats]
    table = slow.new_table(
        as_slow(opening.layout), hands_of(opening), rounds, lever, parameters.nuts_per_colour
    )
    rows = slow.play(table, iter([(a.slot, a.rotation, (a.row, a.column)) for _, a, _ in steps]))
    final = steps[-1][2].next
    assert len(rows) == len(final.record) == final.swaps
    for row, swap in zip(rows, final.record, strict=True):
        assert (swap.round, swap.seat, swap.bonus) == (row.round, row.seat, row.bonus)
        assert swap.levers == row.levers
        assert dict(zip(COLOURS, swap.points, strict=True)) == row.points
        assert [COLOURS[c] for c in sorted(swap.mechanisms, key=COLOURS.__getitem__)] == list(row.completed)
        assert {c: n for c, n in zip(COLOURS, swap.nuts, strict=True) if n} == Counter(row.nuts)
        assert TILE_TEXTS[swap.taken] == row.taken
    assert as_slow(final.layout) == table.board
    assert hands_of(final) == table.hands
    for seat, colours in zip(rules.results(final).seats, table.finals(), strict=True):
        assert seat.rank_key == tuple(sorted(colours.values()))
        assert seat.score == min(colours.values())


@QUICK
@given(SEEDS, TABLES)
def test_r3_3_locks_are_permanent_and_locked_segments_never_change(
    as_slow: AsSlow, locked: Locked, slow: ModuleType, walk: Walk, seed: int, parameters: Parameters
) -> None:
    for state, _, step in walk(parameters, seed):
        before, after = state.layout, step.next.layout
        held = locked(before)
        assert held <= locked(after)
        old, new = as_slow(before), as_slow(after)
        assert all(new[cell][corner] == old[cell][corner] for cell, corner in held)
        assert all(slow.chain(new, segment) == slow.chain(old, segment) for segment in held)
        assert locked(after) == slow.locked_in(new)


@QUICK
@given(SEEDS, TABLES)
def test_r4_6_tiles_move_between_board_and_hands_and_none_is_made_or_lost(
    walk: Walk, seed: int, parameters: Parameters
) -> None:
    opening = rules.opening_state(parameters, seed)
    for _, _, step in walk(parameters, seed):
        for state in (step.resolved, step.next):
            assert tiles_in(state) == tiles_in(opening)
            assert all(len(hand) == 3 for hand in state.hands)


@QUICK
@given(SEEDS, TABLES)
def test_nothing_is_negative_and_nuts_come_from_the_supply(
    walk: Walk, seed: int, parameters: Parameters
) -> None:
    for state, _, step in walk(parameters, seed):
        for after in (step.resolved, step.next):
            everywhere = (after.supply, *after.nuts)
            assert all(min(colours) >= 0 for colours in (*everywhere, *after.points))
            assert [sum(column) for column in zip(*everywhere, strict=True)] == [
                parameters.nuts_per_colour
            ] * 4
        for old, new in zip(state.points, step.next.points, strict=True):
            assert all(a <= b for a, b in zip(old, new, strict=True))


@QUICK
@given(SEEDS, TABLES)
def test_r5_2_a_seat_wins_at_most_one_bonus_turn_a_colour(
    walk: Walk, seed: int, parameters: Parameters
) -> None:
    lever = parameters.lever or 20 - parameters.seats
    steps = list(walk(parameters, seed))
    for state, _, _ in steps:
        assert 1 <= state.pending <= 4
        assert state.bonuses == tuple(sum(p >= lever for p in points) for points in state.points)
    final = steps[-1][2].next
    rounds = SHAPES[parameters.seats].rounds
    for seat in range(parameters.seats):
        mine = [swap for swap in final.record if swap.seat == seat]
        assert sum(swap.levers for swap in mine) == sum(swap.bonus for swap in mine) == final.bonuses[seat]
        assert len(mine) == rounds + final.bonuses[seat] <= rounds + 4


@QUICK
@given(SEEDS, TABLES)
def test_r5_1_rounds_go_seat_by_seat_and_bonus_turns_come_at_once(
    walk: Walk, seed: int, parameters: Parameters
) -> None:
    record = list(walk(parameters, seed))[-1][2].next.record
    base = [(swap.round, swap.seat) for swap in record if not swap.bonus]
    rounds = SHAPES[parameters.seats].rounds
    assert base == [(round_, seat) for round_ in range(rounds) for seat in range(parameters.seats)]
    for before, swap in pairwise(record):
        assert not swap.bonus or (swap.round, swap.seat) == (before.round, before.seat)


@QUICK
@given(SEEDS, TABLES)
def test_a_step_resolves_one_swap_and_then_opens_the_next_turn(
    walk: Walk, seed: int, parameters: Parameters
) -> None:
    for state, action, step in walk(parameters, seed):
        event = step.events[0]
        assert isinstance(event, Swap)
        assert (event.seat, event.round, event.bonus) == (state.seat, state.round, state.bonus)
        assert (event.row, event.column) == (action.row, action.column)
        assert event.revealed is not state.seen[state.seat][action.slot]
        assert step.resolved.record == step.next.record == (*state.record, event)
        assert step.resolved.swaps == step.next.swaps == state.swaps + 1
        assert step.resolved.layout == step.next.layout
        assert (step.resolved.round, step.resolved.seat) == (state.round, state.seat)
        assert step.resolved.reason == ""
        assert step.next.seen[state.seat][action.slot] is True


@QUICK
@given(SEEDS, TABLES)
def test_after_the_set_up_nothing_is_drawn(walk: Walk, seed: int, parameters: Parameters) -> None:
    steps = list(walk(parameters, seed))
    state = rules.opening_state(parameters, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(rules, "stream")  # the one source of chance
        for before, action, step in steps:
            assert state == before
            again = rules.swap(parameters, state, action)
            assert again == step
            assert state == before
            state = again.next


# the walks


def test_walks_reach_everything_that_these_properties_speak_of(walk: Walk) -> None:
    seen: Counter[str] = Counter()
    for seed in range(40):
        for _, _, step in walk(Parameters(seats=2 + seed % 5, lever=4, nuts_per_colour=1), seed):
            event = step.events[0]
            assert isinstance(event, Swap)
            seen["bonus"] += event.bonus
            seen["two levers"] += event.levers > 1
            seen["mechanism"] += len(event.mechanisms) == 1
            seen["two mechanisms"] += len(event.mechanisms) > 1
            seen["no nut left"] += sum(event.nuts) < len(event.mechanisms)
            seen["kept hidden"] += not event.revealed
            seen["nothing"] += not any(event.points)
    assert min(seen.values()) > 0, seen
