"""The course of an episode by the numbers in RULES.md: the table, turns, the lever, nuts, the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import cogeval.games.cogz as package
from cogeval.errors import InputError
from cogeval.games.cogz import Cogz, rules
from cogeval.games.cogz.chains import layout_of
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.state import Action, Colours, Ended, Parameters, Passed, Started, State, Swap
from cogeval.games.cogz.tiles import SHAPES, Shape

Arrange = Callable[..., State]
Counts = Callable[..., Colours]
Play = Callable[..., Any]
FOLDER = Path(package.__file__).parent

LOOP = ("1RG 0RR 1RY", "0RY 1GB 1YG", "0YR 1YR 1BG")  # 1GR in the middle closes a red ring of 4
BLUE_ONLY = ("0BG 1YB",)  # a locked blue pair in both cells: only a tile with blue fits


def test_every_rule_that_code_cites_is_in_the_rules() -> None:
    defined = set(re.findall(r"^- (R\d+\.\d+) ", (FOLDER / "RULES.md").read_text(), re.MULTILINE))
    cited = set()
    for path in FOLDER.glob("*.py"):
        cited |= set(re.findall(r"\bR\d+\.\d+", path.read_text()))
    assert cited <= defined
    assert len(defined) > 20


# R1 the table


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seats", 1), ("seats", 7), ("seats", True), ("seats", "2"),
        ("lever", 0), ("lever", 100), ("lever", 2.5), ("lever", False),
        ("pair_copies", 2), ("pair_copies", 13), ("pair_copies", 7.0),
        ("nuts_per_colour", -1), ("nuts_per_colour", 13),
        ("setup_locks", 1), ("open_hands", None),
    ],
)  # fmt: skip
def test_r1_2_a_parameter_out_of_its_range_is_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"expected {name} of cogz as .*, got {value!r}"):
        Cogz(**{name: value})  # type: ignore[arg-type]


def test_r1_3_seats_decide_board_and_rounds() -> None:
    assert {
        2: Shape(5, 5, 9),
        3: Shape(5, 6, 8),
        4: Shape(6, 6, 7),
        5: Shape(6, 7, 6),
        6: Shape(7, 7, 5),
    } == SHAPES


def test_r1_4_the_opening_event_shows_the_board() -> None:
    state = Cogz(seats=4).initial_state(3)
    assert rules.opening_events(state) == (Started(tuple(state.layout.board)),)


def test_r1_2_without_set_up_locks_what_lies_closed_can_be_broken_and_closed_again_for_a_nut(
    arrange: Arrange, play: Play, counts: Counts
) -> None:
    loose = Parameters(setup_locks=False)
    closed = ("1RG 0RR 1RY", "0RY 1GR 1YG", "0YR 1YR 1BG")
    layout = replace(layout_of(closed), locked=bytes(9))
    state = arrange(closed, ["BB RG YY"] * 2, loose, layout=layout)
    state = play(state, "1BB", 1, 1, loose).next
    assert state.nuts[0] == counts()
    step = play(state, "1GR", 1, 1, loose)
    assert step.next.nuts[1] == counts(R=1)
    assert sum(bits.bit_count() for bits in step.next.layout.locked) == 4


@pytest.mark.parametrize("seed", range(20))
def test_r1_2_without_set_up_locks_nothing_is_locked_at_the_start(seed: int) -> None:
    loose = rules.opening_state(Parameters(setup_locks=False), seed)
    usual = rules.opening_state(Parameters(), seed)
    assert not any(loose.layout.locked)
    assert replace(loose, layout=usual.layout) == usual


# R4 a swap


@pytest.mark.parametrize(
    ("seats", "lever", "space"),
    [(2, 0, 18), (3, 0, 17), (4, 0, 16), (5, 0, 15), (6, 0, 14), (2, 9, 9), (6, 20, 20)],
)
def test_r4_5_the_lever_is_20_less_the_seats_or_as_chosen(seats: int, lever: int, space: int) -> None:
    assert rules.lever_of(Parameters(seats=seats, lever=lever)) == space


@pytest.mark.parametrize(("old", "levers"), [(4, 0), (5, 1), (8, 1), (9, 0)])
def test_r4_5_a_token_passes_a_chosen_lever_once(
    old: int, levers: int, arrange: Arrange, play: Play, counts: Counts
) -> None:
    nine = Parameters(lever=9)  # a red 4 reaches it from 5 and passes it from 8
    step = play(arrange(LOOP, ["RG BB YY"], nine, points={0: counts(R=old)}), "1GR", 1, 1, nine)
    assert step.next.points[0] == counts(R=old + 4)
    assert (step.events[0].levers, step.next.bonuses) == (levers, (levers, 0))


def test_r4_5_nuts_move_no_token_past_the_lever(arrange: Arrange, play: Play, counts: Counts) -> None:
    state = arrange(LOOP, ["RG BB YY"], points={0: counts(R=13)})
    step = play(state, "1GR", 1, 1)  # 17, with its nut 19; the lever is at 18
    assert step.next.finals[0] == counts(R=19)
    assert step.next.seat == 1


@pytest.mark.parametrize("nuts", [0, 1, 5])
def test_r4_4_as_many_nuts_as_chosen(nuts: int, arrange: Arrange, play: Play, counts: Counts) -> None:
    chosen = Parameters(nuts_per_colour=nuts)
    step = play(arrange(LOOP, ["RG BB YY"], chosen), "1GR", 1, 1, chosen)
    won = min(nuts, 1)
    assert step.next.nuts == (counts(R=won), counts())
    assert step.next.supply == counts(R=nuts - won, G=nuts, B=nuts, Y=nuts)
    assert step.events[0].mechanisms == (0,)


def test_r4_6_the_taken_tile_takes_the_slot_and_all_saw_it(arrange: Arrange, play: Play) -> None:
    step = play(arrange(LOOP, ["BB RG YY"]), "1GR", 1, 1)
    assert step.next.hands[0] == (7, 5, 9)
    assert step.next.seen == ((False, True, False), (False, False, False))
    assert step.events[0].revealed
    again = play(replace(step.next, seat=0), "1BG", 2, 2)
    assert not again.events[0].revealed


# R5 turns


@pytest.mark.parametrize("seats", range(2, 7))
def test_r5_1_seats_swap_in_order_round_by_round(seats: int, walk: Any) -> None:
    final = list(walk(Parameters(seats=seats, lever=99), 5))[-1][2].next
    rounds = SHAPES[seats].rounds
    assert [(swap.round, swap.seat) for swap in final.record] == [
        (round_, seat) for round_ in range(rounds) for seat in range(seats)
    ]
    assert rules.results(final).phases == seats * rounds


def test_r5_2_bonus_turns_follow_one_another_before_the_next_seat(
    arrange: Arrange, play: Play, counts: Counts
) -> None:
    state = arrange(LOOP, ["GY BB BB"], points={0: counts(R=10, G=17, B=17, Y=17)})
    step = play(state, "1GY", 0, 0)
    assert (step.next.seat, step.next.pending, step.next.bonus) == (0, 2, True)
    step = play(step.next, "0BB", 0, 2)
    assert step.events[0].bonus
    assert (step.next.seat, step.next.pending, step.next.bonus) == (0, 2, True)
    step = play(step.next, "0BB", 1, 2)
    step = play(step.next, "1RG", 2, 0)
    assert step.events[0].bonus
    assert (step.next.seat, step.next.pending, step.next.bonus) == (1, 1, False)
    assert step.next.bonuses == (3, 0)


def test_r5_4_a_seat_without_a_legal_swap_passes(arrange: Arrange, play: Play) -> None:
    three = Parameters(seats=3)
    state = arrange(BLUE_ONLY, ["GB RR RR", "RR YY RY", "GB RR RR"], three)
    assert not Swaps(state.layout, state.hands[1])
    step = play(state, "0BG", 0, 0, three)
    assert step.events[1:] == (Passed(0, 1),)
    assert (step.next.round, step.next.seat, step.next.pending) == (0, 2, 1)
    step = play(step.next, "0BG", 0, 0, three)
    assert step.events[1:] == ()
    assert (step.next.round, step.next.seat) == (1, 0)


def test_r5_4_an_episode_in_which_a_seat_can_only_pass_ends_after_its_rounds(
    arrange: Arrange, play: Play
) -> None:
    state = arrange(BLUE_ONLY, ["GB RR RR", "RR YY RY"])
    passes = []
    while not state.reason:
        step = play(state, "0BG", 0, 0)
        passes += [event for event in step.events if isinstance(event, Passed)]
        state = step.next
    assert passes == [Passed(round_, 1) for round_ in range(9)]
    assert (state.reason, state.swaps, step.events[-1]) == ("complete", 9, Ended("complete"))
    assert [seat.statistics["swaps"] for seat in rules.results(state).seats] == [9, 0]


@pytest.mark.parametrize(("yellow", "levers"), [(0, 1), (17, 2)])
def test_r5_4_bonus_turns_without_a_legal_swap_are_lost(
    yellow: int, levers: int, arrange: Arrange, play: Play, counts: Counts
) -> None:
    state = arrange(("0BG 1RG",), ["BY RR RR", "BB BB BB"], points={0: counts(B=16, Y=yellow)})
    step = play(state, "1YB", 0, 1)  # locks blue in both cells, and its last blue tile is gone
    assert step.next.points[0] == counts(B=18, Y=yellow + 1)
    assert step.events[0].levers == levers
    assert step.events[1:] == (Passed(0, 0),)
    assert (step.next.round, step.next.seat, step.next.pending, step.next.bonus) == (0, 1, 1, False)


def test_r5_4_a_pass_can_be_the_end(arrange: Arrange, play: Play) -> None:
    step = play(arrange(BLUE_ONLY, ["GB RR RR", "RR YY RY"], round=8), "0BG", 0, 0)
    assert step.events[1:] == (Passed(8, 1), Ended("complete"))
    assert step.resolved.reason == ""


def test_r5_3_the_last_swap_ends_the_episode(walk: Any) -> None:
    *_, (before, _, step) = walk(Parameters(), 2)
    assert before.reason == ""
    assert (before.round, before.seat) == (8, 1)
    assert (step.next.reason, step.next.round, step.next.seat, step.next.pending) == ("complete", 9, -1, 0)
    assert step.events[-1] == Ended("complete")
    assert isinstance(step.events[0], Swap)
    assert step.resolved.reason == ""
    assert Cogz().decisions(step.next) == ()


def test_the_kind_of_a_decision_says_whether_it_is_a_bonus_turn(arrange: Arrange) -> None:
    (usual,) = Cogz().decisions(arrange(LOOP))
    (bonus,) = Cogz().decisions(arrange(LOOP, bonus=True))
    assert (usual.seat, usual.kind, bonus.kind) == (0, "swap", "bonus")


def test_the_default_is_a_legal_swap_that_changes_nothing_where_one_exists(arrange: Arrange) -> None:
    (decision,) = Cogz().decisions(arrange(LOOP, ["GB BB RR"]))
    step = Cogz().step(arrange(LOOP, ["GB BB RR"]), {0: decision.default})
    assert decision.default in decision.legal
    assert step.next.layout == layout_of(LOOP)
    assert step.next.points[0] == (0, 0, 0, 0)
    (other,) = Cogz().decisions(arrange(LOOP, ["BB BB BB"]))
    assert other.default in other.legal


def test_only_the_seat_whose_turn_it_is_may_swap(arrange: Arrange) -> None:
    state = arrange(LOOP)
    assert Cogz().why_illegal(state, 0, Action(0, 0, 0, 0)) is None
    assert Cogz().why_illegal(state, 1, Action(0, 0, 0, 0)) == "not_your_turn"


# R6 the end


def test_r6_1_each_nut_adds_two_to_its_colour(arrange: Arrange) -> None:
    state = arrange(LOOP, points={0: (10, 11, 12, 13)}, nuts={0: (3, 0, 1, 0)})
    assert state.finals == ((16, 11, 14, 13), (0, 0, 0, 0))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ((11, 11, 11, 11), (10, 40, 40, 40)),
        ((17, 10, 18, 15), (15, 15, 10, 90)),
        ((10, 15, 17, 19), (18, 17, 15, 10)),
    ],
)
def test_r6_2_the_lowest_colour_decides_then_the_next(better: Colours, worse: Colours) -> None:
    assert rules.rank_key(better) > rules.rank_key(worse)


def test_r6_2_four_equal_colours_share_the_place(arrange: Arrange) -> None:
    state = arrange(LOOP, points={0: (9, 12, 10, 15), 1: (15, 10, 12, 9)}, reason="complete")
    first, second = rules.results(state).seats
    assert [first.rank_key, second.rank_key] == [(9, 10, 12, 15)] * 2
    assert [first.score, second.score] == [9, 9]


@pytest.mark.parametrize("num_swaps", [0, 1, 7])
def test_r6_3_an_early_end_counts_the_board_as_it_stands(num_swaps: int, walk: Any) -> None:
    state = list(walk(Parameters(seats=3), 4))[num_swaps][0]
    step = rules.end(state, "deadline")
    assert step.events == (Ended("deadline"),)
    assert step.resolved == state
    assert replace(step.next, reason="", seat=state.seat, pending=state.pending) == state
    assert Cogz(seats=3).decisions(step.next) == ()
    results = rules.results(step.next)
    assert (results.reason, results.phases) == ("deadline", num_swaps)
    assert [seat.rank_key for seat in results.seats] == [tuple(sorted(final)) for final in state.finals]


@pytest.mark.parametrize("seats", range(2, 7))
def test_r6_4_statistics_say_what_each_seat_has(seats: int, walk: Any) -> None:
    final = list(walk(Parameters(seats=seats, lever=5), 8))[-1][2].next
    for index, seat in enumerate(rules.results(final).seats):
        mine = [swap for swap in final.record if swap.seat == index]
        nuts = [sum(swap.nuts[colour] for swap in mine) for colour in range(4)]
        colours = [sum(swap.points[colour] for swap in mine) + 2 * nuts[colour] for colour in range(4)]
        assert seat.statistics == {
            **dict(zip(("red", "green", "blue", "yellow"), colours, strict=True)),
            "total": sum(colours),
            "nuts": sum(nuts),
            "bonus_turns": sum(swap.bonus for swap in mine),
            "swaps": len(mine),
        }
        assert seat.score == min(colours)


def test_r3_3_without_set_up_locks_only_completed_mechanisms_are_locked(arrange, play, locked) -> None:
    loose = Parameters(setup_locks=False)
    layout = replace(layout_of(("1RG 0RR 1RY", "0RY 1GR 0YB", "1GR 0BY 1RB")), locked=bytes(9))
    step = play(arrange(LOOP, ["RB RR RR"], loose, layout=layout), "1BR", 1, 1, loose)
    assert locked(step.next.layout) == {((1, 1), 1), ((1, 2), 2), ((2, 1), 0), ((2, 2), 3)}  # blue alone


def test_r6_3_nobody_has_a_swap_left_when_it_is_over(arrange, walk) -> None:
    stopped = rules.end(arrange(LOOP, bonus=True, pending=2), "deadline").next
    played = list(walk(Parameters(), 1))[-1][2].next
    for final in (stopped, played):
        assert (final.seat, final.pending, final.bonus) == (-1, 0, False)
