"""Near the cap money goes into episodes that end: those under way first, the furthest of them before all."""

from __future__ import annotations

import asyncio
import contextlib
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogeval.core.agent import Reply, Request, Resources, Seated
from cogeval.core.budget import Budget
from cogeval.core.episode import play
from cogeval.core.local_quota import LocalQuota, dollars
from cogeval.core.quota import BudgetSpentError, Limits
from cogeval.core.tabs import Precedence, Tabs, asking_episode, opened_tab, precedence
from cogeval.games import make_game

A, B, C = ("w0", 1), ("w0", 2), ("w1", 1)
ALL = Precedence()


def test_until_an_episode_has_ended_the_second_half_is_for_the_one_that_has_spent_most() -> None:
    tabs = {A: 0.1, B: 0.3, C: 0.2}
    assert precedence(tabs, None, allowance_usd=2.0, spent_usd=0.6, reserved_usd=0.4) == ALL
    over = precedence(tabs, None, allowance_usd=2.0, spent_usd=0.6, reserved_usd=0.5)
    assert over == Precedence(frozenset([B]), may_begin=False)
    assert precedence({}, None, allowance_usd=1.0, spent_usd=0.9, reserved_usd=0.0) == ALL


def test_another_episode_begins_when_a_whole_one_fits_beside_what_those_under_way_need() -> None:
    tabs = {A: 0.75, B: 0.25}  # of 1 each: they need 0.25 and 0.75
    fits = precedence(tabs, 1.0, allowance_usd=10.0, spent_usd=8.0, reserved_usd=0.0)
    assert (fits.served, fits.may_begin) == (frozenset([A, B]), True)
    tight = precedence(tabs, 1.0, allowance_usd=10.0, spent_usd=8.01, reserved_usd=0.0)
    assert (tight.served, tight.may_begin) == (frozenset([A, B]), False)


def test_of_those_under_way_those_go_on_whose_rest_fits_the_furthest_first() -> None:
    tabs = {A: 0.25, B: 0.75, C: 0.5}
    both = precedence(tabs, 1.0, allowance_usd=10.0, spent_usd=9.25, reserved_usd=0.0)
    assert both == Precedence(frozenset([B, C]), may_begin=False)
    one = precedence(tabs, 1.0, allowance_usd=10.0, spent_usd=9.99, reserved_usd=0.0)
    assert one == Precedence(frozenset([B]), may_begin=False)


amounts = st.floats(0, 5)


@given(
    st.dictionaries(st.sampled_from([("w", n) for n in range(1, 9)]), amounts),
    st.none() | amounts,
    amounts,
    amounts,
    amounts,
)
def test_somebody_may_always_go_on(tabs, typical, allowance, spent, reserved) -> None:
    rule = precedence(tabs, typical, allowance_usd=allowance, spent_usd=spent, reserved_usd=reserved)
    served = tabs.keys() if rule.served is None else rule.served
    assert served <= tabs.keys()
    if tabs:
        most = max(tabs.values())
        assert any(tabs[tab] == most for tab in served)
        assert rule.served is None or not rule.may_begin or served == tabs.keys()
    elif typical is None:
        assert rule.may_begin


@given(st.data(), st.integers(1, 12), st.integers(1, 6), st.sampled_from([0.5, 1.0, 2.3, 7.0, 40.0]))
def test_a_cap_of_twice_an_episode_always_pays_for_one_and_nothing_waits_for_ever(
    data, num, length, cap
) -> None:
    """Episodes of `length` requests, a dollar each episode, all at once, answered in any order."""
    budget = Budget({"a": Limits(concurrency=data.draw(st.integers(1, 6)))}, cap)
    left = dict.fromkeys(range(1, num + 1), length)
    asked = {budget.ask("w", "a", 100, episode): episode for episode in left}
    held, complete = [], 0
    while True:
        held += [(lease, asked.pop(ticket)) for ticket, lease in budget.grant(0.0)]
        budget.validate()
        if not held:
            break
        lease, episode = held.pop(data.draw(st.integers(0, len(held) - 1)))
        budget.settle(lease, 0.0, tokens=100, cost_usd=1.0 / length, tab=("w", episode))
        left[episode] -= 1
        if left[episode]:
            asked[budget.ask("w", "a", 100, episode)] = episode
        else:
            budget.close(("w", episode), complete=True)
            complete += 1
    assert budget.is_spent or not asked
    assert budget.is_spent or complete == num
    if cap >= max(2, 8 / length):  # four requests go before anybody knows what one costs
        assert complete >= 1


def test_of_equals_the_one_that_got_there_first_goes_on_and_they_do_not_take_turns() -> None:
    tabs = Tabs(1.0)
    for tab in (A, B):
        tabs.charge(tab, 0.0)  # A began first
    for tab in (B, A):
        tabs.charge(tab, 0.3)
        assert tabs.precedence(0.6, 0.0).served == frozenset([B])


def test_an_episode_that_was_dropped_makes_room_and_tells_nothing_of_what_one_costs() -> None:
    budget = Budget(cap_usd=1.0)
    for episode in (1, 2):
        budget.ask("w", "a", 10, episode)
    (_, one), (_, two) = budget.grant(0.0)
    budget.settle(one, 0.0, tokens=10, cost_usd=0.3, tab=("w", 1))
    budget.settle(two, 0.0, tokens=10, cost_usd=0.25, tab=("w", 2))
    budget.ask("w", "a", 10, 2)
    assert budget.grant(0.0) == []  # the second half is for the first episode, which asks for nothing now
    assert not budget.is_spent
    budget.close(("w", 1), complete=False)
    assert len(budget.grant(0.0)) == 1


def test_books_that_know_what_episodes_cost_spend_nothing_on_one_that_does_not_fit() -> None:
    def first_grant(left_usd: float, recorded: tuple[int, float]) -> tuple[int, bool]:
        budget = Budget(cap_usd=5.0, spent_usd=5.0 - left_usd, recorded=recorded)
        budget.ask("w", "main", 100, 1)
        return len(budget.grant(0.0)), budget.is_spent

    assert first_grant(0.9, (4, 4.0)) == (0, True)  # an episode costs 1.0
    assert first_grant(1.1, (4, 4.0)) == (1, False)
    assert first_grant(0.9, (0, 0.0)) == (1, False)  # nobody knows


def test_what_a_lost_worker_played_stands_in_nobodys_way() -> None:
    budget = Budget(cap_usd=1.0)
    budget.ask("lost", "a", 10, 1)
    budget.ask("w", "a", 10, 1)
    (_, lost), (_, mine) = budget.grant(0.0)
    budget.settle(mine, 0.0, tokens=10, cost_usd=0.3, tab=("w", 1))
    budget.settle(lost, 0.0, tokens=10, cost_usd=0.35, tab=("lost", 1))
    budget.ask("w", "a", 10, 1)
    assert budget.grant(0.0) == []
    budget.forget("lost")
    assert len(budget.grant(0.0)) == 1


def test_what_is_asked_outside_of_an_episode_is_asked_for_none() -> None:
    assert asking_episode() == 0
    told: list[tuple[int, bool]] = []

    def listen(number: int, complete: bool) -> None:
        told.append((number, complete))

    with opened_tab():
        first = asking_episode(listen)
        assert asking_episode(listen) == first > 0
    with contextlib.suppress(ValueError), opened_tab():
        second = asking_episode(listen)
        raise ValueError
    assert told == [(first, True), (second, False)]
    assert asking_episode() == 0


class _Payer:
    """Pays, or meets the end of the money, all seats in the same moment; or waits for an answer for ever."""

    def __init__(self, resources: Resources, *, hangs: bool) -> None:
        self.quota = resources.quota
        self.hangs = hangs

    async def decide(self, request: Request) -> Reply:
        lease = await self.quota.lease("a", 10)
        await (asyncio.Event().wait() if self.hangs else asyncio.sleep(0))
        await self.quota.settle(lease, tokens=10, cost_usd=0.3)
        return Reply(request.decision.default)


@pytest.mark.parametrize("num_hanging", [0, 1])
def test_seats_that_meet_the_end_of_the_money_together_are_all_heard_and_none_is_left_asking(
    num_hanging,
) -> None:
    complaints: list[object] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        game = make_game("cogmud", turns=6)  # all six seats decide at once
        resources = Resources(LocalQuota(Budget(cap_usd=0.5)))

        def payer(seat: int, _: object) -> _Payer:
            return _Payer(resources, hangs=seat < num_hanging)

        with pytest.raises(BudgetSpentError):
            await play(game, 1, [Seated("payer", payer, deterministic=False)] * game.seats)
        asked = [task for task in asyncio.all_tasks() if "SeatPlay._decide" in repr(task.get_coro())]
        assert not asked

    asyncio.run(scenario())
    gc.collect()
    assert complaints == []


@pytest.mark.parametrize(
    ("usd", "said"),
    [
        (0.0, "$0.00"), (0.5, "$0.50"), (5.02, "$5.02"), (1234.5, "$1,234.50"), (0.042, "$0.042"),
        (0.00423, "$0.0042"), (0.0000017, "$0.0000017"), (0.0999, "$0.100"),
    ],
)  # fmt: skip
def test_amounts_are_said_with_two_digits_that_mean_something(usd: float, said: str) -> None:
    assert dollars(usd) == said
