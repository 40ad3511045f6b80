"""The quota of one process: a `Budget`, a clock, and those who wait.

Invariant: every lease that is granted reaches its asker or goes back unused. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio

from cogeval.core.budget import Budget
from cogeval.core.clock import Clock, MonotonicClock
from cogeval.core.quota import BudgetSpentError, Lease


def spent_message(spent_usd: float, cap_usd: float | None) -> str:
    """What is said when the cap is reached."""
    return f"spent ${spent_usd:,.2f} of ${cap_usd or 0.0:,.2f}, the run's spending cap"


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
        ticket = self.budget.ask("", account, tokens)
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
        self.budget.settle(lease, self._clock.now(), tokens=tokens, cost_usd=cost_usd)
        self._hand_out()

    async def penalize(self, account: str, wait_s: float) -> None:
        """Holds the account's requests back."""
        self.budget.penalize(account, wait_s, self._clock.now())

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
