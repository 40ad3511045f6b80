"""The baselines by R10: each rule in its order, and sentences that mean what was decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cogeval.errors import InputError
from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.state import State
from cogeval.games.cogmud.turn import understood

Arrange = Callable[..., State]

HALL, ROW, SMITHY, YARD, DOCKS, KETTLE = 8, 2, 3, 4, 5, 1


@pytest.fixture
def meant(game: Cogmud) -> Callable[..., tuple[Any, ...]]:
    """meant(name, state) -> (kind, item, qty, npc, other, coin, to_room) of seat 0's sentence."""

    def meant(name: str, state: State) -> tuple[Any, ...]:
        intent = understood(state, 0, game.baseline(name, state, 0, 0).sentence)
        assert intent.reason == "ok"
        slots = (intent.item, intent.qty, intent.npc, intent.other, intent.coin, intent.to_room)
        return (intent.kind, *slots)

    return meant


@pytest.mark.parametrize("name", ["factor", "magpie"])
def test_every_sentence_is_read_along_whole_episodes(game: Cogmud, turns: Any, name: str) -> None:
    kinds = set()
    for seed in range(12):
        for state, _ in turns(seed):
            for seat in range(6):
                intent = understood(state, seat, game.baseline(name, state, seat, 0).sentence)
                assert intent.reason == "ok"
                kinds.add(intent.kind)
    assert kinds == (
        {"give", "buy", "sell", "take", "move", "wait"}
        if name == "factor"
        else {"rob", "trade", "sell", "buy", "move"}
    )


def test_an_unknown_baseline_is_named_with_the_known_ones(game: Cogmud) -> None:
    with pytest.raises(InputError, match="factor"):
        game.baseline("facto", game.initial_state(0), 0, 0)


# Commissions of the fixture: hide and nails, two each.


def test_r10_1_first_it_hands_in(meant: Any, square: State, arrange: Arrange, pack: Any) -> None:
    state = arrange(square, room={0: HALL}, pack={0: pack(nails=3)}, delivered={0: (0, 1)})
    assert meant("factor", state)[:4] == ("give", 1, 1, 4)


def test_r10_1_then_it_buys_what_is_missing_as_coin_allows(
    meant: Any, square: State, arrange: Arrange, pack: Any
) -> None:
    state = arrange(square, room={0: ROW})
    assert meant("factor", state)[:4] == ("buy", 0, 2, 0)
    assert meant("factor", arrange(state, coin={0: 5}))[:3] == ("buy", 0, 1)
    assert meant("factor", arrange(state, pack={0: pack(hide=1)}))[:3] == ("buy", 0, 1)


def test_r10_1_then_it_sells_what_nobody_ordered_at_base_value(
    meant: Any, square: State, arrange: Arrange, pack: Any
) -> None:
    state = arrange(square, room={0: SMITHY}, pack={0: pack(nails=2, rope=3)}, stock={1: (0, 0, 0, 0, 0, 0)})
    assert meant("factor", state)[:4] == ("sell", 2, 3, 1)
    poor = arrange(state, till={1: 0})
    assert meant("factor", poor)[0] == "move"


def test_r10_1_then_it_picks_up_what_is_ordered_or_worth_8(
    meant: Any, square: State, arrange: Arrange
) -> None:
    state = arrange(square, floor={0: (1, 1, 1, 1, 1, 1)})
    assert meant("factor", state)[:3] == ("take", 0, 1)
    done = arrange(state, delivered={0: (2, 2)})
    assert meant("factor", done)[:3] == ("take", 2, 1)


def test_r10_1_then_it_walks_to_the_nearest_shop_the_hall_or_the_square(
    meant: Any, square: State, arrange: Arrange, pack: Any
) -> None:
    bare = arrange(square, floor=((0,) * 6,) * 9)
    assert meant("factor", bare)[-1] == 5  # hides: the docks are nearer than the tanner
    held = arrange(bare, pack={0: pack(hide=2, nails=2)})
    assert meant("factor", held)[-1] == 1  # the hall by way of the kettle
    done = arrange(bare, delivered={0: (2, 2)}, room={0: KETTLE})
    assert meant("factor", done)[-1] == 0
    assert meant("factor", arrange(done, room={0: 0}))[0] == "wait"
    nobody_has_any = arrange(bare, stock=((0,) * 6,) * 5)
    assert meant("factor", nobody_has_any)[-1] == 1


def test_r10_2_a_magpie_robs_in_the_dark_but_not_its_employer(
    meant: Any, game: Cogmud, square: State, arrange: Arrange, pack: Any
) -> None:
    state = arrange(square, turn=1, room=(DOCKS,) * 6, pack={2: pack(salt=1), 3: pack(salt=1)})
    assert meant("magpie", state)[4] == 2
    assert meant("magpie", arrange(state, employer={0: 2}, bond={0: 1}))[4] == 3
    honest = Cogmud(thievery=False).baseline("magpie", state, 0, 0)
    assert understood(state, 0, honest.sentence).kind != "rob"


def test_r10_2_every_third_turn_it_offers_what_it_carries(
    meant: Any, square: State, arrange: Arrange, pack: Any
) -> None:
    state = arrange(square, turn=3, pack={0: pack(salt=1, lamp=2)})
    assert meant("magpie", state) == ("trade", 3, 1, -1, 1, 11, -1)
    assert meant("magpie", arrange(state, turn=4))[0] == "move"


def test_r10_2_it_sells_above_and_buys_below_base_value(
    meant: Any, square: State, arrange: Arrange, pack: Any
) -> None:
    state = arrange(square, turn=1, room={0: SMITHY}, pack={0: pack(rope=2)}, stock={1: (0, 8, 0, 0, 0, 0)})
    assert meant("magpie", state)[:4] == ("sell", 2, 2, 1)
    assert meant("magpie", arrange(state, till={1: 0}))[:4] == ("buy", 1, 1, 1)


def test_r10_2_its_way_leads_into_the_dark_and_not_back(
    meant: Any, square: State, arrange: Arrange, pack: Any
) -> None:
    state = arrange(square, turn=1, prev_room={0: 1})
    assert meant("magpie", state)[-1] == 5
    laden = arrange(state, pack={0: pack(rope=1)})
    assert meant("magpie", laden)[-1] == 3
    assert meant("magpie", arrange(laden, prev_room={0: 3}))[-1] == 1
