"""A driver's hold on its run's money: the actor that keeps the books, and what of them is in the run's log.

Invariant: what was spent never shrinks, whoever drives and however the last one ended.
"""

from __future__ import annotations

import time

from ray.actor import ActorHandle

from cogeval.cluster.plan import RunPlan
from cogeval.cluster.quota_actor import RunQuota
from cogeval.store.run import RunDir
from cogeval.store.spend import paused_entry, spend_of, spent_entry

_BOOK_S = 5.0  # between two entries of what was spent


class Purse:
    """The money of one run, in one driver.

    Args:
        plan: the run.
        run: its directory, whose lock this driver holds.
    """

    def __init__(self, plan: RunPlan, run: RunDir) -> None:
        self._plan = plan
        self._run = run
        self._quota: RunQuota | None = None
        self.spent_usd = 0.0  # by the run so far
        self._booked_usd = 0.0  # as the log has it
        self._before_usd = 0.0  # by earlier drivers
        self._booked_at = 0.0

    def is_empty_already(self) -> bool:
        """Takes over what earlier drivers spent; True when the cap leaves nothing, or ended the last one."""
        if not (self._plan.uses_quota or not self._plan.deterministic):
            return False
        spend, cap_usd = spend_of(self._run), self._plan.cap_usd
        self.spent_usd = self._booked_usd = self._before_usd = spend.spent_usd
        if cap_usd is None:
            return False
        has_paused_here = spend.cap_usd is not None and cap_usd <= spend.cap_usd
        return has_paused_here or self.spent_usd >= cap_usd

    def open(self, name: str) -> None:
        """Starts the books, where anybody has to keep them.

        Args:
            name: of the actor, unique in the cluster.
        """
        if self._plan.uses_quota:
            self._quota = RunQuota(self._plan, name, self.spent_usd)

    @property
    def books(self) -> ActorHandle | None:
        """The actor, for workers; None: nobody limits their agents."""
        return None if self._quota is None else self._quota.actor

    def forget(self, worker_id: str) -> None:
        """A worker is lost: what it held comes back."""
        if self._quota is not None:
            self._quota.forget(worker_id)

    def book(self, *, last: bool = False) -> None:
        """Keeps what was spent in the log, now and then: unfinished episodes cost money too."""
        if self._quota is None:
            return
        now, self.spent_usd = time.monotonic(), self._quota.spent_usd(last=last)
        if not (last or now - self._booked_at >= _BOOK_S):
            return
        self._booked_at = now
        if self.spent_usd != self._booked_usd:
            self._booked_usd = self.spent_usd
            self._run.append_log(spent_entry(self.spent_usd))

    def pause(self) -> None:
        """Keeps in the log that the money, and nothing else, ended this driver."""
        self._run.append_log(paused_entry(self.spent_usd, self._plan.cap_usd or 0.0))

    def shown_usd(self, finished_usd: float) -> float:
        """What to show while it plays.

        Args:
            finished_usd: that the episodes cost which this driver saw finish.
        """
        return max(self.spent_usd, self._before_usd + finished_usd)

    def close(self) -> None:
        """Books the last word, and ends the actor."""
        if self._quota is not None:
            self.book(last=True)
            self._quota.close()
