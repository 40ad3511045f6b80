"""What every intent does and every reason why not, by the numbers in RULES.md, on states set up by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cogeval.games.cogmud.state import Offer, State
from cogeval.games.cogmud.world import ASK, BID, FINE, ROBBED_COIN, START_COIN

Play = Callable[..., Any]
Arrange = Callable[..., State]

SMITHY, DOCKS, HALL, KETTLE, ROW = 3, 5, 8, 1, 2
FULL = {"rope": 8}


@pytest.fixture
def at(square: State, arrange: Arrange) -> Callable[..., State]:
    """at(room, **columns): all six cogs in one room."""
    return lambda room, **columns: arrange(square, room=(room,) * 6, **columns)


# R4 shops


def test_r4_3_units_are_bought_one_by_one_at_the_rising_ask(play: Play, at: Any) -> None:
    turn = play(at(SMITHY), {0: "I buy three nails."})
    price = ASK[1][8] + ASK[1][7] + ASK[1][6]
    assert (turn.acts[0].qty, turn.acts[0].coin) == (3, price)
    assert turn.next.coin[0] == START_COIN - price
    assert turn.next.till[1] == 120 + price
    assert turn.next.pack[0] == (0, 3, 0, 0, 0, 0)


def test_r4_3_coin_slots_and_stock_fill_a_purchase_in_part(play: Play, at: Any, pack: Any) -> None:
    poor = play(at(SMITHY, coin={0: ASK[1][8] + ASK[1][7]}), {0: "I buy nine nails."})
    assert (poor.reason(), poor.acts[0].qty, poor.next.coin[0]) == ("ok", 2, 0)
    laden = play(at(SMITHY, pack={0: pack(rope=7)}), {0: "I buy nine nails."})
    assert (laden.reason(), laden.acts[0].qty) == ("ok", 1)
    sold_out = play(at(SMITHY, stock={1: (0, 1, 0, 0, 0, 0)}), {0: "I buy nine nails."})
    assert (sold_out.reason(), sold_out.acts[0].qty) == ("ok", 1)


@pytest.mark.parametrize(
    ("sentence", "columns", "reason"),
    [
        ("I buy nails from Oda.", {}, "no_npc_here"),
        ("I buy salt from Bram.", {"pack": {0: FULL}}, "out_of_stock"),  # not on his list: before the pack
        ("I buy nails.", {"pack": {0: FULL}, "stock": {1: (0,) * 6}}, "carry_limit"),  # before the stock
        ("I buy nails.", {"stock": {1: (0,) * 6}, "coin": {0: 0}}, "out_of_stock"),  # before the coin
        ("I buy nails.", {"coin": {0: ASK[1][8] - 1}}, "cannot_afford"),
        ("I buy 0 nails.", {}, "cannot_afford"),
        ("I sell nails to Oda.", {"pack": {0: {"nails": 1}}}, "no_npc_here"),
        ("I sell salt.", {}, "not_wanted"),  # before looking into the pack
        ("I sell nails.", {}, "not_carrying"),
        ("I sell nails.", {"pack": {0: {"nails": 1}}, "till": {1: BID[1][8] - 1}}, "npc_broke"),
        ("I sell 0 nails.", {"pack": {0: {"nails": 1}}}, "npc_broke"),
        ("I give Vell a rope.", {"pack": {0: {"rope": 1}}}, "no_npc_here"),
        ("I give Vell a rope and tell Gizmo.", {"pack": {0: {"rope": 1}}}, "no_npc_here"),
        ("I give Bram 5 coins.", {}, "no_target"),
        ("I give Bram a rope.", {}, "not_carrying"),
        ("I ask Vell about my commission.", {}, "no_npc_here"),
        ("I take the salt.", {}, "no_such_item"),
        ("I take the rope.", {"pack": {0: FULL}, "floor": {SMITHY: (0, 0, 1, 0, 0, 0)}}, "carry_limit"),
        ("I drop the rope.", {}, "not_carrying"),
        ("I give Gizmo a rope.", {}, "not_carrying"),
        ("I give Gizmo 0 ropes.", {"pack": {0: {"rope": 1}}}, "carry_limit"),
        ("I give Gizmo a rope.", {"pack": {0: {"rope": 1}, 1: FULL}}, "carry_limit"),
        ("I give Gizmo 5 coins.", {"coin": {0: 0}}, "no_target"),
        ("I give Gizmo a rope.", {"pack": {0: {"rope": 1}}, "room": {1: 0}}, "not_in_room"),
        ("I offer Gizmo a rope for 5 coins.", {}, "not_carrying"),
        ("I offer Gizmo a rope for 5 coins.", {"room": {1: 0}}, "not_in_room"),
        ("I hire Gizmo for 5 coins.", {"coin": {0: 0}}, "cannot_afford"),
        ("I hire Gizmo for 5 coins.", {"room": {1: 0}, "coin": {0: 0}}, "not_in_room"),
        ("I accept Gizmo's offer.", {}, "no_such_offer"),
        ("I rob Gizmo.", {"room": {1: 0}}, "not_in_room"),
        ("I rob Gizmo.", {"employer": {0: 1}, "bond": {0: 2}}, "bound_by_contract"),
        ("I rob Gizmo.", {}, "robbery_failed"),
        ("I rob Sprocket.", {}, "self_target"),
        ("I rob Flywheel.", {}, "no_such_cog"),
        ("I walk to the smithy.", {}, "no_such_exit"),
        ("I walk to the docks.", {}, "no_such_exit"),
        ("I wait.", {}, "waited"),
        ("...", {}, "unparsed"),
        ("Lovely weather.", {}, "no_verb"),
        ("I buy.", {}, "no_target"),
        ("I buy nails and rope.", {}, "ambiguous_target"),
    ],
)
def test_every_refusal_comes_in_its_place_and_moves_nothing(
    play: Play, at: Any, arrange: Arrange, pack: Any, sentence: str, columns: dict[str, Any], reason: str
) -> None:
    if "pack" in columns:
        columns = columns | {"pack": {seat: pack(**held) for seat, held in columns["pack"].items()}}
    state = arrange(at(SMITHY), **columns)
    turn = play(state, {0: sentence})
    assert turn.reason() == reason
    assert turn.resolved.outcome[0] == reason
    assert turn.resolved.pack == state.pack
    assert turn.resolved.stock == state.stock
    if reason != "robbery_failed":
        assert turn.resolved.coin == state.coin
        lines = [line for line in turn.resolved.room_log[SMITHY] if line.who == "Sprocket"]
        assert [line.kind for line in lines] == (["waited"] if reason == "waited" else [])


def test_r4_4_a_full_shelf_takes_more_at_an_unmoved_price(play: Play, at: Any, pack: Any) -> None:
    state = at(SMITHY, pack={0: pack(nails=3)}, stock={1: (0, 11, 0, 0, 0, 0)})
    turn = play(state, {0: "I sell all my nails."})
    assert turn.acts[0].qty == 3
    assert turn.acts[0].coin == BID[1][11] + 2 * BID[1][12]
    assert turn.resolved.stock[1][1] == 12


def test_r4_4_a_poor_keeper_buys_what_the_till_pays(play: Play, at: Any, pack: Any) -> None:
    state = at(SMITHY, pack={0: pack(nails=3)}, till={1: BID[1][8] + 1})
    turn = play(state, {0: "I sell all my nails."})
    assert (turn.reason(), turn.acts[0].qty, turn.resolved.till[1]) == ("ok", 1, 1)


# R5 ground and cogs


def test_r5_1_and_r5_2_nothing_is_a_number_too(play: Play, at: Any, pack: Any) -> None:
    state = at(SMITHY, pack={1: pack(rope=1)}, floor={SMITHY: (0, 0, 1, 0, 0, 0)})
    turn = play(state, {0: "I take 0 ropes.", 1: "I drop 0 ropes."})
    assert [(turn.reason(seat), turn.acts[seat].qty) for seat in (0, 1)] == [("ok", 0), ("ok", 0)]


def test_r5_3_gifts_are_cut_to_what_is_held_and_fits(play: Play, at: Any, pack: Any) -> None:
    state = at(SMITHY, pack={0: pack(rope=5), 1: pack(salt=6)}, coin={0: 4})
    turn = play(state, {0: "I give Gizmo all the rope and 9 coins."})
    assert (turn.acts[0].qty, turn.acts[0].coin) == (2, 4)
    assert turn.resolved.pack[1] == pack(salt=6, rope=2)
    assert turn.resolved.coin[1] == START_COIN + 4


def test_r5_4_an_offer_binds_nobody_and_offers_at_least_one(play: Play, at: Any, pack: Any) -> None:
    turn = play(at(SMITHY, pack={0: pack(rope=2)}), {0: "I offer Gizmo 0 ropes for 5 coins."})
    assert turn.next.offers == (Offer("trade", 0, 1, 2, 1, 5, 0),)
    assert turn.resolved.pack[0] == pack(rope=2)


def test_r5_5_a_fee_above_the_purse_is_cut_and_no_fee_is_one_coin(play: Play, at: Any) -> None:
    turn = play(at(SMITHY, coin={0: 3}), {0: "I hire Gizmo for 9 coins.", 1: "I hire Bolt."})
    assert [(offer.kind, offer.coin) for offer in turn.next.offers] == [("hire", 3), ("hire", 1)]


def test_r5_5_a_posted_hire_names_no_good(play: Play, at: Any) -> None:
    act = play(at(SMITHY), {0: "I hire Gizmo for 5 coins to fetch rope."}).acts[0]
    assert (act.reason, act.item, act.coin) == ("ok", -1, 5)


def test_r5_7_where_nobody_may_rob_a_contract_is_not_looked_at(play: Play, at: Any) -> None:
    bound = at(DOCKS, employer={0: 1}, bond={0: 2})
    assert play(bound, {0: "I rob Gizmo."}, thievery=False).reason() == "thievery_forbidden"


@pytest.fixture
def offered(at: Any, pack: Any) -> State:
    """Turn 1: Gizmo has offered Sprocket a rope for 5 coins and Bolt hires Widget for 6."""
    offers = (Offer("trade", 1, 0, 2, 1, 5, 0), Offer("hire", 4, 3, -1, 0, 6, 0))
    state: State = at(DOCKS, turn=1, turns_played=1, offers=offers, pack={1: pack(rope=1)})
    return state


def test_r5_6_accepting_a_trade_exchanges_goods_and_coin(play: Play, offered: State, pack: Any) -> None:
    turn = play(offered, {0: "I accept."})
    assert turn.reason() == "ok"
    assert (turn.resolved.pack[0], turn.resolved.coin[:2]) == (pack(rope=1), (35, 45))
    assert turn.next.offers == ()


def test_r5_6_a_good_that_was_named_stays_with_a_hire_or_a_failure(
    play: Play, offered: State, arrange: Arrange
) -> None:
    turn = play(arrange(offered, room={1: 6}), {3: "I accept and carry the salt.", 0: "I accept the lamp."})
    assert (turn.reason(3), turn.acts[3].item) == ("ok", 3)
    assert (turn.reason(0), turn.acts[0].item) == ("offer_expired", 4)


def test_r5_6_a_hired_cog_serves_three_turns_and_guards_at_once(play: Play, offered: State) -> None:
    turn = play(offered, {3: "I accept.", 0: "I rob Bolt."})
    assert turn.resolved.employer[3] == 4
    assert turn.resolved.bond[3] == 3
    assert turn.reason(0) == "robbery_failed"  # dark: 2 against 1 + 1
    assert turn.next.bond[3] == 2
    state = turn.next
    for left in (1, 0):
        state = play(state, {}).next
        assert state.bond[3] == left
    assert state.employer[3] == -1


@pytest.mark.parametrize(
    "columns",
    [{"room": {1: 6}}, {"coin": {0: 4}}, {"pack": {1: (0,) * 6}}, {"pack": {0: (8, 0, 0, 0, 0, 0)}}],
)
def test_r5_6_what_cannot_be_settled_is_consumed(
    play: Play, offered: State, arrange: Arrange, columns: dict[str, Any]
) -> None:
    turn = play(arrange(offered, **columns), {0: "I accept Gizmo's offer."})
    assert turn.reason() == "offer_expired"
    assert [offer.kind for offer in turn.resolved.offers] == ["hire"]


def test_r5_6_with_two_offers_a_name_decides_and_the_oldest_of_one_cog_is_taken(
    play: Play, offered: State, arrange: Arrange, pack: Any
) -> None:
    more = (*offered.offers, Offer("hire", 2, 0, -1, 0, 7, 0), Offer("hire", 1, 0, -1, 0, 9, 0))
    state = arrange(offered, offers=more)
    assert play(state, {0: "I accept."}).reason() == "no_such_offer"
    named = play(state, {0: "I accept Gizmo's offer."})
    assert named.resolved.pack[0] == pack(rope=1)


def test_r5_6_an_offer_of_this_turn_or_of_two_turns_ago_is_not_open(play: Play, at: Any, pack: Any) -> None:
    fresh = at(SMITHY, pack={1: pack(rope=1)})
    turn = play(fresh, {1: "I offer Sprocket a rope for 5 coins.", 0: "I accept Gizmo's offer."})
    assert turn.reason(0) == "no_such_offer"
    late = play(play(turn.next, {}).next, {0: "I accept Gizmo's offer."})
    assert late.reason(0) == "no_such_offer"


def test_r5_7_in_the_dark_a_robber_takes_the_dearest_good(play: Play, at: Any, pack: Any) -> None:
    turn = play(at(DOCKS, pack={1: pack(salt=2, lamp=1)}), {0: "I rob Gizmo."})
    assert (turn.acts[0].item, turn.acts[0].qty, turn.acts[0].salience) == (4, 1, 100)
    assert turn.resolved.pack[:2] == (pack(lamp=1), pack(salt=2))
    assert (turn.resolved.robberies[0], turn.resolved.robbed[1]) == (1, 1)


def test_r5_7_a_full_robber_takes_coin(play: Play, at: Any, pack: Any) -> None:
    turn = play(at(DOCKS, pack={0: pack(**FULL), 1: pack(lamp=1)}), {0: "I rob Gizmo of the salt."})
    assert (turn.acts[0].item, turn.acts[0].coin) == (3, ROBBED_COIN)  # the named good stays in the event
    assert turn.resolved.coin[:2] == (START_COIN + ROBBED_COIN, START_COIN - ROBBED_COIN)


def test_r5_7_nothing_to_take_costs_nothing(play: Play, at: Any) -> None:
    turn = play(at(DOCKS, coin={1: 0}), {0: "I rob Gizmo."})
    assert turn.reason() == "nothing_to_take"
    assert turn.resolved.coin[0] == START_COIN
    assert (turn.resolved.robberies[0], turn.resolved.robbed[1]) == (0, 0)


def test_r5_7_a_failure_pays_the_victim_what_the_robber_has(play: Play, at: Any) -> None:
    turn = play(at(SMITHY, coin={0: 5}), {0: "I rob Gizmo.", 2: "I rob Gizmo."})
    assert turn.acts[0].coin == 5
    assert turn.acts[2].coin == FINE
    assert turn.resolved.coin[:3] == (0, START_COIN + 5 + FINE, START_COIN - FINE)


def test_r5_7_three_hirelings_beat_the_watch(play: Play, at: Any) -> None:
    gang = {"employer": {3: 0, 4: 0, 5: 0}, "bond": {3: 2, 4: 2, 5: 2}}
    assert play(at(SMITHY, **gang), {0: "I rob Gizmo."}).reason() == "ok"  # 4 against 3
    two = {"employer": {3: 0, 4: 0}, "bond": {3: 2, 4: 2}}
    assert play(at(SMITHY, **two), {0: "I rob Gizmo."}).reason() == "robbery_failed"


def test_r5_7_only_retainers_in_the_room_count_and_the_victim_may_be_one(
    play: Play, at: Any, arrange: Arrange
) -> None:
    gang = {"employer": {1: 0, 4: 0, 5: 0}, "bond": {1: 2, 4: 2, 5: 2}}
    state = at(SMITHY, **gang)
    assert play(state, {0: "I rob Gizmo."}).reason() == "ok"  # 1 + 3 against 1 + 2: the victim counts too
    elsewhere = arrange(state, room={5: 0})
    assert play(elsewhere, {0: "I rob Gizmo."}).reason() == "robbery_failed"


def test_r5_7_without_thievery_nobody_is_robbed(play: Play, at: Any) -> None:
    turn = play(at(DOCKS), {0: "I rob Gizmo."}, thievery=False)
    assert turn.reason() == "thievery_forbidden"


def test_r5_8_a_move_is_seen_where_it_began(play: Play, at: Any) -> None:
    turn = play(at(SMITHY), {0: "I walk to Market Square."})
    assert (turn.next.room[0], turn.next.prev_room[0]) == (0, SMITHY)
    assert [line.kind for line in turn.next.heard[SMITHY] if line.who == "Sprocket"] == ["left"]
    assert not turn.next.heard[0]


# R6 commissions


@pytest.mark.parametrize(
    ("held", "before", "points", "salience"), [(1, 0, 4, 60), (2, 0, 16, 90), (3, 1, 12, 90)]
)
def test_r6_2_vell_credits_what_a_commission_wants_and_keeps_the_rest(
    play: Play, at: Any, pack: Any, held: int, before: int, points: int, salience: int
) -> None:
    state = at(HALL, pack={0: pack(hide=held)}, delivered={0: (before, 0)})
    turn = play(state, {0: "I hand Vell all the hides."})
    act = turn.acts[0]
    assert (act.reason, act.qty, act.coin, act.salience) == ("ok", min(held, 2 - before), points, salience)
    assert turn.resolved.pack[0] == pack()
    assert turn.resolved.stock[4][0] == held


def test_r6_3_goods_that_no_commission_wants_are_gone(play: Play, at: Any, pack: Any) -> None:
    for room, keeper in ((HALL, "Vell"), (ROW, "Oda")):
        turn = play(at(room, pack={0: pack(salt=2)}), {0: f"I hand {keeper} both salts."})
        assert turn.reason() == "no_matching_commission"
        assert turn.acts[0].qty == 2
        assert turn.resolved.pack[0] == pack()


def test_r6_4_asking_any_keeper_tells_the_cheapest_asks_once(play: Play, game: Any, at: Any) -> None:
    turn = play(at(KETTLE), {0: "I ask Nesh about my commission."})
    seen = game.observe(turn.next, 0)
    assert [tip[:2] for tip in seen.tips] == [(0, 0), (1, 1)]
    assert game.observe(turn.next, 1).tips == ()
    assert game.observe(play(turn.next, {}).next, 0).tips == ()
