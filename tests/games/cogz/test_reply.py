"""R8: a model's reply, read as an action."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cogeval.errors import ActionError
from cogeval.games.cogz import Cogz
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.reply import parse_reply, write_reply
from cogeval.games.cogz.state import Action, State
from cogeval.games.cogz.tiles import PLACED, TILE_TEXTS, colour_at
from cogeval.testing.json_schema import schema_errors

GAME = Cogz()
RG, BB, GY = (TILE_TEXTS.index(text) for text in ("RG", "BB", "GY"))


def holding(*hand: int, seats: int = 2) -> State:
    """The first state, in which seat 0 holds these tiles."""
    state = Cogz(seats=seats).initial_state(0)
    return replace(state, hands=(hand, *state.hands[1:]))


STATE = holding(RG, BB, GY)
GOOD = {"tile": "RG", "corner": "NE", "cell": "C2"}


def read(**fields: object) -> Action:
    return parse_reply(STATE, 0, {**GOOD, **fields})


def hint(reply: Mapping[str, object]) -> str:
    with pytest.raises(ActionError) as raised:
        parse_reply(STATE, 0, reply)
    return raised.value.hint


def test_r8_3_tile_corner_and_cell_are_an_action() -> None:
    assert parse_reply(STATE, 0, GOOD) == Action(0, 0, 1, 2)
    assert read(tile="GY", corner="NW", cell="E5") == Action(2, 3, 4, 4)


@pytest.mark.parametrize("corner", ["NE", "SE", "SW", "NW"])
def test_r8_3_the_corner_is_that_of_the_letter_written_first(corner: str) -> None:
    at = ("NE", "SE", "SW", "NW").index(corner)
    for tile, colour in (("RG", 0), ("GR", 1)):
        action = read(tile=tile, corner=corner)
        code = PLACED[RG][action.rotation]
        assert colour_at(code, at) == colour
        assert colour_at(code, (at + 2) % 4) == 1 - colour


@pytest.mark.parametrize(
    "fields",
    [
        {"tile": "rg", "corner": "ne", "cell": "c2"},
        {"tile": " R G ", "corner": "N E", "cell": "C 2"},
        {"tile": "R/G", "corner": "north-east", "cell": "c-2\n"},
        {"tile": "red green", "corner": "NE", "cell": "C2"},
        {"tile": "Red/Green", "corner": "NE", "cell": "C2"},
        {"tile": "green-red", "corner": "SW", "cell": "C2"},
        {"tile": "g+r", "corner": "South West", "cell": "C,2"},
    ],
)
def test_r8_3_case_blanks_and_marks_do_not_matter(fields: Mapping[str, str]) -> None:
    assert read(**fields) == Action(0, 0, 1, 2)


def test_r8_2_a_tile_of_one_colour_reads_as_its_first_rotation() -> None:
    assert read(tile="BB", corner="SW") == read(tile="BB", corner="NE") == Action(1, 0, 1, 2)
    assert read(tile="BB", corner="NW") == read(tile="BB", corner="SE") == Action(1, 1, 1, 2)


def test_r8_3_of_equal_tiles_the_first_slot_is_meant() -> None:
    state = holding(BB, RG, RG)
    assert parse_reply(state, 0, GOOD).slot == 1


def test_r8_3_other_fields_are_passed_over() -> None:
    assert read(why="it closes the loop", slot=2) == Action(0, 0, 1, 2)


@pytest.mark.parametrize("name", ["tile", "corner", "cell"])
@pytest.mark.parametrize("value", [None, 5, ["RG"], {}, True])
def test_r8_4_a_field_that_is_no_text_is_quoted(name: str, value: object) -> None:
    told = hint({**GOOD, name: value})
    assert told.startswith(f'expected "{name}" as ')
    assert told.endswith(f", got {value!r}")
    assert hint({k: v for k, v in GOOD.items() if k != name}).endswith(", got nothing")


@pytest.mark.parametrize("tile", ["", "RR", "RGB", "R", "BG", "XY", "0RG", "ß", "\ud800"])
def test_r8_4_a_tile_that_the_hand_lacks_is_told_the_hand(tile: str) -> None:
    assert hint({**GOOD, "tile": tile}) == (
        f'expected "tile" as a tile of your hand (RG, BB, GY), got {tile!r}'
    )


@pytest.mark.parametrize("corner", ["", "EN", "N", "0", "NORTH", "NNE"])
def test_r8_4_a_corner_that_is_none_is_told_the_corners(corner: str) -> None:
    assert 'expected "corner" as NE, SE, SW, NW: ' in hint({**GOOD, "corner": corner})


@pytest.mark.parametrize("cell", ["", "F1", "A6", "A0", "2C", "C22", "C", "AA1", "C²", "Z9"])
def test_r8_4_a_cell_that_does_not_exist_is_told_the_board(cell: str) -> None:
    assert hint({**GOOD, "cell": cell}) == (
        f'expected "cell" as a column letter and a row number, A1 to E5, got {cell!r}'
    )


def test_r8_4_a_long_value_is_cut() -> None:
    assert len(hint({**GOOD, "tile": "RG" * 5000})) < 120


def test_r1_3_the_hint_and_the_schema_follow_the_board() -> None:
    state = holding(RG, BB, GY, seats=6)
    with pytest.raises(ActionError, match="A1 to G7"):
        parse_reply(state, 0, {**GOOD, "cell": "H1"})
    assert parse_reply(state, 0, {**GOOD, "cell": "G7"}) == Action(0, 0, 6, 6)
    (decision,) = Cogz(seats=6).decisions(state)
    cells = Cogz(seats=6).reply_schema(decision)["properties"]["cell"]["enum"]
    assert (len(cells), cells[0], cells[-1]) == (49, "A1", "G7")


def test_the_schema_offers_the_hand_once() -> None:
    (decision,) = GAME.decisions(holding(BB, RG, BB))
    schema = GAME.reply_schema(decision)
    assert schema["properties"]["tile"]["enum"] == ["BB", "RG"]
    assert not list(schema_errors(GOOD, schema))
    for wrong in ({**GOOD, "tile": "GY"}, {**GOOD, "cell": "F1"}, {"tile": "RG"}, {**GOOD, "say": ""}):
        assert list(schema_errors(wrong, schema)), wrong


def test_every_legal_swap_reads_as_it_is_written() -> None:
    for seats in (2, 6):
        state = Cogz(seats=seats).initial_state(3)
        legal = Swaps(state.layout, state.hands[0])
        for action in legal:
            assert parse_reply(state, 0, write_reply(legal, action)) == action


_TEXT = st.text(st.characters()) | st.text("RGBYrgby NESWnesw123456789ABCDEFG-", max_size=6)
_VALUES: st.SearchStrategy[Any] = st.none() | st.integers() | _TEXT | st.lists(_TEXT) | st.just("\ud800")


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(("tile", "corner", "cell")) | st.text(), _VALUES))
def test_any_reply_gives_an_action_or_an_action_error(reply: Mapping[str, object]) -> None:
    try:
        action = parse_reply(STATE, 0, reply)
    except ActionError as error:
        error.hint.encode()  # raises on lone surrogates
        return
    assert 0 <= action.slot < 3
    assert 0 <= action.rotation < 4
    assert 0 <= action.row < 5
    assert 0 <= action.column < 5
    assert GAME.action_from_wire(json.loads(json.dumps(GAME.action_to_wire(action)))) == action
