"""The course of an episode by the numbers in RULES.md: the table, turns, speech, the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cogeval.games.cogmud as package
from cogeval.errors import InputError
from cogeval.games import make_game
from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.state import Action, Ended, State, TurnOpened, event_kind
from cogeval.games.cogmud.world import ASK, BID, DISTANCE, GOODS, KEEPERS, ROOMS, STEP_TO
from cogeval.games.league import ALIASES

Play = Callable[..., Any]
Arrange = Callable[..., State]
FOLDER = Path(package.__file__).parent


def test_every_rule_that_code_cites_is_in_the_rules() -> None:
    defined = set(re.findall(r"^- (R\d+\.\d+) ", (FOLDER / "RULES.md").read_text(), re.MULTILINE))
    cited = set()
    for path in FOLDER.glob("*.py"):
        cited |= set(re.findall(r"\bR\d+\.\d+", path.read_text()))
    assert cited <= defined
    assert len(defined) > 40


# R1 the table


@pytest.mark.parametrize("turns", [5, 41, True, "14", 14.0, None])
def test_r1_2_turns_are_whole_and_6_to_40(turns: Any) -> None:
    with pytest.raises(InputError, match=r"expected turns of cogmud as a whole number 6\.\.40, got"):
        Cogmud(turns=turns)


@pytest.mark.parametrize("name", ["speech", "thievery"])
def test_r1_2_switches_are_true_or_false(name: str) -> None:
    with pytest.raises(InputError, match=f"expected {name} of cogmud as true or false, got 1"):
        make_game("cogmud", **{name: 1})


def test_r1_4_seed_11_is_the_hosted_episode(game: Cogmud) -> None:
    state = game.initial_state(11)
    assert state.names == ("Piston", "Gizmo", "Sprocket", "Ratchet", "Tinker", "Widget")
    assert state.room == (4, 5, 8, 0, 3, 2)
    assert state.commissions == ((1, 0), (2, 0), (2, 0), (1, 2), (3, 1), (3, 2))
    lying = {room: state.floor[room] for room in range(9) if any(state.floor[room])}
    assert lying == {
        0: (0, 0, 0, 0, 1, 0),
        4: (1, 0, 0, 0, 0, 1),
        5: (0, 0, 0, 0, 1, 0),
        6: (1, 0, 0, 0, 0, 0),
        7: (0, 0, 0, 0, 0, 1),
    }


@settings(deadline=None)
@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_r1_4_any_seed_gives_a_sound_town(seed: int) -> None:
    state = Cogmud().initial_state(seed)
    assert len(set(state.names) & set(ALIASES)) == 6
    assert len(set(state.room)) == 6
    assert all(len(set(goods)) == 2 and max(goods) <= 3 for goods in state.commissions)
    assert sum(map(sum, state.floor)) == 6
    assert state.floor[4][5] >= 1
    assert state.coin == (40,) * 6
    assert state.scores == (0.0,) * 6


def test_the_map_goes_both_ways_and_every_step_comes_nearer() -> None:
    for room, place in enumerate(ROOMS):
        assert list(place.exits) == sorted(place.exits)
        assert all(room in ROOMS[near].exits for near in place.exits)
        for goal in range(len(ROOMS)):
            step = STEP_TO[room][goal]
            assert step == room if goal == room else DISTANCE[step][goal] == DISTANCE[room][goal] - 1


# R2 a turn


def test_r2_1_the_first_restock_is_the_second_good_of_each_list(play: Play, square: State) -> None:
    after = play(square, {}).next
    for keeper, before, stock in zip(KEEPERS, square.stock, after.stock, strict=True):
        grown = [good for good in range(6) if stock[good] == before[good] + 1]
        assert grown == [keeper.deals[1]]


def test_r2_1_a_full_shelf_is_not_restocked(play: Play, square: State, arrange: Arrange) -> None:
    full = arrange(square, stock={0: (8, 0, 0, 12, 0, 0)})
    assert play(full, {}).next.stock[0] == (8, 0, 0, 12, 0, 0)


def test_r2_4_acts_resolve_in_the_order_of_initiative(play: Play, square: State, arrange: Arrange) -> None:
    last_one = arrange(square, turn=2, turns_played=2, floor={0: (0, 0, 1, 0, 0, 0)})
    turn = play(last_one, dict.fromkeys(range(6), "I take the rope."))
    assert [turn.reason(seat) for seat in range(6)] == [
        "no_such_item" if seat != 2 else "ok" for seat in range(6)
    ]
    assert [act.order for act in turn.acts.values()] == list(range(6))
    assert list(turn.acts) == [2, 3, 4, 5, 0, 1]


def test_r2_5_classes_resolve_one_after_another(
    play: Play, square: State, arrange: Arrange, pack: Any
) -> None:
    state = arrange(square, pack={1: pack(rope=1)}, turn=1, turns_played=1)
    turn = play(
        state,
        {
            0: "I walk to the chapel.",
            1: "I drop the rope.",
            2: "I wait.",
            3: "I take the rope.",
            4: 'I say "morning".',
            5: "I give Bolt 3 coins.",
        },
    )
    assert [turn.acts[seat].intent for seat in turn.acts] == ["say", "drop", "take", "give", "move", "wait"]
    assert turn.reason(3) == "ok"  # dropped and taken in one turn, in the order of initiative


def test_r2_5_a_hand_over_is_a_shop_act_and_a_gift_is_not(
    play: Play, square: State, arrange: Arrange, pack: Any
) -> None:
    state = arrange(square, room=(8,) * 6, pack={seat: pack(hide=1) for seat in range(6)})
    turn = play(state, {0: "I give Gizmo a hide.", 1: "I give Vell a hide.", 2: "I drop the hide."})
    assert list(turn.acts)[:3] == [1, 2, 0]


def test_r2_6_a_remark_precedes_what_is_quoted_and_both_stay_in_the_room_of_the_start(
    play: Play, square: State
) -> None:
    turn = play(square, {0: Action('I walk to the chapel and call "quoted".', say="remark")})
    assert [line.text for line in turn.resolved.room_log[0] if line.kind == "said"] == ["remark", "quoted"]
    assert turn.next.heard[0][:2] == turn.resolved.room_log[0][:2]
    assert turn.acts[0].intent == "move"


def test_r2_6_without_speech_nothing_is_heard_or_kept(play: Play, square: State) -> None:
    turn = play(square, {0: Action('I say "aloud".', say="remark")}, speech=False)
    assert turn.acts[0].say == ""
    assert turn.acts[0].reason == "ok"
    assert not [line for line in turn.resolved.room_log[0] if line.kind == "said"]


def test_r2_6_quoted_speech_is_cut_at_160(play: Play, square: State) -> None:
    turn = play(square, {0: f'I wait. "{"x" * 170}"'})
    assert turn.resolved.room_log[0][0].text == "x" * 160


def test_r2_8_a_room_keeps_the_newest_twelve_lines(play: Play, square: State) -> None:
    actions = {seat: Action(f'I wait. "quoted {seat}"', say=f"remark {seat}") for seat in range(6)}
    lines = play(square, actions).resolved.room_log[0]
    assert len(lines) == 12
    assert [line.kind for line in lines] == ["said"] * 6 + ["waited"] * 6


def test_r2_9_texts_are_trimmed_then_put_on_one_line_then_cut(play: Play, square: State) -> None:
    said = Action("\u2003I\r\nwait.\t" + "x" * 300, say=" a\nb ", notes="\u00a0n\to\r" + "y" * 700)
    act = play(square, {0: said}).acts[0]
    assert act.sentence == ("I  wait. " + "x" * 300)[:240]
    assert act.say == "a b"
    assert act.notes == ("n o " + "y" * 700)[:600]


def test_r2_9_empty_notes_keep_the_old_ones(play: Play, square: State, arrange: Arrange) -> None:
    noted = arrange(square, notes={0: "old"})
    for blank in ("", " ", "\r\n", "\u2003\u00a0"):
        assert play(noted, {0: Action(notes=blank)}).next.notes[0] == "old"
    assert play(noted, {0: Action(notes="new")}).next.notes[0] == "new"


# R4 prices


def test_r4_2_prices_move_with_the_stock_within_their_bounds() -> None:
    for good, asks in enumerate(ASK):
        value = GOODS[good].value
        assert asks[6] == value
        assert list(asks) == sorted(asks, reverse=True)
        assert max(2, value // 2) <= min(asks) <= max(asks) <= 3 * value
        assert all(bid == max(1, ask * 2 // 3) for ask, bid in zip(asks, BID[good], strict=True))


# R7 the end


def test_r7_1_idle_seats_score_nothing(game: Cogmud, square: State) -> None:
    state = square
    while decisions := game.decisions(state):
        state = game.step(state, {d.seat: d.default for d in decisions}).next
    assert [seat.score for seat in game.results(state).seats] == [0.0] * 6


def test_r7_2_rank_keys_are_the_scores_in_whole_coin(game: Cogmud, turns: Any) -> None:
    state = list(turns(5))[-1][1].next
    for seat in game.results(state).seats:
        assert seat.score == (seat.rank_key[0] - 40) / 40


def test_r7_4_the_last_turn_opens_nothing(play: Play, square: State, arrange: Arrange) -> None:
    last = arrange(square, turn=13, turns_played=13, bond={0: 2}, employer={0: 1})
    turn = play(last, {})
    assert turn.next.reason == "complete"
    assert (turn.next.turn, turn.next.turns_played) == (14, 14)
    assert turn.next.stock == last.stock
    assert turn.next.bond[0] == 2
    assert turn.next.room_log[0]
    assert turn.step.events[-2:] == (TurnOpened(14), Ended(14, "complete"))


def test_r7_4_the_clock_ends_an_open_turn_as_it_stands(game: Cogmud, square: State) -> None:
    stopped = game.stop(square)
    assert stopped.next.reason == "deadline"
    assert game.decisions(stopped.next) == ()
    assert [event_kind(event) for event in stopped.events] == ["end"]
    assert game.results(stopped.next).phases == 0


# R11 salience


@pytest.mark.parametrize(("length", "salience"), [(40, 20), (41, 30)])
def test_r11_3_a_speech_with_a_long_remark_is_worth_more(
    play: Play, square: State, length: int, salience: int
) -> None:
    assert play(square, {0: Action("I say hello.", say="x" * length)}).acts[0].salience == salience


@pytest.mark.parametrize(
    ("room", "keeper", "good", "held", "stock", "paid", "salience"),
    [(3, 1, 1, 3, 2, 19, 25), (1, 2, 4, 2, 1, 20, 45)],
)
def test_r11_3_a_deal_from_20_coin_is_a_big_one(
    play: Play,
    square: State,
    arrange: Arrange,
    room: int,
    keeper: int,
    good: int,
    held: int,
    stock: int,
    paid: int,
    salience: int,
) -> None:
    def only(units: int) -> tuple[int, ...]:
        return tuple(units if each == good else 0 for each in range(6))

    state = arrange(square, room={0: room}, pack={0: only(held)}, stock={keeper: only(stock)})
    turn = play(state, {0: f"I sell all my {GOODS[good].plural}."})
    assert (turn.acts[0].coin, turn.acts[0].salience) == (paid, salience)
