"""The Ray actor around a `QuotaDesk`: the one place where a run's leases and dollars are booked.

Invariant: it lives as long as its driver and is never restarted: a desk that forgot would let too much
through. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cogeval.cluster.plan import RunPlan
from cogeval.cluster.quota_desk import HOLD_S, Grants, LeasedQuota, Message, QuotaDesk
from cogeval.core.budget import Budget
from cogeval.core.clock import MonotonicClock
from cogeval.core.quota import Limits
from cogeval.store.run import RunDir
from cogeval.store.spend import SpendFile, filed_usd, recent_of, recorded_cost

NAMESPACE = "cogeval-quota"
_LAST_S = 5.0  # longest wait for the last word about the money
_LEASE_S = 60.0  # beyond the longest time that an episode may take: a lease that old is lost


class QuotaActor:
    """Keeps the books of one run in one process, and its money on disk.

    Args:
        run_path: the run's directory.
        limits: per account.
        cap_usd: what the run may spend; None: as much as it takes.
        spent_usd: what earlier drivers spent.
        lease_s: age at which an unsettled lease lapses.
    """

    def __init__(
        self,
        run_path: str,
        limits: Mapping[str, Limits],
        cap_usd: float | None,
        spent_usd: float,
        lease_s: float,
    ) -> None:
        budget = Budget(
            limits,
            cap_usd,
            spent_usd=spent_usd,
            slack_s=HOLD_S,
            lease_s=lease_s,
            recorded=(0, 0.0) if cap_usd is None else recorded_cost(RunDir(run_path)),
        )
        budget.remember(recent_of(run_path, MonotonicClock().now()))
        self._desk = QuotaDesk(budget, SpendFile(run_path).write)

    async def exchange(self, worker: str, message: Message, wait: bool) -> Grants:
        """Takes a worker's message and gives its grants."""
        return await self._desk.exchange(worker, message, wait=wait)

    async def forget(self, worker: str) -> None:
        """A worker is lost."""
        self._desk.forget(worker)

    async def spent_usd(self) -> float:
        """Dollars booked so far, and expected of the requests under way: what the run's file says."""
        return self._desk.committed_usd


def leased_quota(actor: ActorHandle, worker: str) -> LeasedQuota:
    """A worker's quota, whose books an actor keeps."""

    async def exchange(message: Message, wait: bool) -> Grants:
        grants: Grants = await actor.exchange.remote(worker, message, wait)
        return grants

    return LeasedQuota(exchange)


class RunQuota:
    """The driver's hold on its run's actor: starts it, asks it what was spent, and ends it.

    Args:
        plan: the run.
        name: of the actor, unique in the cluster.
        spent_usd: what the run has spent before.
    """

    def __init__(self, plan: RunPlan, name: str, spent_usd: float) -> None:
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        remote = ray.remote(max_restarts=0, max_task_retries=0, num_cpus=0, scheduling_strategy=here)(
            QuotaActor
        )
        self.actor: ActorHandle = remote.options(name=name, namespace=NAMESPACE).remote(
            plan.run_path,
            plan.limits,
            plan.cap_usd,
            spent_usd,
            plan.deadlines.episode_timeout_s + _LEASE_S,
        )
        self._asked: ray.ObjectRef = self.actor.spent_usd.remote()
        self._run_path = plan.run_path
        self._spent_usd = spent_usd

    def forget(self, worker: str) -> None:
        """A worker is lost."""
        self.actor.forget.remote(worker)

    def spent_usd(self, *, last: bool = False) -> float:
        """Dollars spent, as of the last answer; or, the last time, waited for."""
        if last:
            self._asked = self.actor.spent_usd.remote()
        done, _ = ray.wait([self._asked], timeout=_LAST_S if last else 0)
        if done:
            try:
                self._spent_usd = ray.get(self._asked)
            except RayError:  # it is dead, as the workers will say; its file has the last word
                self._spent_usd = max(self._spent_usd, filed_usd(self._run_path))
                return self._spent_usd
            self._asked = self.actor.spent_usd.remote()
        return self._spent_usd

    def close(self) -> None:
        """Ends the actor."""
        ray.kill(self.actor)
