"""The rules by their numbers in RULES.md, on states set up by hand; actions are in test_actions."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import cogeval.games.cogchemists as package
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.constants import LAB_VERBS, MARKET_VERBS, MIX, POTIONS, SIGNATURES
from cogeval.games.cogchemists.state import (
    Act,
    Action,
    Ended,
    Exhibition,
    RoundOpened,
    Seal,
    State,
    event_kind,
)
from cogeval.games.league import ALIASES

Play = Callable[..., Any]
Arrange = Callable[..., State]
FOLDER = Path(package.__file__).parent


def acts(step: Any) -> dict[int, Act]:
    return {event.seat: event for event in step.events if isinstance(event, Act)}


def test_every_rule_that_code_cites_is_in_the_rules() -> None:
    defined = set(re.findall(r"^- (R\d+\.\d+) ", (FOLDER / "RULES.md").read_text(), re.MULTILINE))
    cited = set()
    for path in FOLDER.glob("*.py"):
        cited |= set(re.findall(r"\bR\d+\.\d+", path.read_text()))
    assert cited <= defined
    assert len(defined) > 30


# R1 the table


def test_r1_3_seats_start_equal(game: Cogchemists) -> None:
    state = game.initial_state(0)
    assert (state.coin, state.reputation) == ((4,) * 4, (10,) * 4)
    assert [len(hand) for hand in state.hands] == [3] * 4


def test_r1_4_seed_0_is_the_hosted_episode(game: Cogchemists) -> None:
    state = game.initial_state(0)
    assert state.names == ("Piston", "Widget", "Tinker", "Bolt")
    assert state.chemistry == (6, 2, 3, 5, 7, 0, 4, 1)
    assert state.demands == ("GREEN+", "RED+", "BLUE-", "BLUE-", "GREEN-", "RED+")
    assert state.hands == ((2, 4, 4), (1, 2, 1), (3, 2, 0), (6, 6, 5))


def test_r1_4_more_rounds_draw_more_demands_before_the_hands() -> None:
    short, long = Cogchemists(rounds=3).initial_state(7), Cogchemists(rounds=10).initial_state(7)
    assert short.chemistry == long.chemistry
    assert short.demands == long.demands[:3]
    assert short.hands != long.hands


@settings(deadline=None)
@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_r1_4_any_seed_gives_a_sound_world(seed: int) -> None:
    state = Cogchemists().initial_state(seed)
    assert sorted(state.chemistry) == list(range(8))
    assert len(set(state.names) & set(ALIASES)) == 4
    assert all(demand in POTIONS[:6] for demand in state.demands)
    assert all(0 <= card < 8 for hand in state.hands for card in hand)


# R2 mixing


def test_r2_1_each_colour_and_sign_comes_from_two_pairs_and_mud_from_sixteen() -> None:
    counts = Counter(MIX[x][y] for x, y in itertools.combinations(range(8), 2))
    assert counts == {**dict.fromkeys(POTIONS[:6], 2), "MUD": 16}


def test_r2_1_sign_follows_the_shared_aspects() -> None:
    def mix(x: str, y: str) -> str:
        return MIX[SIGNATURES.index(x)][SIGNATURES.index(y)]

    assert mix("R+G+B+", "R-G+B+") == "RED+"
    assert mix("R+G-B-", "R-G-B-") == "RED+"
    assert mix("R+G+B-", "R-G+B-") == "RED-"
    assert mix("R+G+B+", "R+G+B-") == "BLUE+"
    assert mix("R+G-B+", "R+G+B+") == "GREEN+"
    assert mix("R-G-B+", "R-G+B+") == "GREEN-"


def test_r2_2_mixing_is_symmetric_and_twice_the_same_is_mud() -> None:
    assert all(MIX[x][y] == MIX[y][x] for x in range(8) for y in range(8))
    assert all(MIX[x][x] == "MUD" for x in range(8))


# R3 a round


def test_check_figure_a_seat_that_passes_every_phase_scores_13_2(game: Cogchemists, play: Play) -> None:
    state, phases = game.initial_state(3), 0
    while game.decisions(state):
        state, phases = play(state).next, phases + 1
    results = game.results(state)
    assert (phases, results.phases, results.reason) == (12, 12, "complete")
    assert [seat.score for seat in results.seats] == [13.2] * 4


def test_r3_1_royalties_are_paid_at_the_next_round_double_with_the_press(
    market: State, play: Play, arrange: Arrange
) -> None:
    seals = (
        Seal(0, 0, 1, 0),
        Seal(1, 1, 1, 0),
        Seal(2, 2, 2, 0),
        Seal(3, 3, 2, 0, status="burned", burned_by=0, round_burned=0),
    )
    step = play(arrange(market, seals=seals, press=(False, True, False, False)))
    assert step.resolved.coin == (5, 5, 5, 5)
    assert step.next.coin == (5, 9, 6, 5)
    opened = next(event for event in step.events if isinstance(event, RoundOpened))
    assert (opened.round, opened.royalties) == (1, (0, 4, 1, 0))


def test_r3_2_initiative_moves_on_by_one_seat_a_round(game: Cogchemists, play: Play) -> None:
    state, seen = game.initial_state(0), []
    while game.decisions(state):
        step = play(state)
        seen.append([event.seat for event in step.events if isinstance(event, Act)])
        state = step.next
    rounds = [[(i + round_) % 4 for i in range(4)] for round_ in range(6)]
    assert seen == [order for order in rounds for _ in range(2)]


def test_r3_3_rounds_are_a_lab_and_a_market(game: Cogchemists, play: Play) -> None:
    state, kinds = game.initial_state(0), []
    assert [event_kind(event) for event in game.opening_events(state)] == ["start", "round", "phase"]
    while game.decisions(state):
        kinds.append((state.round, state.phase))
        step = play(state)
        state = step.next
    assert kinds == [(round_, phase) for round_ in range(6) for phase in ("lab", "market")]
    assert [event_kind(event) for event in step.events][4:] == ["exhibition", "end"]


def test_r3_5_remarks_are_trimmed_cut_and_heard_for_one_phase(lab: State, play: Play) -> None:
    said = play(
        lab, seat0=Action(say="\u2003 a\r\nb "), seat1=Action(say="x" * 200), seat2=Action(say="\ud800")
    )
    assert said.next.heard == ("a  b", "x" * 140, "?", "")
    assert acts(said)[0].say == "a  b"
    assert all(act.say == "" for act in said.next.record)
    assert play(said.next).next.heard == ("", "", "", "")


def test_r3_5_notes_stay_until_notes_that_are_not_empty_as_given(lab: State, play: Play) -> None:
    first = play(lab, seat0=Action(notes=" keep\n"), seat1=Action(notes="n" * 700)).next
    assert first.notes == ("keep", "n" * 600, "", "")
    assert play(first).next.notes == first.notes
    assert play(first, seat0=Action(notes="  ")).next.notes[0] == ""


def test_r3_5_a_rejected_action_is_heard_and_its_notes_are_kept(lab: State, play: Play) -> None:
    step = play(lab, seat0=Action("dance", say="hm", notes="n"))
    assert acts(step)[0].outcome == "rejected:unknown_action"
    assert (step.next.heard[0], step.next.notes[0]) == ("hm", "n")


def test_r1_2_without_talk_every_remark_is_empty() -> None:
    game = Cogchemists(talk=False)
    step = game.step(game.initial_state(0), {seat: Action(say="psst") for seat in range(4)})
    assert step.next.heard == ("",) * 4
    assert all(act.say == "" for act in acts(step).values())


# R7.3, R8


def test_r7_3_grids_change_at_the_next_opening_only(lab: State, play: Play) -> None:
    step = play(lab, seat0=Action("test_student", 0, 1))
    assert step.resolved.known[0].count == 40_320
    assert [known.count for known in step.next.known] == [2_880, 40_320, 40_320, 40_320]


def ending(step: Any) -> tuple[Exhibition, Ended]:
    exhibition, end = step.events[-2:]
    assert isinstance(exhibition, Exhibition)
    assert isinstance(end, Ended)
    return exhibition, end


def test_r8_1_the_exhibition_settles_standing_seals(
    market: State, game: Cogchemists, arrange: Arrange
) -> None:
    burned = Seal(2, 0, 3, 0, (0,), status="burned", burned_by=1, round_burned=0)
    board = arrange(market, seals=(Seal(0, 0, 0, 0, (1, 2)), Seal(1, 7, 1, 0, (0,)), burned))
    step = game.stop(board)
    exhibition, end = ending(step)
    assert exhibition.rep_deltas == (5 - 3, 2 - 6, 2, 0)
    assert [verdict.true for verdict in exhibition.verdicts] == [True, False]
    assert exhibition.chemistry == board.chemistry
    assert step.next.reputation == (12, 6, 12, 10)
    assert (end.reason, end.round) == ("deadline", 0)


def test_r8_2_a_market_that_did_not_resolve_does_not_count(game: Cogchemists, lab: State, play: Play) -> None:
    assert game.stop(play(lab).next).next.rounds_played == 0
    assert game.stop(play(play(lab).next).next).next.rounds_played == 1
    results = game.results(game.stop(lab).next)
    assert (results.reason, results.phases) == ("deadline", 0)


def test_r8_4_statistics(market: State, game: Cogchemists, arrange: Arrange) -> None:
    seals = (
        Seal(0, 0, 0, 0),
        Seal(1, 5, 0, 0),
        Seal(2, 5, 0, 0, status="burned", burned_by=3, round_burned=0),
    )
    results = game.results(game.stop(arrange(market, seals=seals)).next)
    assert results.seats[0].statistics == {
        "reputation": 9,
        "coin": 4,
        "published": 3,
        "true_theories": 1,
        "false_theories": 1,
        "burned": 1,
        "debunks": 0,
    }
    assert results.seats[3].statistics["debunks"] == 1
    assert (results.seats[0].score, results.seats[0].rank_key) == (9.8, (49,))


def test_r8_3_equal_scores_tie_although_their_floats_differ(
    game: Cogchemists, market: State, arrange: Arrange
) -> None:
    state = arrange(market, reputation=(-4, -2, 10, 10), coin=(11, 1, 0, 0))
    first, second, *_ = game.results(game.stop(state).next).seats
    assert first.score != second.score  # -4 + 0.2 * 11 and -2 + 0.2 * 1: both -1.8, but for the last bit
    assert first.rank_key == second.rank_key


# the step as a function

_INTS = st.sampled_from((-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 99, 1 << 70, -(1 << 70)))
_TEXT = st.text(st.characters(), max_size=200)  # lone surrogates included
_ACTIONS = st.builds(
    Action,
    st.sampled_from((*LAB_VERBS, *MARKET_VERBS, "")) | _TEXT,
    _INTS,
    _INTS,
    _INTS,
    st.sampled_from(("", "mortar", "press")) | _TEXT,
    _TEXT,
    _TEXT,
)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 99), st.lists(st.tuples(*[_ACTIONS] * 4), min_size=1, max_size=6))
def test_step_never_raises_and_leaves_its_argument_unchanged(
    seed: int, phases: list[tuple[Action, ...]]
) -> None:
    game = Cogchemists(rounds=3)
    state = game.initial_state(seed)
    for actions in phases:
        before = repr(state)
        step = game.step(state, dict(enumerate(actions)))
        assert repr(state) == before
        assert len(acts(step)) == 4
        assert all(coin >= 0 for coin in step.next.coin)
        assert all(len(hand) <= 6 for hand in step.next.hands)
        assert all(game.prompt(game.observe(step.next, seat)).user.encode() for seat in range(4))
        state = step.next
