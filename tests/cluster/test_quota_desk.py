"""A desk and its workers in one loop, without Ray: few calls, no lease lost, everybody told of the end."""

import asyncio

import pytest

from cogeval.cluster.quota_desk import LeasedQuota, Message, QuotaDesk
from cogeval.core.budget import Budget
from cogeval.core.quota import BooksLostError, BudgetSpentError, Limits
from cogeval.store.run import RunDir
from cogeval.store.spend import SpendFile, spend_of


class Office:
    """A desk, and workers that call it; counts the calls."""

    def __init__(self, budget):
        self.budget = budget
        self.desk = QuotaDesk(budget)
        self.num_calls = 0

    def worker(self, name):
        async def exchange(message, wait):
            self.num_calls += 1
            return await self.desk.exchange(name, message, wait=wait)

        return LeasedQuota(exchange)


async def request(quota, under_way, account="a", cost_usd=0.0):
    """One request under a lease; gives how many were under way with it."""
    lease = await quota.lease(account, 10)
    under_way.append(None)
    most = len(under_way)
    await asyncio.sleep(0.001)
    under_way.pop()
    await quota.settle(lease, tokens=10, cost_usd=cost_usd)
    return most


async def all_back(office):
    """Waits until every lease is back at the desk."""
    async with asyncio.timeout(5):
        while office.budget.num_held:
            await asyncio.sleep(0.005)


def test_what_happens_at_once_is_one_call():
    async def scenario():
        office = Office(Budget({"a": Limits(requests_per_minute=1000)}))
        workers = [office.worker(name) for name in ("w0", "w1")]
        await asyncio.gather(*(request(workers[i % 2], []) for i in range(400)))
        for worker in workers:
            await worker.flush()
        assert office.budget.num_held == 0
        assert office.num_calls <= 40  # 800 messages

    asyncio.run(scenario())


def test_concurrency_is_kept_across_workers():
    async def scenario():
        office = Office(Budget({"a": Limits(concurrency=3)}))
        workers, under_way = [office.worker(name) for name in ("w0", "w1")], []
        most = await asyncio.gather(*(request(workers[i % 2], under_way) for i in range(30)))
        assert max(most) == 3
        await all_back(office)

    asyncio.run(scenario())


def test_a_lease_for_one_who_has_gone_serves_the_next_or_goes_back():
    async def scenario():
        office = Office(Budget({"a": Limits(concurrency=1)}))
        quota = office.worker("w0")
        first = await quota.lease("a", 10)
        gone = asyncio.ensure_future(quota.lease("a", 10))
        async with asyncio.timeout(5):
            while office.num_calls < 2:  # the desk knows of it
                await asyncio.sleep(0)
        gone.cancel()
        await quota.settle(first, tokens=10, cost_usd=0.0)
        async with asyncio.timeout(5):
            while not quota._spare:
                await asyncio.sleep(0.001)
        num_calls = office.num_calls
        served = await quota.lease("a", 5)
        assert served.tokens == 10
        assert office.num_calls == num_calls
        await quota.settle(served, tokens=5, cost_usd=0.0)
        await all_back(office)

    asyncio.run(scenario())


def test_a_lease_that_nobody_wants_goes_back_by_itself_and_counts_for_nothing():
    async def scenario():
        office = Office(Budget({"a": Limits(requests_per_minute=1)}))
        quota = office.worker("w0")
        gone = asyncio.ensure_future(quota.lease("a", 10))
        await asyncio.sleep(0)
        gone.cancel()
        await office.worker("w1").lease("a", 10)  # of two that asked for the one request of the minute

    asyncio.run(scenario())


def test_what_a_lost_worker_held_comes_back_and_what_it_asked_for_is_forgotten():
    async def scenario():
        office = Office(Budget({"a": Limits(concurrency=1)}, cap_usd=1.0))
        lost, other = office.worker("w0"), office.worker("w1")
        await lost.lease("a", 10)
        waiting = asyncio.ensure_future(lost.lease("a", 10))
        wanted = asyncio.ensure_future(other.lease("a", 10))
        async with asyncio.timeout(5):
            while office.num_calls < 3:
                await asyncio.sleep(0)
        office.desk.forget("w0")
        lease = await wanted
        assert not waiting.done()
        waiting.cancel()
        await other.settle(lease, tokens=10, cost_usd=0.0)
        await other.flush()
        assert office.budget.num_held == 0
        office.budget.validate()

    asyncio.run(scenario())


def test_all_workers_are_told_that_the_money_is_spent_and_what_is_settled_later_counts():
    async def scenario():
        office = Office(Budget(cap_usd=0.5))
        one, two = office.worker("w0"), office.worker("w1")
        leases = [await one.lease("a", 10), await two.lease("a", 10)]
        waiting = [asyncio.ensure_future(q.lease("a", 10)) for q in (one, two) for _ in range(4)]
        await one.settle(leases[0], tokens=10, cost_usd=0.6)
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert any(isinstance(end, BudgetSpentError) for end in ended)
        await two.settle(leases[1], tokens=10, cost_usd=0.3)
        await two.flush()
        assert office.desk.spent_usd == pytest.approx(0.9)
        for quota in (one, two):
            with pytest.raises(BudgetSpentError, match="spending cap"):
                await quota.lease("a", 10)

    asyncio.run(scenario())


def test_a_desk_that_is_gone_ends_the_run_and_not_a_seat():
    async def exchange(message, wait):
        raise ConnectionError("no more")

    async def scenario():
        quota = LeasedQuota(exchange)
        for _ in range(2):
            with pytest.raises(BooksLostError, match="quota cannot be reached: ConnectionError"):
                await quota.lease("a", 10)
        await quota.flush()

    asyncio.run(scenario())


def test_the_money_is_written_down_before_leases_leave_with_what_they_are_expected_to_cost():
    async def scenario():
        written = []
        desk = QuotaDesk(Budget(), lambda *books: written.append(books[:2]))
        key = iter(range(9))

        async def asked():
            message = Message(asked=((next(key), "a", 100, 0),))
            ((_, lease, *_),) = (await desk.exchange("w0", message, wait=True)).leases
            return lease

        first = await asked()
        await desk.exchange("w0", Message(settled=((first, 100, 0.5, 0),)), wait=False)
        assert written == [(0.5, 0.0)]  # of the first request nobody knew what it costs
        await asked()
        assert written[-1] == pytest.approx((0.5, 0.5))
        await asked()
        assert written[-1] == pytest.approx((0.5, 1.0))
        assert desk.committed_usd == pytest.approx(1.5)

    asyncio.run(scenario())


def test_a_run_whose_driver_was_killed_has_spent_what_its_file_says(tmp_path):
    run = RunDir.create(tmp_path, "run", {"agents": []}, "{}")
    assert spend_of(run).spent_usd == 0
    file = SpendFile(run.path)
    for spent, expected in ((123.25, 10.5), (1.25, 0.25)):
        file.write(spent, expected)
        assert spend_of(run).spent_usd == pytest.approx(spent + expected)
    file.close()
    (run.path / "spent").write_text("torn")
    assert spend_of(run).spent_usd == 0
