"""R8: what a seat sees, that nothing else shows, and that it survives the wire."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.market import cheapest
from cogeval.games.cogmud.state import Action, Line, Offer, State
from cogeval.games.cogmud.view import Observation, OpenOffer, Ware, observe
from cogeval.games.cogmud.world import ROOMS
from cogeval.testing.walks import walk

Arrange = Callable[..., State]
Pack = Callable[..., tuple[int, ...]]


def test_r8_1_a_seat_sees_its_own_columns_and_its_room(
    square: State, game: Cogmud, arrange: Arrange, pack: Pack
) -> None:
    state = arrange(
        square,
        room={2: 5, 4: 5},
        coin={2: 33, 4: 77},
        pack={2: pack(relic=1, hide=3)},
        delivered={2: (1, 2)},
        floor={5: pack(nails=2)},
        notes={2: "mine", 4: "theirs"},
    )
    seen = game.observe(state, 2)
    assert (seen.seat, seen.name, seen.turn, seen.turns) == (2, "Ratchet", 0, 14)
    assert (seen.coin, seen.pack, seen.free_slots) == (33, pack(relic=1, hide=3), 4)
    assert (seen.commissions, seen.delivered, seen.outstanding) == ((0, 1), (1, 2), (1, 0))
    assert (seen.points, seen.wealth, seen.score) == (20, 65, (65 + 60 - 40) / 40)
    assert (seen.room, seen.dark, seen.exits, seen.floor) == (5, True, (0, 4, 6), pack(nails=2))
    assert (seen.here, seen.notes) == (("Bolt",), "mine")


def test_r8_1_the_keepers_list_has_stock_ask_and_bid(square: State, game: Cogmud, arrange: Arrange) -> None:
    seen = game.observe(arrange(square, room={0: 5}, till={3: 99}), 0)
    assert (seen.keeper, seen.till) == (3, 99)
    assert seen.wares == (Ware(5, 3, 17, 11), Ware(0, 5, 7, 4), Ware(1, 6, 7, 4))  # R4.2
    nobody = game.observe(square, 0)
    assert (nobody.keeper, nobody.wares, nobody.till, nobody.stock) == (-1, (), 0, (0,) * 6)


def test_r8_1_it_hears_the_room_in_which_it_stands_now(square: State, game: Cogmud, arrange: Arrange) -> None:
    lines = (Line("waited", "Gizmo"),)
    state = arrange(square, room={0: 4}, heard={4: lines, 0: (Line("waited", "Bolt"),)})
    assert game.observe(state, 0).heard == lines


def test_r5_6_it_sees_the_offers_that_it_may_accept(square: State, game: Cogmud, arrange: Arrange) -> None:
    offers = (
        Offer("trade", 1, 0, 4, 2, 9, 2),
        Offer("hire", 5, 0, -1, 0, 6, 2),
        Offer("trade", 1, 2, 4, 1, 1, 2),
        Offer("trade", 3, 0, 4, 1, 1, 1),  # expired
        Offer("trade", 3, 0, 4, 1, 1, 3),  # not open yet
    )
    seen = game.observe(arrange(square, turn=3, offers=offers), 0)
    assert seen.offers == (OpenOffer("trade", "Gizmo", 4, 2, 9), OpenOffer("hire", "Piston", -1, 0, 6))


def test_r8_1_it_sees_whom_it_serves_and_who_serves_it(square: State, game: Cogmud, arrange: Arrange) -> None:
    state = arrange(square, employer={0: 3, 1: 0, 4: 0, 2: 5}, bond={0: 2, 1: 3, 4: 1, 2: 1})
    seen = game.observe(state, 0)
    assert (seen.employer, seen.bond) == ("Widget", 2)
    assert seen.retainers == (("Gizmo", 3), ("Bolt", 1))
    free = game.observe(state, 5)
    assert (free.employer, free.bond, free.retainers) == ("", 0, (("Ratchet", 1),))


def test_r6_4_the_answer_names_the_cheapest_ask_of_each_open_commission(
    square: State, game: Cogmud, arrange: Arrange, pack: Pack
) -> None:
    asked = arrange(square, hint={0: True}, commissions={0: (0, 3)})
    assert game.observe(asked, 0).tips == ((0, 0, 4), (1, 2, 9))  # hide: 4 at Oda's, 7 at Fen's
    assert game.observe(asked, 1).tips == ()
    level = arrange(asked, stock={0: pack(hide=5, salt=6)})
    assert cheapest(level, 0) == ((0, 0, 7), (1, 0, 9))  # ties: the lowest keeper
    assert cheapest(arrange(asked, delivered={0: (2, 1)}), 0) == ((1, 2, 9),)
    empty = arrange(asked, stock={keeper: pack() for keeper in range(5)})
    assert cheapest(empty, 0) == ((0, -1, 0), (1, -1, 0))
    handed = arrange(empty, stock={4: pack(hide=9)})  # R4.1: Vell does not deal in it
    assert cheapest(handed, 0)[0] == (0, -1, 0)


def test_r8_2_nothing_of_other_seats_is_inside(
    square: State, game: Cogmud, arrange: Arrange, pack: Pack
) -> None:
    state = arrange(
        square,
        room={seat: seat for seat in range(1, 6)},
        coin={1: 98765},
        notes={1: "secret"},
        sentence={1: "secret"},
        pack={1: pack(relic=7)},
        heard={1: (Line("said", "Gizmo", text="secret"),)},
    )
    seen = game.observe(state, 0)
    told = json.dumps(game.observation_to_wire(seen)) + repr(seen) + game.prompt(seen).user
    for hidden in ("98765", "secret", "relics", *state.names[1:]):
        assert hidden not in told
    assert not any(isinstance(getattr(seen, name), State) for name in Observation.__struct_fields__)


@pytest.mark.parametrize("seed", range(2))
def test_observations_survive_wire_and_pickle(seed: int) -> None:
    game = Cogmud(turns=20)
    for position in walk(game, seed).positions:
        for seat in range(6):
            seen = game.observe(position.state, seat)
            wire = json.loads(json.dumps(game.observation_to_wire(seen)))
            assert game.observation_from_wire(wire) == seen
            assert pickle.loads(pickle.dumps(seen)) == seen
            assert wire["score"] == seen.score
            assert [row["ask"] for row in wire["shelf"]] == [ware.ask for ware in seen.wares]
            assert len(wire["heard_text"]) == len(seen.heard)


def test_the_wire_spells_the_town_out(square: State, game: Cogmud, arrange: Arrange, pack: Pack) -> None:
    state = arrange(
        square,
        room={0: 3},
        pack={0: pack(lamp=2)},
        floor={3: pack(rope=1)},
        hint={0: True},
        heard={3: (Line("waited", "Gizmo"),)},
        outcome={0: "no_such_exit"},
        sentence={0: "I walk to the Docks."},
    )
    wire: dict[str, Any] = game.observation_to_wire(game.observe(state, 0))
    assert (wire["room_name"], wire["dark"], wire["keeper"]) == ("The Smithy", False, "Smith Bram")
    assert wire["exits"] == ["Market Square", "Tanner's Row", "Warehouse Yard"]
    assert (wire["carrying"], wire["lying_here"], wire["free_slots"]) == ({"lamp": 2}, {"rope": 1}, 6)
    assert wire["shelf"][0] == {"good": "nails", "stock": 8, "ask": 5, "bid": 3}
    order = {"good": "hide", "delivered": 0, "outstanding": 2, "settled_with": "Guildmaster Vell"}
    assert wire["orders"][0] == order
    assert wire["cheapest"][1] == {"good": "nails", "keeper": "Smith Bram", "room": "The Smithy", "ask": 5}
    assert wire["heard_text"] == ["Gizmo stands about."]
    assert "The Smithy" in wire["outcome_text"]


def test_r2_4_a_seat_knows_its_place_in_the_turn(square: State, game: Cogmud, arrange: Arrange) -> None:
    for turn in range(8):
        state = arrange(square, turn=turn)
        for seat in range(6):
            assert state.initiative[game.observe(state, seat).place_in_turn] == seat


_TEXT = st.text(st.characters())


@settings(deadline=None)
@given(st.builds(Action, _TEXT, _TEXT, _TEXT))
def test_any_action_survives_the_wire(action: Action) -> None:
    game = Cogmud()
    assert game.action_from_wire(json.loads(json.dumps(game.action_to_wire(action)))) == action


@pytest.mark.parametrize(
    "wire", [{"sentence": 5}, {"sentence": "I wait.", "say": None}, {}, {"sentnce": "x"}, [], "I wait."]
)
def test_what_is_no_action_does_not_come_from_the_wire(wire: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        Cogmud().action_from_wire(wire)


def test_observing_leaves_the_state_alone(square: State, game: Cogmud) -> None:
    before = repr(square)
    observe(game._parameters, square, 0)
    assert repr(square) == before


def test_r4_1_goods_that_a_keeper_was_handed_and_does_not_deal_in_are_not_shown(
    square: State, game: Cogmud, arrange: Arrange
) -> None:
    at_vell = arrange(square, room=(8,) * 6)
    handed = arrange(at_vell, stock={4: (2, 4, 4, 2, 3, 1)})
    plain = arrange(at_vell, stock={4: (0, 0, 4, 0, 3, 0)})
    assert game.observe(handed, 0) == game.observe(plain, 0)


def test_the_wire_has_the_whole_map(square: State, game: Cogmud) -> None:
    town = game.observation_to_wire(game.observe(square, 0))["map"]
    assert [place["room"] for place in town] == [room.name for room in ROOMS]
    assert town[8] == {
        "room": "The Guildhall",
        "dark": False,
        "exits": ["The Copper Kettle", "The Chapel"],
        "keeper": "Guildmaster Vell",
        "deals_in": ["rope", "lamp"],
    }
