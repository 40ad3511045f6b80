"""The books of a quota: no limit is passed in any minute, no slot leaks, and the cap holds."""

import asyncio
import functools
import math
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cogeval.core.budget import Budget
from cogeval.core.local_quota import LocalQuota
from cogeval.core.quota import BudgetSpentError, Lease, Limits

LIMITS = {
    "slow": Limits(requests_per_minute=5, concurrency=3),
    "wordy": Limits(tokens_per_minute=1000),
    "both": Limits(requests_per_minute=8, tokens_per_minute=600, concurrency=2),
}
ACCOUNTS = (*LIMITS, "free")
HOLDERS = ("w0", "w1", "w2")
CAP_USD = 2.0
MOST_USD = 0.4  # that one request costs
LEASE_S = 400.0


class Books(RuleBasedStateMachine):
    """A budget beside a plain record of all that it let through."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget(LIMITS, CAP_USD, slack_s=1.0, lease_s=LEASE_S)
        self.now = 0.0
        self.waiting: dict[int, tuple[str, str, int]] = {}  # ticket -> holder, account, tokens
        self.held: dict[int, tuple[str, Lease, float]] = {}
        self.lapsed: list[Lease] = []
        self.granted: list[tuple[float, Lease]] = []  # those that count for the rates
        self.closed_until = dict.fromkeys(ACCOUNTS, 0.0)
        self.spent = 0.0

    @rule(
        holder=st.sampled_from(HOLDERS),
        account=st.sampled_from(ACCOUNTS),
        tokens=st.integers(0, 700),
        num=st.integers(1, 8),
    )
    def ask(self, holder: str, account: str, tokens: int, num: int) -> None:
        for _ in range(num):
            self.waiting[self.budget.ask(holder, account, tokens)] = (holder, account, tokens)
        self.grant()

    @rule()
    def grant(self) -> None:
        self._lapse()
        was_spent = self.budget.is_spent
        for ticket, lease in self.budget.grant(self.now):
            holder, account, tokens = self.waiting.pop(ticket)
            assert not was_spent
            assert self.spent < CAP_USD
            assert (lease.account, lease.tokens) == (account, tokens)
            assert self.now >= self.closed_until[account]
            earlier = [t for t, (_, a, _) in self.waiting.items() if a == account and t < ticket]
            assert not earlier, "first come, first served"
            self.held[lease.id] = (holder, lease, self.now)
            self.granted.append((self.now, lease))
            self._check_rates(account, tokens)

    def _check_rates(self, account: str, tokens: int) -> None:
        limits = LIMITS.get(account, Limits())
        # A window of 60 s of requests that are made at most a second after their grants.
        recent = [x for at, x in self.granted if x.account == account and at > self.now - 61.0]
        if limits.requests_per_minute is not None:
            assert len(recent) <= limits.requests_per_minute
        if limits.tokens_per_minute is not None:
            assert sum(x.tokens for x in recent) <= max(limits.tokens_per_minute, tokens)

    @rule(seconds=st.sampled_from([0.01, 0.04, 1.0, 7.0, 30.0, 59.0, 61.0, 200.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def wait_as_told(self) -> None:
        """When time alone is needed, the time that is named is enough for the first in some queue."""
        self.grant()
        wait_s = self.budget.wait_s(self.now)
        if wait_s is not None:
            assert wait_s > 0
            self.now += wait_s + 1e-6
            before = len(self.held) + len(self.lapsed)
            lapses = any(at + LEASE_S <= self.now for _, _, at in self.held.values())
            self.grant()
            assert lapses or self.budget.is_spent or len(self.held) + len(self.lapsed) > before

    @precondition(lambda self: self.held)
    @rule(cost=st.floats(0, MOST_USD))
    def settle_all(self, cost: float) -> None:
        for lease_id in sorted(self.held):
            _, lease, _ = self.held.pop(lease_id)
            self._book(lease, lease.tokens, cost)
        self.grant()

    @precondition(lambda self: self.held)
    @rule(data=st.data(), share=st.floats(0, 1.0), cost=st.floats(0, MOST_USD))
    def settle(self, data: st.DataObject, share: float, cost: float) -> None:
        lease_id = data.draw(st.sampled_from(sorted(self.held)))
        _, lease, _ = self.held.pop(lease_id)
        tokens = int(lease.tokens * share)
        self._book(lease, tokens, cost)
        index = next(i for i, (_, x) in enumerate(self.granted) if x.id == lease_id)
        self.granted[index] = (self.granted[index][0], Lease(lease.account, tokens, lease.id))
        with pytest.raises(ValueError, match="settled before"):
            self.budget.settle(lease, self.now, tokens=tokens, cost_usd=cost)

    @precondition(lambda self: self.lapsed)
    @rule(cost=st.floats(0, MOST_USD))
    def settle_late(self, cost: float) -> None:
        self._book(self.lapsed.pop(), 1, cost)

    def _book(self, lease: Lease, tokens: int, cost: float) -> None:
        self.budget.settle(lease, self.now, tokens=tokens, cost_usd=cost)
        self.spent += cost

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        lease_id = data.draw(st.sampled_from(sorted(self.held)))
        _, lease, _ = self.held.pop(lease_id)
        self.budget.give_back(lease, self.now)
        self.granted = [(at, x) for at, x in self.granted if x.id != lease_id]

    @rule(account=st.sampled_from(ACCOUNTS), seconds=st.floats(0, 90))
    def penalize(self, account: str, seconds: float) -> None:
        self.budget.penalize(account, seconds, self.now)
        self.closed_until[account] = max(self.closed_until[account], self.now + seconds)

    @rule(holder=st.sampled_from(HOLDERS))
    def forget(self, holder: str) -> None:
        self.budget.forget(holder)
        self.waiting = {t: x for t, x in self.waiting.items() if x[0] != holder}
        self.lapsed += [x for h, x, _ in self.held.values() if h == holder]
        self.held = {i: x for i, x in self.held.items() if x[0] != holder}

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.waiting)))
        self.budget.withdraw(self.waiting.pop(ticket)[1], ticket)

    def _lapse(self) -> None:
        old = [i for i, (_, _, at) in self.held.items() if at + LEASE_S <= self.now]
        self.lapsed += [self.held.pop(i)[1] for i in old]

    @invariant()
    def holds(self) -> None:
        self.budget.validate()
        assert self.budget.num_held == len(self.held)
        for account, limits in LIMITS.items():
            held = sum(x.account == account for _, x, _ in self.held.values())
            assert held <= (limits.concurrency or math.inf)
        assert math.isclose(self.budget.spent_usd, self.spent, abs_tol=1e-9)
        # With `grant`'s check: past the cap is only what was under way as it was reached.
        assert self.budget.is_spent or self.spent < CAP_USD


Books.TestCase.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
TestBooks = Books.TestCase


def test_an_idle_account_gives_a_minute_at_once_and_then_waits_for_the_minute_to_pass() -> None:
    budget = Budget({"a": Limits(requests_per_minute=3)})
    for _ in range(5):
        budget.ask("", "a", 10)
    assert len(budget.grant(100.0)) == 3
    assert budget.wait_s(100.0) == 60.0
    assert budget.grant(159.9) == []
    assert len(budget.grant(160.0)) == 2


def test_a_request_larger_than_the_limit_goes_alone() -> None:
    budget = Budget({"a": Limits(tokens_per_minute=100)})
    for tokens in (50, 500, 10):
        budget.ask("", "a", tokens)
    assert [lease.tokens for _, lease in budget.grant(0.0)] == [50]
    assert [lease.tokens for _, lease in budget.grant(60.0)] == [500]
    assert [lease.tokens for _, lease in budget.grant(120.0)] == [10]


def test_tokens_that_were_not_needed_are_free_again() -> None:
    budget = Budget({"a": Limits(tokens_per_minute=100)})
    budget.ask("", "a", 90)
    budget.ask("", "a", 60)
    ((_, lease),) = budget.grant(0.0)
    budget.settle(lease, 1.0, tokens=20, cost_usd=0.0)
    assert len(budget.grant(1.0)) == 1


def test_tokens_beyond_the_estimate_count_from_when_they_are_known() -> None:
    budget = Budget({"a": Limits(tokens_per_minute=100)})
    budget.ask("", "a", 10)
    ((_, lease),) = budget.grant(0.0)
    budget.settle(lease, 30.0, tokens=100, cost_usd=0.0)
    budget.ask("", "a", 50)
    assert budget.grant(60.0) == []
    assert len(budget.grant(90.0)) == 1


def test_until_a_price_is_known_few_requests_of_a_capped_run_are_under_way() -> None:
    budget = Budget(cap_usd=1.0)
    for _ in range(100):
        budget.ask("", "a", 1000)
    first = budget.grant(0.0)
    assert len(first) == 4
    budget.settle(first[0][1], 1.0, tokens=900, cost_usd=0.09)
    # 0.09 is spent and 0.09 is expected of each: the three under way and seven more.
    assert len(budget.grant(1.0)) == 7
    assert not budget.is_spent


def test_with_nothing_under_way_a_request_that_would_pass_the_cap_ends_it() -> None:
    budget = Budget(cap_usd=1.0)
    budget.ask("", "a", 100)
    ((_, lease),) = budget.grant(0.0)
    budget.settle(lease, 0.0, tokens=100, cost_usd=0.8)
    budget.ask("", "a", 100)
    assert budget.grant(0.0) == []
    assert budget.is_spent
    assert budget.spent_usd == 0.8


def test_what_was_spent_before_counts() -> None:
    budget = Budget(cap_usd=1.0, spent_usd=1.0)
    budget.ask("", "a", 1)
    assert budget.grant(0.0) == []
    assert budget.is_spent


@pytest.mark.parametrize(("tokens", "cost"), [(-1, 0.0), (1, -0.1), (1, math.nan), (1, math.inf)])
def test_figures_that_are_no_amounts_are_refused(tokens: int, cost: float) -> None:
    budget = Budget()
    budget.ask("", "a", 1)
    ((_, lease),) = budget.grant(0.0)
    with pytest.raises(ValueError, match="0 or more"):
        budget.settle(lease, 0.0, tokens=tokens, cost_usd=cost)


def in_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Runs a test in an event loop of its own."""

    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Hands:
    """A clock whose hands the test moves."""

    def __init__(self) -> None:
        self.at = 0.0
        self.sleeping: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        until = self.at + seconds
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sleeping.append((until, future))
        await future

    async def move(self, seconds: float) -> None:
        self.at += seconds
        for until, future in self.sleeping:
            if until <= self.at and not future.done():
                future.set_result(None)
        await settled()


async def settled() -> None:
    """Lets everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


@in_loop
async def test_leases_come_in_the_order_of_asking_and_when_time_allows() -> None:
    hands = Hands()
    quota = LocalQuota(Budget({"a": Limits(requests_per_minute=2)}), hands)
    tasks = [asyncio.ensure_future(quota.lease("a", 1)) for _ in range(5)]
    await settled()
    assert [t.done() for t in tasks] == [True, True, False, False, False]
    await hands.move(60.0)
    assert [t.done() for t in tasks] == [True, True, True, True, False]
    await hands.move(60.0)
    assert tasks[4].done()


@in_loop
async def test_a_cancelled_wait_and_a_lease_cancelled_on_its_way_leave_no_slot_behind() -> None:
    quota = LocalQuota(Budget({"a": Limits(concurrency=1)}))
    first = await quota.lease("a", 1)
    waiting, next_one = (asyncio.ensure_future(quota.lease("a", 1)) for _ in range(2))
    await settled()
    waiting.cancel()
    await settled()
    await quota.settle(first, tokens=1, cost_usd=0.0)
    next_one.cancel()  # granted, but its task has not run yet
    await settled()
    assert quota.budget.num_held == 0
    assert (await quota.lease("a", 1)).account == "a"


@in_loop
async def test_a_penalty_holds_everybody_of_the_account() -> None:
    hands = Hands()
    quota = LocalQuota(Budget(), hands)
    await quota.penalize("a", 10.0)
    held, other = asyncio.ensure_future(quota.lease("a", 1)), asyncio.ensure_future(quota.lease("b", 1))
    await settled()
    assert (held.done(), other.done()) == (False, True)
    await hands.move(10.0)
    assert held.done()


@in_loop
async def test_all_who_wait_are_told_that_the_money_is_spent() -> None:
    quota = LocalQuota(Budget({"a": Limits(concurrency=1)}, cap_usd=0.5))
    first = await quota.lease("a", 1)
    waiting = [asyncio.ensure_future(quota.lease("a", 1)) for _ in range(3)]
    await settled()
    await quota.settle(first, tokens=1, cost_usd=0.6)
    for task in waiting:
        with pytest.raises(BudgetSpentError, match=r"spent \$0\.60 of \$0\.50"):
            await task
    with pytest.raises(BudgetSpentError):
        await quota.lease("b", 1)
