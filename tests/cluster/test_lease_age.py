"""No minute holds more requests than the limit, however late leases come and whoever keeps the books."""

import asyncio
import random

import pytest

from cogeval.cluster.quota_desk import HOLD_S, LeasedQuota, Message, QuotaDesk
from cogeval.core.budget import Budget, Recent
from cogeval.core.quota import Limits
from cogeval.store.run import RunDir
from cogeval.store.spend import SpendFile, filed_usd, recent_of


class QuickLoop(asyncio.SelectorEventLoop):
    """A loop whose time jumps to whatever is due next: minutes pass in no time."""

    at = 0.0

    def time(self):
        return self.at

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.at = max(self.at, self._scheduled[0].when())
        super()._run_once()


def in_quick_loop(scenario):
    with asyncio.Runner(loop_factory=QuickLoop) as runner:
        return runner.run(scenario())


def now():
    return asyncio.get_running_loop().time()


def worker(desk, name, delay_s):
    """A worker that hears of its grants, and goes on, after a while; `delay_s` says how long each time."""

    async def exchange(message, wait):
        grants = await desk.exchange(name, message, wait=wait)
        await asyncio.sleep(delay_s())
        return grants

    return LeasedQuota(exchange, now)


def most_in_a_minute(times):
    times = sorted(times)
    return max(sum(t <= other < t + 60.0 for other in times) for t in times)


@pytest.mark.parametrize("seed", range(6))
def test_no_minute_holds_more_requests_than_the_limit_however_busy_the_workers_are(seed):
    rng = random.Random(seed)
    slowest_s = rng.choice((0.3, 2.0, 8.0, 25.0))
    sent = []

    def delay_s():
        return rng.uniform(0.0, slowest_s) if rng.random() < 0.3 else 0.001

    async def ask(quota):
        for _ in range(4):
            await asyncio.sleep(rng.expovariate(0.2))
            lease = await quota.lease("a", 10)
            await asyncio.sleep(rng.uniform(0.0, HOLD_S / 2))  # until the connection stands
            sent.append(now())
            await asyncio.sleep(1.0)
            await quota.settle(lease, tokens=10, cost_usd=0.0)

    async def scenario():
        desk = QuotaDesk(Budget({"a": Limits(requests_per_minute=10)}, slack_s=HOLD_S), now=now)
        quotas = [worker(desk, f"w{i}", delay_s) for i in range(3)]
        await asyncio.gather(*(ask(quotas[i % 3]) for i in range(24)))

    in_quick_loop(scenario)
    assert len(sent) == 96
    assert most_in_a_minute(sent) <= 10


def test_a_lease_that_comes_too_late_is_given_back_and_the_next_may_be_as_late():
    async def scenario():
        budget = Budget({"a": Limits(requests_per_minute=2)}, slack_s=HOLD_S)
        desk = QuotaDesk(budget, now=now)
        calls = []

        def delay_s():
            calls.append(now())
            return 3.0

        quota = worker(desk, "w0", delay_s)
        await quota.lease("a", 10)
        assert now() == pytest.approx(6.0, abs=0.1)  # the first came after three seconds, and was not used
        assert budget.num_held == 1
        assert budget.recent(now())["a"].requests == 1.0
        asked_at = now()
        await quota.lease("a", 10)
        assert now() - asked_at == pytest.approx(3.0, abs=0.1)  # by now the rates allow for that

    in_quick_loop(scenario)


def test_the_time_that_a_lease_waited_at_the_desk_is_part_of_its_age():
    async def scenario():
        desk = QuotaDesk(Budget({"a": Limits(concurrency=1)}), now=now)

        async def tell(worker_id, **what):
            return await desk.exchange(worker_id, Message(**what), wait=False)

        ((_, lease, age_s, hold_s),) = (await tell("w1", asked=((1, "a", 10, 0),))).leases
        assert (age_s, hold_s) == (0.0, HOLD_S)
        assert (await tell("w0", asked=((1, "a", 10, 0),))).leases == ()
        await tell("w1", settled=((lease, 10, 0.0, 0),))  # granted to the other, who does not ask for it
        await asyncio.sleep(2.0)
        ((_, _, age_s, _),) = (await tell("w0")).leases
        assert age_s == 2.0

    in_quick_loop(scenario)


def run_of(tmp_path):
    return RunDir.create(tmp_path, "run", {"agents": []}, "{}").path


def test_books_that_go_on_count_what_the_minute_before_let_through(tmp_path):
    path, sent = run_of(tmp_path), []
    limits = {"a": Limits(requests_per_minute=10), "b": Limits(tokens_per_minute=100)}

    async def ask(desk, num, account):
        quota = worker(desk, account, lambda: 0.0)
        for _ in range(num):
            lease = await quota.lease(account, 10)
            sent.append((account, now()))
            await quota.settle(lease, tokens=10, cost_usd=0.01)
        await quota.flush()

    async def scenario():
        start = now()
        for num in (7, 5, 9):  # three drivers, one after the other
            file = SpendFile(path)
            budget = Budget(limits, slack_s=HOLD_S)
            budget.remember(recent_of(path, start + (now() - start)))
            desk = QuotaDesk(budget, file.write, now)
            await asyncio.gather(ask(desk, num, "a"), ask(desk, num, "b"))
            file.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cogeval.store.spend.time.time", lambda: 1e9 + now())
        in_quick_loop(scenario)
    for account in limits:
        times = [at for name, at in sent if name == account]
        assert len(times) == 21
        assert most_in_a_minute(times) <= 10
        assert times[6] < 1.0  # nobody waits before the limit is reached
        assert times[9] < 3.0


def test_the_file_of_the_books_says_money_and_rates_and_either_alone(tmp_path):
    path = run_of(tmp_path)
    assert (filed_usd(path), recent_of(path, 5.0)) == (0.0, {})
    file = SpendFile(path)
    many = {f"account \u00e9 {i}": Recent(i, 10.0 * i, 2.0) for i in range(1, 30)}
    for recent in (many, {"a": Recent(3.0, 0.0, 2.0)}, {}):
        file.write(1.25, 0.25, recent, 4.0)
        assert filed_usd(path) == 1.5
        found = recent_of(path, 4.0)
        assert found.keys() == recent.keys()
        for name, of in recent.items():
            assert found[name] == pytest.approx(of, abs=0.5)
    file.close()
    (path / "spent").write_text("1.250000000 0.250000000\n")  # as runs of before have it
    assert (filed_usd(path), recent_of(path, 4.0)) == (1.5, {})
    (path / "spent").write_text('1.250000000 0.250000000 {"a": [1,')
    assert (filed_usd(path), recent_of(path, 4.0)) == (1.5, {})


def test_what_was_let_through_long_ago_holds_nobody_back_and_no_clock_that_was_set_back_does_for_longer():
    for at, wait_s in ((-100.0, 0.0), (-20.0, 40.0), (0.0, 60.0)):
        budget = Budget({"a": Limits(requests_per_minute=5)})
        budget.remember({"a": Recent(5.0, 0.0, at), "gone": Recent(9.0, 9.0, at)})
        budget.ask("w", "a", 10)
        assert budget.wait_s(0.0) == pytest.approx(wait_s)
