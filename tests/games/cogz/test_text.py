"""What a model seat reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cogeval.games.cogz import Cogz
from cogeval.games.cogz.chains import layout_of, make_layout
from cogeval.games.cogz.lines import cell_text
from cogeval.games.cogz.reply import parse_reply
from cogeval.games.cogz.rules import arranged, swap
from cogeval.games.cogz.state import Action, Parameters, State, Swap
from cogeval.games.cogz.text import prompt
from cogeval.games.cogz.tiles import COLOURS, CORNERS, TILE_TEXTS, parse_placed, placed_code, placed_text
from cogeval.games.cogz.view import observe
from cogeval.testing.walks import walk

RR, RG, RB, GG, GB, GY, BB, YY = (
    TILE_TEXTS.index(text) for text in ("RR", "RG", "RB", "GG", "GB", "GY", "BB", "YY")
)

LOOP = ["1RG 0RR 1RY", "0RY 1GB 1YG", "0YR 1YR 1BG"]
"""A board on which 1GR at B2 closes a red loop of four."""


def board(lines: list[str], hands: tuple[tuple[int, ...], ...] = ((RG, GB, YY), (RR, GG, BB))) -> State:
    return arranged(Parameters(), layout_of(lines), hands)


def user(state: State, seat: int = 0, **parameters: Any) -> str:
    return prompt(observe(Parameters(**parameters), state, seat)).user


def section(text: str, title: str) -> str:
    """One section of the user text, without its title."""
    (found,) = [part for part in text.split("\n\n") if part.startswith(title)]
    return found.partition("\n")[2]


def read_board(text: str) -> tuple[bytes, bytes, int]:
    """The codes, the locks and the number of columns of a board as it is shown (R8.5)."""
    lines = [line for line in section(text, "BOARD").splitlines() if "|" in line]
    codes, locks = [], []
    for number, (upper, lower) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
        assert int(upper[:2]) == number + 1
        for high, low in zip(upper.split("|")[1:-1], lower.split("|")[1:-1], strict=True):
            (north_west, north_east), (south_west, south_east) = high.strip(), low.strip()
            corners = (north_east, south_east, south_west, north_west)
            first, second = corners[0::2] if corners[1] == "." else corners[1::2]
            diagonal = 0 if corners[1] == "." else 1
            assert (corners[1 - diagonal], corners[3 - diagonal]) == (".", ".")
            codes.append(placed_code(diagonal, COLOURS.index(first.upper()), COLOURS.index(second.upper())))
            locks.append(first.islower() | second.islower() << 1)
    return bytes(codes), bytes(locks), len(codes) // (len(lines) // 2)


@pytest.mark.parametrize("seats", [2, 3, 4, 5, 6])
def test_r8_5_the_board_that_is_shown_can_be_read_back(seats: int) -> None:
    game = Cogz(seats=seats)
    for position in walk(game, 6).positions:
        seen = game.observe(position.state, position.decisions[0].seat)
        assert read_board(prompt(seen).user) == (seen.board, seen.locked, seen.columns)


def test_r8_5_a_cell_is_two_by_two_letters() -> None:
    shown = section(user(board(["0RG 1BY", "0RR 0RR"])), "BOARD")
    assert (
        shown.splitlines()
        == [
            "     A    B",
            "   +----+----+",
            " 1 | .R | Y. |",
            "   | G. | .B |",
            "   +----+----+",
            " 2 | .R | .R |",
            "   | R. | R. |",
            "   +----+----+",
        ]
        or "| .R |" in shown
    )


def test_the_rules_text_has_the_figures_of_its_game() -> None:
    game = Cogz(seats=5, pair_copies=9, nuts_per_colour=2)
    system = game.prompt(game.observe(game.initial_state(0), 0)).system
    flat = " ".join(system.split())
    assert "at a table of 5 (seats 0 to 4)" in flat
    assert "of each tile of two colours there are 9, of each tile of one colour 4" in flat
    assert "The board has 6 rows (1 at the top) and 7 columns (A to G from the left)" in flat
    assert "The lever is at 15." in flat
    assert "(2 of each colour at the start)" in flat
    assert "THE GAME lasts 6 rounds" in flat
    assert not re.search(r"\{\w*\}", system)
    assert max(map(len, system.splitlines())) <= 110


def test_the_rules_text_follows_the_parameters() -> None:
    def system(**parameters: Any) -> str:
        game = Cogz(**parameters)
        return " ".join(game.prompt(game.observe(game.initial_state(0), 0)).system.split())

    assert "hidden from the others" in system()
    assert "all hands too" in system(open_hands=True)
    assert "are locked too" in system()
    assert "are not locked, until a swap completes them" in system(setup_locks=False)
    assert "The lever is at 40." in system(lever=40)
    assert "(seats 0 and 1)" in system()


def test_the_example_of_the_rules_text_reads_as_it_says() -> None:
    game = Cogz()
    state = replace(game.initial_state(0), hands=((RG, GB, YY), (RR, GG, BB)))
    system = game.prompt(game.observe(state, 0)).system
    assert '{"tile": "RG", "corner": "NE", "cell": "C2"}' in system
    assert "red at NE and green at SW of C2" in " ".join(system.split())
    action = parse_reply(state, 0, {"tile": "RG", "corner": "NE", "cell": "C2"})
    assert (action.row, action.column) == (1, 2)
    assert placed_text(placed_code(0, 0, 1)) == "0RG"
    assert action.rotation == 0


def test_the_user_text_tells_colours_nuts_hands_and_the_lever() -> None:
    state = replace(
        Cogz(seats=3).initial_state(0),
        hands=((GY, RG, BB), (YY, RR, RG), (BB, BB, GY)),
        seen=((True, False, False), (True, False, True), (False, False, False)),
        points=((3, 4, 17, 6), (9, 0, 2, 21), (1, 1, 1, 1)),
        nuts=((1, 0, 0, 2), (0, 0, 0, 0), (0, 0, 0, 0)),
        supply=(2, 3, 3, 1),
        round=2,
    )
    text = user(state, seats=3)
    assert text.startswith("Round 3 of 8 (6 left, this one included). You are seat 0 of 3.")
    table = section(text, "COLOURS").splitlines()
    assert table[0].split() == ["seat", "red", "green", "blue", "yellow", "lowest", "nuts"]
    assert table[1].split() == ["0", "(you)", "3", "4", "17", "6", "4", "1", "red,", "2", "yellow"]
    assert table[2].split() == ["1", "9", "0", "2", "21", "0", "none"]
    assert table[4] == "Nuts left: 2 red, 3 green, 3 blue, 1 yellow"
    assert (
        table[5]
        == "Points that you miss to the lever at 17: red 14, green 13, blue none (at or past it), yellow 11"
    )
    assert section(text, "HANDS").splitlines() == [
        "You hold RG, GY, BB (the others know: GY)",
        "Seat 1 holds RG, YY, 1 unseen",
        "Seat 2 holds 3 unseen",
    ]


def test_the_columns_of_the_table_line_up() -> None:
    state = replace(Cogz().initial_state(0), points=((3, 14, 117, 6), (9, 0, 2, 21)))
    table = section(user(state), "COLOURS").splitlines()
    for number, name in ((3, "red"), (14, "green"), (117, "blue"), (6, "yellow")):
        end = table[0].index(name) + len(name)
        assert table[1][:end].endswith(f" {number}")


def test_what_happened_since_the_own_last_turn_is_told_in_words() -> None:
    parameters = Parameters()
    state = board(LOOP)
    assert section(user(state), "SINCE YOUR LAST TURN") == "Nothing yet."
    after = swap(parameters, state, Action(0, 3, 1, 1)).next  # red at NW, green at SE
    told = (
        "laid GR at B2, G in SE and R in NW, and took GB: red +4; completed a red mechanism; won nuts: 1 red."
    )
    assert section(user(after, 1), "SINCE YOUR LAST TURN") == f"Seat 0 {told}"
    assert section(user(after, 0), "SINCE YOUR LAST TURN") == f"You {told}"
    again = swap(parameters, after, Action(1, 0, 2, 2)).next
    assert _who(user(again, 0)) == ["You", "Seat 1"]
    assert _who(user(again, 1)) == ["You"]


def test_all_swaps_of_the_own_last_turn_are_told() -> None:
    def made(round_: int, seat: int, bonus: bool = False) -> Swap:
        code = parse_placed("0RG")
        return Swap(round_, seat, bonus, 0, 0, code, RR, False, (1, 0, 0, 0), (0, 0, 0, 0), (), 0)

    record = (made(0, 0), made(0, 1), made(1, 0), made(1, 0, True), made(1, 1), made(1, 1, True))
    state = replace(board(LOOP), record=record, round=2)
    assert _who(user(state)) == ["You", "You (bonus turn)", "Seat 1", "Seat 1 (bonus turn)"]
    assert _who(user(state, 1)) == ["You", "You (bonus turn)"]


def _who(text: str) -> list[str]:
    lines = section(text, "SINCE YOUR LAST TURN").splitlines()
    return [line.partition(" laid ")[0] for line in lines]


def test_r4_5_bonus_turns_are_told() -> None:
    won = Swap(0, 0, True, 0, 0, parse_placed("0RG"), RR, False, (0, 0, 0, 0), (0, 0, 0, 0), (), 2)
    state = replace(board(LOOP), record=(won,), bonus=True, pending=2)
    text = user(state)
    assert "You (bonus turn) laid RG at A1" in text
    assert "took RR: no points; won 2 bonus turns." in text
    assert text.endswith(
        "It is your BONUS turn; 2 swaps are left in this turn, this one included. Which swap do you make?"
    )
    assert user(state, 1).endswith(
        "It is the turn of seat 0 (a bonus turn); 2 swaps are left in this turn, this one included."
    )
    assert user(replace(state, pending=1), 1).endswith("It is the turn of seat 0 (a bonus turn).")
    assert user(replace(state, pending=1)).endswith("It is your BONUS turn. Which swap do you make?")


def test_longest_chains_name_their_ends() -> None:
    chains = section(user(board(["1RY 0GB 0BY", "0BB 0GG 0YG", "1RY 0GG 1YG"])), "LONGEST").splitlines()
    assert "green 5: B2 NE, C2 SW, C3 NW, B3 NE, B2 SW; open to B1 (south side) and A2 (east side)" in chains
    assert sum(line.startswith("yellow") for line in chains) == 1
    locked = section(user(board(LOOP)), "LONGEST")
    assert "red 3: " in locked


def test_locked_chains_are_left_out_and_free_mechanisms_told() -> None:
    closed = ["1RG 0RR 1RY", "0RY 1GR 1YG", "0YR 1YR 1BG"]
    assert "red 4" not in section(user(board(closed)), "LONGEST")
    layout = layout_of(closed)
    free = replace(board(closed), layout=replace(make_layout(3, 3, layout.board), locked=bytes(9)))
    lines = section(user(free, setup_locks=False), "LONGEST").splitlines()
    assert any(line.startswith("red 4: ") and line.endswith("a mechanism, but not locked") for line in lines)


@pytest.mark.parametrize(
    ("locked", "told"),
    [
        ({}, "open to A2 (south side) and B2 (south side)"),
        ({3: 1}, "open to A2 (south side) and B2 (south side)"),  # the other arc of A2
        ({3: 2}, "open to B2 (south side); blocked by a locked arc of A2 (south side)"),
        ({3: 3, 4: 3}, "blocked by a locked arc of A2 (south side) and B2 (south side)"),
    ],
)
def test_r3_4_an_end_at_a_locked_arc_is_blocked(locked: dict[int, int], told: str) -> None:
    state = board(["1RG 0RR 1RY", "0RY 1GR 1YG", "0RG 1GR 1BG"])
    held = replace(state.layout, locked=bytes([locked.get(cell, 0) for cell in range(9)]))
    lines = section(user(replace(state, layout=held)), "LONGEST").splitlines()
    assert f"red 2: A3 NE, B3 NW; {told}" in lines


def test_a_game_that_is_over_says_so() -> None:
    game = Cogz()
    state = game.stop(game.initial_state(0)).next
    text = user(state)
    assert text.startswith("The game is over. You were seat 0 of 2.")
    assert text.endswith("Nobody has a turn any more.")


def test_r6_a_game_that_is_over_shows_final_results_and_the_ranking() -> None:
    state = replace(
        Cogz(seats=3).initial_state(0),
        seat=-1,
        points=((9, 9, 9, 9), (20, 5, 9, 9), (9, 9, 9, 9)),
        nuts=((0, 0, 0, 0), (0, 3, 0, 0), (0, 0, 0, 0)),
    )
    table = section(user(state, seats=3), "FINAL RESULTS (nuts included, 2 each;").splitlines()
    assert table[2].split() == ["1", "20", "11", "9", "9", "9", "3", "green"]
    assert table[4:] == [
        "Ranking: 1. seat 1 with 9, 9, 11, 20; 2. seat 0 (you) with 9, 9, 9, 9; 2. seat 2 with 9, 9, 9, 9"
    ]


@pytest.mark.parametrize("over", [False, True])
def test_r4_4_without_nuts_the_text_does_not_mention_them(over: bool) -> None:
    game = Cogz(nuts_per_colour=0)
    state = game.initial_state(0)
    shown = game.prompt(game.observe(game.stop(state).next if over else state, 0))
    assert "nut" not in f"{shown.system}{shown.user}".lower()


def test_r1_2_equal_copies_are_told_in_one_figure() -> None:
    game = Cogz()
    system = " ".join(game.prompt(game.observe(game.initial_state(0), 0)).system.split())
    assert "RR two red ones; there are 7 of each of the ten tiles. The board" in system


def test_the_swap_that_the_page_works_out_is_scored_so() -> None:
    page = (Path(__file__).parents[3] / "docs/games/cogz.md").read_text(encoding="utf-8")
    text = page.partition("## One swap")[2].partition("\n## ")[0]
    game = Cogz()
    state = game.initial_state(3)
    (shown,) = re.findall(r"```\n(.*?)\n```", text, re.DOTALL)
    assert shown == section(game.prompt(game.observe(state, 0)).user, "BOARD")
    assert sorted(TILE_TEXTS[tile] for tile in state.hands[0]) == ["BY", "GG", "GY"]
    (reply,) = re.findall(r"`(\{.*?\})`", text)
    step = game.step(state, {0: game.parse_reply(state, 0, json.loads(reply))})
    (made,) = step.events
    assert isinstance(made, Swap)
    assert (made.points, made.nuts, TILE_TEXTS[made.taken]) == ((0, 0, 2, 5), (0, 0, 1, 0), "BB")
    chains = [
        {cell_text(cell, 5) + " " + CORNERS[corner] for cell, corner in line.arcs}
        for line in game.observe(step.next, 0).chains
    ]
    assert {"A2 SW", "A3 NW"} in chains
    assert {"A3 SE", "B3 SW", "B4 NE", "C4 SW", "A4 NW"} in chains


@pytest.mark.parametrize(("seats", "most"), [(2, 3_000), (6, 5_000)])
def test_the_user_text_stays_short(seats: int, most: int) -> None:
    game = Cogz(seats=seats)
    for position in walk(game, 3).positions:
        seen = game.observe(position.state, position.decisions[0].seat)
        assert len(game.prompt(seen).user) <= most
