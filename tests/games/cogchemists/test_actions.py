"""What each action of lab and market does (R4, R5), on states set up by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.constants import MIX
from cogeval.games.cogchemists.deduction import MixFull, MixSign, NotSig
from cogeval.games.cogchemists.state import Act, Action, Seal, State

Play = Callable[..., Any]
Arrange = Callable[..., State]


def acts(step: Any) -> dict[int, Act]:
    return {event.seat: event for event in step.events if isinstance(event, Act)}


# R4 lab


def test_r4_1_a_card_that_meets_a_full_hand_is_discarded(lab: State, play: Play, arrange: Arrange) -> None:
    full = arrange(lab, hands=((0,) * 5, (0,) * 6, (0,), (0,)))
    step = play(full, seat0=Action("forage"), seat1=Action("forage"), seat2=Action("forage"))
    done = acts(step)
    assert [len(hand) for hand in step.next.hands] == [6, 6, 3, 1]
    assert done[0].discarded == done[0].draws[1:]
    assert done[1].discarded == done[1].draws
    assert step.next.hands[2] == (0, *done[2].draws)
    assert all(len(done[seat].draws) == 2 for seat in range(3))


@pytest.mark.parametrize("verb", ["test_student", "test_self"])
def test_r4_2_twice_the_same_takes_two_copies(verb: str, lab: State, game: Cogchemists) -> None:
    assert game.why_illegal(lab, 0, Action(verb, 1, 1)) is None
    assert game.why_illegal(lab, 0, Action(verb, 0, 0)) == "missing_card"
    assert game.why_illegal(lab, 0, Action(verb, 1, 0)) is None  # b < a is legal too (R6.4)


@pytest.mark.parametrize(("a", "b", "left"), [(0, 1, (1,)), (1, 1, (0,))])
def test_r4_3_tests_spend_both_cards(a: int, b: int, left: tuple[int, ...], lab: State, play: Play) -> None:
    assert play(lab, seat0=Action("test_self", a, b)).next.hands[0] == left


@pytest.mark.parametrize(("a", "b", "left"), [(0, 1, (1, 1)), (1, 0, (0, 1)), (1, 1, (0, 1))])
def test_r4_3_the_mortar_spares_the_second_card(
    a: int, b: int, left: tuple[int, ...], lab: State, play: Play, arrange: Arrange
) -> None:
    owner = arrange(lab, mortar=(True, False, False, False))
    assert play(owner, seat0=Action("test_student", a, b)).next.hands[0] == left


def test_r4_4_a_student_tells_the_seat_alone(lab: State, play: Play) -> None:
    step = play(lab, seat0=Action("test_student", 0, 1))  # signatures 0 and 1: BLUE+
    assert step.next.private_facts == ((MixFull(0, 1, "BLUE+"),), (), (), ())
    assert step.next.public_facts == ()
    assert (step.next.coin[0], step.next.reputation[0]) == (3, 10)
    assert (acts(step)[0].potion, step.next.record[0].potion) == ("BLUE+", "")


@pytest.mark.parametrize(
    ("chemistry", "sign", "outcome", "reputation"),
    [
        ((0, 1, 2, 3, 4, 5, 6, 7), "positive", "glowed", 11),
        ((2, 3, 0, 1, 4, 5, 6, 7), "negative", "poisoned", 8),
        ((0, 7, 2, 3, 4, 5, 6, 1), "mud", "ok", 10),
    ],
)
def test_r4_5_drinking_shows_the_sign_to_all(
    chemistry: tuple[int, ...],
    sign: str,
    outcome: str,
    reputation: int,
    lab: State,
    play: Play,
    arrange: Arrange,
) -> None:
    step = play(arrange(lab, chemistry=chemistry), seat0=Action("test_self", 1, 0))
    assert step.next.public_facts == (MixSign(1, 0, sign),)
    assert step.next.private_facts[0] == (MixFull(1, 0, MIX[chemistry[0]][chemistry[1]]),)
    assert (acts(step)[0].outcome, step.next.reputation[0], step.next.coin[0]) == (outcome, reputation, 4)


def test_r4_6_transmuting_gives_two_coin(lab: State, play: Play) -> None:
    step = play(lab, seat0=Action("transmute", 1))
    assert (step.next.coin[0], step.next.hands[0]) == (6, (0, 1))


# R5 market


def test_r5_1_selling_the_demand_hits(market: State, play: Play, arrange: Arrange) -> None:
    owner = arrange(market, demands=("BLUE+",) * 6, mortar=(True,) * 4)
    step = play(owner, seat0=Action("sell", 0, 1))
    assert (acts(step)[0].outcome, acts(step)[0].potion) == ("hit", "BLUE+")
    assert (step.resolved.coin[0], step.resolved.reputation[0]) == (10, 11)
    assert step.resolved.hands[0] == (1,)  # the mortar does not help
    assert step.resolved.public_facts == (MixFull(0, 1, "BLUE+"),)


def test_r5_1_selling_anything_else_misses(market: State, play: Play) -> None:
    step = play(market, seat0=Action("sell", 1, 1))
    assert (acts(step)[0].outcome, acts(step)[0].potion) == ("miss", "MUD")
    assert (step.resolved.coin[0], step.resolved.reputation[0]) == (6, 9)


def test_r5_2_publishing_pins_a_seal_and_reveals_nothing(market: State, play: Play, arrange: Arrange) -> None:
    owner = arrange(market, press=(False, True, False, False))
    step = play(owner, seat0=Action("publish", 3, signature=5), seat1=Action("publish", 4, signature=5))
    assert step.resolved.seals == (Seal(3, 5, 0, 0), Seal(4, 5, 1, 0))
    assert (step.resolved.coin[:2], step.resolved.reputation[:2]) == ((3, 3), (12, 13))
    assert step.resolved.public_facts == ()


def test_r5_2_r6_1_the_second_to_publish_is_rejected_and_paid(market: State, play: Play) -> None:
    step = play(market, seat0=Action("publish", 3, signature=5), seat2=Action("publish", 3, signature=6))
    assert acts(step)[2].outcome == "rejected:already_claimed"
    assert (acts(step)[2].a, acts(step)[2].signature, acts(step)[2].coin_delta) == (3, 6, 1)
    assert step.resolved.coin[2] == 5


def test_r5_3_endorsing_pays_the_author_at_once(market: State, play: Play, arrange: Arrange) -> None:
    board = arrange(market, seals=(Seal(3, 3, 1, 0),))
    step = play(board, seat0=Action("endorse", 3), seat2=Action("endorse", 3))
    assert step.resolved.seals[0].endorsers == (0, 2)
    assert step.resolved.coin == (3, 7, 3, 5)  # seat 1 passed for a third coin
    assert (acts(step)[0].target, acts(step)[0].claim) == (1, 3)


def test_r5_4_a_contradicted_claim_burns(market: State, play: Play, arrange: Arrange) -> None:
    board = arrange(market, seals=(Seal(0, 6, 1, 0, (0, 2)),))  # claims 6, is 0
    step = play(board, seat0=Action("debunk", 0, 1))
    # 0 with 1 makes BLUE+, 6 with 1 would make MUD. The debunker had endorsed the seal.
    assert (acts(step)[0].outcome, acts(step)[0].rep_delta) == ("burned", 3)
    assert step.resolved.reputation == (10 + 3 - 1, 6, 9, 10)
    assert step.resolved.public_facts == (MixFull(0, 1, "BLUE+"), NotSig(0, 6))
    seal = step.resolved.seals[0]
    assert (seal.status, seal.burned_by, seal.round_burned) == ("burned", 0, 0)
    assert step.resolved.hands[0] == (0, 1)


def test_r5_4_a_wrong_claim_that_predicts_the_potion_survives(
    market: State, play: Play, arrange: Arrange
) -> None:
    board = arrange(market, chemistry=(7, 1, 2, 3, 4, 5, 6, 0), seals=(Seal(0, 6, 1, 0),))
    step = play(board, seat0=Action("debunk", 0, 1))  # 7 with 1 is MUD, 6 with 1 as well
    assert acts(step)[0].outcome == "survived"
    assert (step.resolved.reputation[:2], step.resolved.coin[0]) == ((8, 11), 3)
    assert step.resolved.public_facts == (MixFull(0, 1, "MUD"),)
    assert (step.resolved.seals[0].status, step.resolved.seals[0].vindications) == ("standing", 1)


def test_r5_4_a_seal_may_be_attacked_with_its_own_ingredient(
    market: State, play: Play, arrange: Arrange
) -> None:
    step = play(arrange(market, seals=(Seal(1, 0, 2, 0),)), seat0=Action("debunk", 1, 1))
    assert (acts(step)[0].outcome, acts(step)[0].potion) == ("burned", "MUD")  # 0 with 1 would be BLUE+


def test_r5_2_a_burned_claim_may_be_published_again(
    market: State, game: Cogchemists, arrange: Arrange
) -> None:
    burned = Seal(0, 6, 1, 0, status="burned", burned_by=0, round_burned=0)
    board = arrange(market, seals=(burned,), public_facts=(NotSig(0, 6),))
    assert game.why_illegal(board, 2, Action("publish", 0, signature=6)) is None


def test_r5_5_artifacts_are_bought_once(
    market: State, play: Play, game: Cogchemists, arrange: Arrange
) -> None:
    rich = arrange(market, coin=(9,) * 4)
    step = play(rich, seat0=Action("buy", artifact="mortar"), seat1=Action("buy", artifact="press"))
    assert (step.resolved.mortar, step.resolved.press) == ((True, *(False,) * 3), (False, True, False, False))
    assert step.resolved.coin[:2] == (5, 4)
    again = arrange(step.resolved, coin=(9,) * 4)
    assert game.why_illegal(again, 0, Action("buy", artifact="mortar")) == "already_owned"
    assert game.why_illegal(again, 0, Action("buy", artifact="press")) is None
