"""The quota of one process: a `Budget`, a clock, and those who wait.

Invariant: every lease that is granted reaches its asker or goes back unused. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import math

from cogeval.core.budget import Budget
from cogeval.core.clock import Clock, MonotonicClock
from cogeval.core.quota import BudgetSpentError, Lease
from cogeval.core.tabs import asking_episode


def dollars(usd: float) -> str:
    """An amount for people: cents, and of less than ten cents two digits that mean something."""
    if usd == 0 or abs(usd) >= 0.1 or not math.isfinite(usd):
        return f"${usd:,.2f}"
    return f"${usd:,.{1 - math.floor(math.log10(abs(usd)))}f}"


def spent_message(spent_usd: float, cap_usd: float | None) -> str:
    """What is said when the cap is reached."""
    return f"spent {dollars(spent_usd)} of {dollars(cap_usd or 0.0)}, the run's spending cap"


class LocalQuota:
    """Hands out the leases of a budget in one process.

    Args:
        budget: the books.
        clock: where time comes from.
    """

    def __init__(self, budget: Budget, clock: Clock | None = None) -> None:
        self.budget = budget
        self._clock = clock or MonotonicClock()
        self._waiting: dict[int, asyncio.Future[Lease]] = {}
        self._waking: asyncio.Task[None] | None = None

    async def lease(self, account: str, tokens: int) -> Lease:
        """Waits until the account allows one request more.

        Raises:
            BudgetSpentError: when the run's spending cap is reached.
        """
        ticket = self.budget.ask("", account, tokens, asking_episode(self._close))
        answer: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = answer
        self._hand_out()
        try:
            return await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                self.budget.give_back(answer.result(), self._clock.now())
            else:
                self._waiting.pop(ticket, None)
                self.budget.withdraw(account, ticket)
            self._hand_out()
            raise

    async def settle(self, lease: Lease, *, tokens: int, cost_usd: float) -> None:
        """Books what a request took and cost."""
        tab = ("", asking_episode())
        self.budget.settle(lease, self._clock.now(), tokens=tokens, cost_usd=cost_usd, tab=tab)
        self._hand_out()

    async def penalize(self, account: str, wait_s: float) -> None:
        """Holds the account's requests back."""
        self.budget.penalize(account, wait_s, self._clock.now())

    def _close(self, episode: int, complete: bool) -> None:
        """An episode is over."""
        self.budget.close(("", episode), complete=complete)
        self._hand_out()

    def _hand_out(self) -> None:
        """Answers those who may go, or everybody when the money is spent, and sets the next time."""
        for ticket, lease in self.budget.grant(self._clock.now()):
            answer = self._waiting.pop(ticket)
            if answer.cancelled():
                self.budget.give_back(lease, self._clock.now())
            else:
                answer.set_result(lease)
        if self.budget.is_spent:
            why = spent_message(self.budget.spent_usd, self.budget.cap_usd)
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(BudgetSpentError(why))
            self._waiting.clear()
        if self._waking is not None and self._waking is not asyncio.current_task():
            self._waking.cancel()
        self._waking = None
        wait_s = self.budget.wait_s(self._clock.now()) if self._waiting else None
        if wait_s is not None:
            self._waking = asyncio.ensure_future(self._wake(wait_s))

    async def _wake(self, wait_s: float) -> None:
        await self._clock.sleep(wait_s)
        self._hand_out()
