"""R7: what a seat sees, that nothing else shows, and that it survives the wire."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cogeval.games.cogz import Cogz
from cogeval.games.cogz.chains import chain, layout_of, make_layout
from cogeval.games.cogz.lines import board_texts, cell_text, chains_of
from cogeval.games.cogz.state import Action, Parameters, State
from cogeval.games.cogz.tiles import CORNERS, TILE_OF, TILE_TEXTS, corners_of
from cogeval.games.cogz.view import observe
from cogeval.testing.walks import walk

RR, RG, BB, GY, YY = (TILE_TEXTS.index(text) for text in ("RR", "RG", "BB", "GY", "YY"))
SIZES = [2, 3, 6]


def three() -> State:
    """Three seats; the others have taken some of their tiles from the board."""
    state = Cogz(seats=3).initial_state(0)
    return replace(
        state,
        hands=((GY, RG, BB), (YY, RR, RG), (BB, BB, GY)),
        seen=((True, False, False), (True, False, True), (False, False, False)),
        points=((3, 4, 5, 6), (9, 0, 2, 17), (1, 1, 1, 1)),
        nuts=((1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 0, 0)),
    )


def test_r7_1_it_sees_its_hand_and_what_is_known_of_the_others() -> None:
    seen = observe(Parameters(seats=3), three(), 0)
    assert seen.hand == (GY, RG, BB)
    assert seen.known == ((GY,), (RG, YY), ())
    assert seen.unseen == (2, 1, 3)
    assert (seen.seat, seen.seats, seen.rounds, seen.lever, seen.boxed) == (0, 3, 8, 17, 31)
    assert (seen.rows, seen.columns) == (5, 6)


def test_r7_3_slots_of_the_others_do_not_show() -> None:
    state = three()
    turned = replace(
        state,
        hands=(state.hands[0], (RG, YY, RR), state.hands[2]),
        seen=(state.seen[0], (True, True, False), state.seen[2]),
    )
    assert observe(Parameters(seats=3), state, 0) == observe(Parameters(seats=3), turned, 0)
    assert observe(Parameters(seats=3), state, 1) != observe(Parameters(seats=3), turned, 1)


def test_r7_2_open_hands_are_known_to_all() -> None:
    seen = observe(Parameters(seats=3, open_hands=True), three(), 0)
    assert seen.known == (tuple(sorted((GY, RG, BB))), (RR, RG, YY), (GY, BB, BB))
    assert seen.unseen == (0, 0, 0)


def test_r7_2_a_starting_tile_is_known_to_nobody_else() -> None:
    state = three()
    for tile in range(10):
        other = replace(state, hands=(state.hands[0], (YY, tile, RG), state.hands[2]))
        assert observe(Parameters(seats=3), other, 0) == observe(Parameters(seats=3), state, 0)


def test_r6_1_finals_count_the_nuts_and_scores_are_the_lowest() -> None:
    seen = observe(Parameters(seats=3), three(), 2)
    assert seen.finals == ((5, 4, 5, 6), (9, 4, 2, 17), (1, 1, 1, 1)) == three().finals
    assert seen.scores == (4, 2, 1)


@pytest.mark.parametrize("seats", SIZES)
def test_r1_4_what_is_out_of_sight_and_in_sight_are_all_tiles(seats: int) -> None:
    game = Cogz(seats=seats)
    for position in walk(game, 1).positions:
        for seat in range(seats):
            seen = game.observe(position.state, seat)
            others = [tiles for at, tiles in enumerate(seen.known) if at != seat]
            counted = Counter(TILE_OF[code] for code in seen.board)
            counted.update(seen.hand)
            counted.update(tile for tiles in others for tile in tiles)
            assert [7 - counted[tile] for tile in range(10)] == list(seen.out_of_sight)
            unseen = sum(number for at, number in enumerate(seen.unseen) if at != seat)
            assert sum(seen.out_of_sight) == seen.boxed + unseen


@pytest.mark.parametrize("seats", SIZES)
def test_every_seat_observes_every_state_and_it_survives_wire_and_pickle(seats: int) -> None:
    game = Cogz(seats=seats, setup_locks=seats != 3)
    walked = walk(game, 2)
    for state in (*[position.state for position in walked.positions], walked.final):
        for seat in range(seats):
            seen = game.observe(state, seat)
            wire = json.loads(json.dumps(game.observation_to_wire(seen)))
            assert game.observation_from_wire(wire) == seen
            assert pickle.loads(pickle.dumps(seen)) == seen
            assert wire["scores"] == list(seen.scores)
            assert wire["hand_text"] == [TILE_TEXTS[tile] for tile in seen.hand]
            assert sum(wire["out_of_sight"].values()) == sum(seen.out_of_sight)
            assert layout_of(wire["board_text"]).board == seen.board


def test_the_legal_swaps_of_an_observation_are_those_of_the_decision() -> None:
    game = Cogz()
    for position in walk(game, 4).positions:
        (decision,) = position.decisions
        assert list(game.observe(position.state, decision.seat).legal) == list(decision.legal)


def test_nothing_of_the_state_is_inside() -> None:
    state = three()
    before = repr(state)
    seen = observe(Parameters(seats=3), state, 0)
    assert repr(state) == before
    assert not any(isinstance(getattr(seen, name), State) for name in seen.__struct_fields__)


def _wire() -> dict[str, Any]:
    return Cogz().observation_to_wire(Cogz().observe(Cogz().initial_state(0), 0))


def test_an_observation_with_a_field_missing_does_not_come_from_the_wire() -> None:
    for name in observe(Parameters(), Cogz().initial_state(0), 0).__struct_fields__:
        wire = _wire()
        del wire[name]
        with pytest.raises(msgspec.ValidationError):
            Cogz().observation_from_wire(wire)


@pytest.mark.parametrize(
    "change",
    [
        {"seat": "0"},
        {"hand": [0, "1", 2]},
        {"bonus": 1},
        {"layout": {"rows": 5, "columns": 5, "board": [0] * 24, "locked": [0] * 24}},
        {"layout": {"rows": 5, "columns": 5, "board": [32] * 25, "locked": [0] * 25}},
        {"layout": {"rows": 5, "columns": 5, "board": [0] * 25}},
        {"layout": None},
    ],
)
def test_an_observation_of_the_wrong_types_does_not_come_from_the_wire(change: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        Cogz().observation_from_wire({**_wire(), **change})
    with pytest.raises(msgspec.ValidationError):
        Cogz().observation_from_wire([])


_WHOLE = st.integers(-(2**63), 2**63 - 1)


@settings(deadline=None)
@given(st.builds(Action, _WHOLE, _WHOLE, _WHOLE, _WHOLE))
def test_any_action_survives_the_wire(action: Action) -> None:
    assert Cogz().action_from_wire(json.loads(json.dumps(Cogz().action_to_wire(action)))) == action


@pytest.mark.parametrize(
    "change", [{"slot": 1.0}, {"slot": True}, {"rotation": "0"}, {"row": None}, {"column": [1]}]
)
def test_an_action_of_the_wrong_types_does_not_come_from_the_wire(change: dict[str, Any]) -> None:
    good = {"slot": 0, "rotation": 1, "row": 2, "column": 3}
    assert Cogz().action_from_wire(good) == Action(0, 1, 2, 3)
    with pytest.raises(msgspec.ValidationError):
        Cogz().action_from_wire({**good, **change})
    for name in good:
        with pytest.raises(msgspec.ValidationError, match="missing"):
            Cogz().action_from_wire({key: value for key, value in good.items() if key != name})
    for none in (None, [], "RG", [0, 1, 2, 3]):
        with pytest.raises(msgspec.ValidationError):
            Cogz().action_from_wire(none)


PLACED = st.integers(0, 31)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_r3_1_chains_are_those_of_every_arc_and_share_none(rows: int, columns: int, data: Any) -> None:
    codes = data.draw(st.lists(PLACED, min_size=rows * columns, max_size=rows * columns))
    bare = make_layout(rows, columns, bytes(codes))
    lines = chains_of(bare)
    arcs = [arc for line in lines for arc in line.arcs]
    assert len(arcs) == len(set(arcs)) == 2 * rows * columns
    assert [line.length for line in lines] == sorted([line.length for line in lines], reverse=True)
    for line in lines:
        for cell, corner in line.arcs:
            arc = corners_of(codes[cell]).index(corner)
            found = chain(bare, cell, codes[cell], arc)
            assert (found.length, found.mechanism) == (line.length, line.locked)
            assert bool(bare.locked[cell] >> arc & 1) == line.locked
        assert len(line.ends) <= 2
        assert not (line.locked and line.ends)


def test_r3_1_a_chain_is_told_from_end_to_end() -> None:
    layout = layout_of(["1RY 0GB 0BY", "0BB 0GG 0YG", "1RY 0GG 1YG"])
    longest = chains_of(layout)[0]
    assert (longest.colour, longest.length, longest.locked) == (1, 5, False)
    told = [f"{cell_text(cell, 3)} {CORNERS[corner]}" for cell, corner in longest.arcs]
    assert told == ["B2 NE", "C2 SW", "C3 NW", "B3 NE", "B2 SW"]
    assert longest.ends == ((4, 0), (4, 3))  # north of its first segment, west of its last
    assert board_texts(layout) == ["1RY 0GB 0BY", "0BB 0GG 0YG", "1RY 0GG 1YG"]


def test_r3_2_a_loop_and_a_turn_at_the_border_have_no_open_ends() -> None:
    loop = chains_of(layout_of(["1RG 0RR 1RY", "0RY 1GR 1YG", "0YR 1YR 1BG"]))[0]
    assert (loop.length, loop.locked, loop.ends) == (4, True, ())
    assert {cell for cell, _ in loop.arcs} == {0, 1, 3, 4}


def test_r3_4_a_seat_is_told_which_arc_is_locked(arrange) -> None:
    game = Cogz()
    state = arrange(("1RG 0RR 1RY", "0RY 1GR 1YG", "0YR 1YR 1BG"), ["GB BB RR"])
    action = Action(0, 1, 1, 1)  # 1GB: the red ring's arc at NW would turn blue
    reason = game.why_illegal(state, 0, action)
    assert reason == "locked"
    told = game.explain_illegal(state, 0, action, reason)
    assert told.startswith("GB with G at SE is illegal at B2: locked there is red at NW")
    assert "expected a swap" in game.explain_illegal(state, 0, Action(0, 0, 9, 9), "off_board")
