"""Both ends of a quota that a run's workers share: the desk that keeps the books, and a worker's side.

Invariant: a worker makes one call for all that happened in a few milliseconds, and has at most one call
that waits for grants. No message depends on the order in which messages arrive. No request is made with a
lease that is older than the rates allow for, however long a worker's loop was busy. Imports no ray: the actor
is a thin shell around the desk.

The two ends share no clock, so they tell each other lengths of time: the desk how long it has kept a lease
and a call, the worker's clock how long the call took in all; what is left of that was the way here and there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from cogeval.core.budget import Budget, Recent
from cogeval.core.clock import MonotonicClock
from cogeval.core.local_quota import spent_message
from cogeval.core.quota import BooksLostError, BudgetSpentError, Lease, QuotaError
from cogeval.core.tabs import asking_episode

HOLD_S = 1.0  # that a worker may keep a lease before it makes the request or gives the lease back, at first
_MOST_HOLD_S = 60.0  # that it ever may, when its loop is busy for longer than that
_GATHER_S = 0.005  # in which a worker's news are gathered into one call
_WAIT_S = 5.0  # longest that a call waits for grants
_FETCHING = "quota, waiting for grants"


class Message(msgspec.Struct, frozen=True):
    """What happened in a worker since its last message."""

    asked: tuple[tuple[int, str, int, int], ...] = ()  # (worker's own key, account, tokens, episode)
    settled: tuple[tuple[Lease, int, float, int], ...] = ()  # (lease, tokens, cost_usd, episode)
    unused: tuple[Lease, ...] = ()
    penalties: tuple[tuple[str, float], ...] = ()  # (account, wait_s)
    closed: tuple[tuple[int, bool], ...] = ()  # (episode, played to its end)
    slowest_s: float = 0.0  # age of the oldest lease that was too old to be used


class Grants(msgspec.Struct, frozen=True):
    """What the desk answers."""

    leases: tuple[tuple[int, Lease, float, float], ...]  # (worker's own key, lease, age_s, hold_s)
    spent: str | None  # the cap is reached: nothing will be granted any more
    kept_s: float = 0.0  # that the call waited at the desk


class Fresh(msgspec.Struct, frozen=True):
    """A lease that has arrived at a worker."""

    lease: Lease
    granted_at: float  # by the worker's clock; no later than it was
    hold_s: float  # how old it may be when its request is made

    def age_s(self, now: float) -> float:
        """Seconds since it was granted, at most."""
        return now - self.granted_at


Keep = Callable[[float, float, Mapping[str, Recent], float], None]


class QuotaDesk:
    """Keeps a run's books for all its workers; lives in one event loop.

    Args:
        budget: the books.
        keep: writes down what is spent and what the requests under way are expected to cost, in dollars, what
            counts for the rates, and what the clock says, set back by what a lease may be late beyond
            `HOLD_S`; called before the leases of such requests leave.
        now: a clock.
    """

    def __init__(
        self, budget: Budget, keep: Keep | None = None, now: Callable[[], float] | None = None
    ) -> None:
        self._budget = budget
        self._keep = keep
        self._kept: tuple[float, float, dict[str, Recent]] = (budget.spent_usd, 0.0, {})
        self._now = now or MonotonicClock().now
        self._hold_s = HOLD_S
        self._asked: dict[int, tuple[str, int]] = {}  # ticket -> who asked, under which key
        self._ready: dict[str, list[tuple[int, Fresh]]] = {}  # worker -> granted and not yet fetched
        self._news: dict[str, asyncio.Event] = {}
        self._gone: set[str] = set()
        self._waking: asyncio.TimerHandle | None = None

    @property
    def spent_usd(self) -> float:
        """Booked so far, what earlier drivers spent included."""
        return self._budget.spent_usd

    @property
    def committed_usd(self) -> float:
        """The same, with what the requests under way are expected to cost."""
        return self._budget.spent_usd + self._budget.expected_usd

    async def exchange(self, worker: str, message: Message, *, wait: bool) -> Grants:
        """Takes a worker's message.

        Args:
            worker: its id.
            message: what happened there.
            wait: answer only when there is a grant for it, or after some seconds.
        """
        came_at = self._now()
        self._book(worker, message)
        if worker in self._gone:
            self._hand_out()
            return Grants((), None)
        for key, account, tokens, episode in message.asked:
            self._asked[self._budget.ask(worker, account, tokens, episode)] = (worker, key)
        self._hand_out()
        news = self._news.setdefault(worker, asyncio.Event())
        if wait and not self._ready.get(worker) and not self._budget.is_spent:
            news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), _WAIT_S)
        spent = spent_message(self.spent_usd, self._budget.cap_usd) if self._budget.is_spent else None
        now, ready = self._now(), self._ready.pop(worker, [])
        leases = tuple((key, fresh.lease, fresh.age_s(now), fresh.hold_s) for key, fresh in ready)
        return Grants(leases, spent, now - came_at)

    def forget(self, worker: str) -> None:
        """A worker is lost: what it held comes back."""
        self._gone.add(worker)
        self._budget.forget(worker)
        self._asked = {t: asker for t, asker in self._asked.items() if asker[0] != worker}
        self._ready.pop(worker, None)
        self._hand_out()

    def _book(self, worker: str, message: Message) -> None:
        now = self._now()
        if message.slowest_s > self._hold_s / 2:  # the next comes in time, and the rates allow for it
            self._hold_s = min(_MOST_HOLD_S, 3 * message.slowest_s)
            self._budget.widen(self._hold_s)
        for account, wait_s in message.penalties:
            self._budget.penalize(account, wait_s, now)
        for lease, tokens, cost_usd, episode in message.settled:
            tab = (worker, episode)
            self._budget.settle(lease, now, tokens=tokens, cost_usd=cost_usd, tab=tab)
        for lease in message.unused:
            self._budget.give_back(lease, now)
        for episode, complete in message.closed:
            self._budget.close((worker, episode), complete=complete)

    def _hand_out(self) -> None:
        """Grants what may go now, tells those who wait, and sets the next time to look."""
        now = self._now()
        for ticket, lease in self._budget.grant(now):
            worker, key = self._asked.pop(ticket)
            self._ready.setdefault(worker, []).append((key, Fresh(lease, now, self._hold_s)))
        books = (self._budget.spent_usd, self._budget.expected_usd, self._budget.recent(now))
        if self._keep is not None and books != self._kept:
            self._kept = books
            self._keep(*books, now - self._hold_s + HOLD_S)
        for worker, news in self._news.items():
            if self._budget.is_spent or self._ready.get(worker):
                news.set()
        if self._waking is not None:
            self._waking.cancel()
        wait_s = self._budget.wait_s(self._now())
        loop = asyncio.get_running_loop()
        self._waking = None if wait_s is None else loop.call_later(wait_s + 1e-3, self._hand_out)


Exchange = Callable[[Message, bool], Awaitable[Grants]]


class LeasedQuota:
    """A worker's side: the `Quota` of its agents; lives in the worker's event loop.

    Args:
        exchange: sends a message to the desk, and waits for grants when told to.
        now: a clock.
    """

    def __init__(self, exchange: Exchange, now: Callable[[], float] | None = None) -> None:
        self._exchange = exchange
        self._now = now or MonotonicClock().now
        self._waiting: dict[int, asyncio.Future[Fresh]] = {}
        self._num_keys = 0
        self._asked: list[tuple[int, str, int, int]] = []
        self._settled: list[tuple[Lease, int, float, int]] = []
        self._closed: list[tuple[int, bool]] = []
        self._unused: list[Lease] = []
        self._penalties: list[tuple[str, float]] = []
        self._slowest_s = 0.0
        self._spare: dict[int, tuple[Fresh, asyncio.TimerHandle]] = {}  # granted to those who had gone
        self._sending: asyncio.TimerHandle | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._is_fetching = False  # a call waits for grants
        self._end: QuotaError | None = None  # why nothing is granted any more

    async def lease(self, account: str, tokens: int) -> Lease:
        """Waits until the account allows one request more, cluster-wide.

        Raises:
            BudgetSpentError: when the run's spending cap is reached.
            BooksLostError: when the desk is gone.
        """
        while True:
            fresh = self._take_spare(account, tokens) or await self._ask(account, tokens)
            # Half of what the rates allow for is left for the way to the service.
            if fresh.age_s(self._now()) <= fresh.hold_s / 2:
                return fresh.lease
            self._slowest_s = max(self._slowest_s, fresh.age_s(self._now()))
            self._give_back(fresh.lease)

    def _take_spare(self, account: str, tokens: int) -> Fresh | None:
        """A lease for such a request that nobody wants, if there is one."""
        for fresh, giving_back in self._spare.values():
            if fresh.lease.account == account and fresh.lease.tokens >= tokens:
                giving_back.cancel()
                del self._spare[fresh.lease.id]
                return fresh
        return None

    async def _ask(self, account: str, tokens: int) -> Fresh:
        """Waits for a lease of the desk's."""
        if self._end is not None:
            raise self._ending()
        episode = asking_episode(self._close)
        self._num_keys += 1
        answer: asyncio.Future[Fresh] = asyncio.get_running_loop().create_future()
        self._waiting[self._num_keys] = answer
        self._asked.append((self._num_keys, account, tokens, episode))
        self._send_soon()
        try:
            return await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                self._keep(answer.result())
            raise

    async def settle(self, lease: Lease, *, tokens: int, cost_usd: float) -> None:
        """Books what a request took and cost; the desk hears of it in a few milliseconds."""
        self._settled.append((lease, tokens, cost_usd, asking_episode()))
        self._send_soon()

    async def penalize(self, account: str, wait_s: float) -> None:
        """Holds the account's requests back, of all workers."""
        self._penalties.append((account, wait_s))
        self._send_soon()

    def _close(self, episode: int, complete: bool) -> None:
        """An episode is over."""
        self._closed.append((episode, complete))
        self._send_soon()

    async def flush(self) -> None:
        """Tells the desk everything now; returns when it knows."""
        for fresh, giving_back in list(self._spare.values()):
            giving_back.cancel()
            self._give_back(fresh.lease)
        self._send()
        while calls := [call for call in self._calls if call.get_name() != _FETCHING]:
            await asyncio.wait(calls)

    def _send_soon(self) -> None:
        if self._sending is None:
            self._sending = asyncio.get_running_loop().call_later(_GATHER_S, self._send)

    def _send(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
        self._sending = None
        if isinstance(self._end, BooksLostError):
            return
        message = Message(
            tuple(self._asked),
            tuple(self._settled),
            tuple(self._unused),
            tuple(self._penalties),
            tuple(self._closed),
            self._slowest_s,
        )
        self._slowest_s = 0.0
        self._asked, self._settled, self._unused, self._penalties, self._closed = [], [], [], [], []
        fetch = bool(self._waiting) and not self._is_fetching
        if not fetch and message == Message():
            return
        self._is_fetching = self._is_fetching or fetch
        # What an ask brings is fetched by the call that waits already, if there is one.
        name = _FETCHING if fetch else "quota, telling"
        call = asyncio.get_running_loop().create_task(self._call(message, fetch), name=name)
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _call(self, message: Message, fetch: bool) -> None:
        sent_at = self._now()
        try:
            grants = await self._exchange(message, fetch)
        except Exception as error:  # noqa: BLE001 - whatever it is: without books nobody may spend
            self._finish(BooksLostError(f"the run's quota cannot be reached: {type(error).__name__}"))
            return
        finally:
            if fetch:
                self._is_fetching = False
        left_at = sent_at + grants.kept_s  # when the desk answered; the way to it counts for the way back
        for key, lease, age_s, hold_s in grants.leases:
            fresh = Fresh(lease, left_at - age_s, hold_s)
            answer = self._waiting.pop(key, None)
            if answer is None or answer.done():  # told that it is over, or cancelled
                self._keep(fresh)
            else:
                answer.set_result(fresh)
        if grants.spent is not None:
            self._finish(BudgetSpentError(grants.spent))
        if self._waiting:
            self._send_soon()

    def _keep(self, fresh: Fresh) -> None:
        """Keeps a lease for the next who asks, but briefly: its slot may be wanted elsewhere."""
        timer = asyncio.get_running_loop().call_later(HOLD_S / 2, self._give_back, fresh.lease)
        self._spare[fresh.lease.id] = (fresh, timer)

    def _give_back(self, lease: Lease) -> None:
        self._spare.pop(lease.id, None)
        self._unused.append(lease)
        self._send_soon()

    def _finish(self, why: QuotaError) -> None:
        """Nothing is granted any more: everybody who waits is told."""
        self._end = why
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(self._ending())
        self._waiting.clear()

    def _ending(self) -> QuotaError:
        assert self._end is not None
        return type(self._end)(str(self._end))  # a new one each time: tracebacks must not pile up in it
