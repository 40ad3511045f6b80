"""The Ray actor around an `EpisodeHost`.

Invariant: nothing is decided here. A death of its process surfaces at once (max_restarts=0) and no
call is ever repeated by Ray.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Mapping
from typing import Any

import ray
from ray import cloudpickle
from ray.actor import ActorHandle

from cogeval import __version__
from cogeval.agents.actor.client import SeatClients
from cogeval.cluster.host import EpisodeHost
from cogeval.cluster.plan import Receipt, RunPlan
from cogeval.cluster.quota_actor import leased_quota
from cogeval.cluster.quota_desk import LeasedQuota
from cogeval.cluster.ray_meters import RaySink
from cogeval.cluster.seat_pool_actor import seat_clients
from cogeval.core.agent import Resources
from cogeval.core.quota import UNLIMITED
from cogeval.store.probe import answer

_GC_THRESHOLDS = (100_000, 50, 50)  # of the worker's process; Python's own are (700, 10, 10)


class EpisodeActor:
    """Plays episodes of one run in one process.

    Args:
        import_paths: directories to import agents from, before the plan is read.
        plan: a pickled `RunPlan`.
        worker: this worker's id.
        books: the run's `QuotaActor`; None: nobody limits its agents.
        pool: the run's `SeatPool`; None: no agent has seat actors.
    """

    def __init__(
        self,
        import_paths: tuple[str, ...],
        plan: bytes,
        worker: str,
        books: ActorHandle | None,
        pool: ActorHandle | None,
    ) -> None:
        for path in reversed(import_paths):
            if path not in sys.path:
                sys.path.insert(0, path)
        self._plan: RunPlan = cloudpickle.loads(plan)
        self._worker = worker
        self._books = books
        self._pool = pool
        self._quota: LeasedQuota | None = None
        self._remote: SeatClients | None = None
        self._host: EpisodeHost | None = None

    async def hello(self) -> dict[str, Any]:
        """Where this worker is, which cogeval it runs, and its answer to the token in the run's directory."""
        # Here: all of these belong to the actor's event loop.
        if self._books is not None:
            self._quota = leased_quota(self._books, self._worker)
        if self._pool is not None:
            self._remote = seat_clients(self._plan, self._worker, self._pool)
        resources = Resources(self._quota or UNLIMITED, self._plan.prices, self._remote)
        sink = RaySink(self._plan.run_id, self._plan.game.spec.name)
        self._host = EpisodeHost(self._plan, self._worker, resources, sink)
        # Episodes leave few cycles behind: looking for them as often as usual costs a twentieth of the speed.
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
        node = ray.get_runtime_context().get_node_id()
        token = self._plan.token
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "node": node,
            "cogeval": __version__,
            "seen": None if token is None else answer(self._plan.run_path, token),
        }

    async def give(self, indexes: tuple[int, ...]) -> None:
        """Adds episodes to the queue."""
        self._playing.give(indexes)

    async def report(self, wait_s: float) -> Receipt:
        """Gives what happened since the last receipt."""
        return await self._playing.report(wait_s)

    async def seal(self) -> None:
        """Seals the open shard."""
        await self._playing.seal()

    async def drain(self, finish_s: float) -> Receipt:
        """Stops, seals, and gives the last receipt."""
        receipt = await self._playing.drain(finish_s)
        if self._remote is not None:
            await self._remote.close()
        if self._quota is not None:
            await self._quota.flush()
        return receipt

    @property
    def _playing(self) -> EpisodeHost:
        assert self._host is not None, "hello comes first"
        return self._host


def start_actor(
    import_paths: tuple[str, ...],
    plan: ray.ObjectRef,
    worker_id: str,
    books: ActorHandle | None,
    pool: ActorHandle | None,
    label_selector: Mapping[str, str] | None = None,
) -> ActorHandle:
    """Starts an episode actor on some node of the cluster, with one CPU.

    Args:
        import_paths: directories to import agents from.
        plan: reference to the pickled plan.
        worker_id: unique in the run for ever.
        books: the run's `QuotaActor`; None: nobody limits its agents.
        pool: the run's `SeatPool`; None: no agent has seat actors.
        label_selector: of the nodes that it may be on, as Ray wants it said; None: all.
    """
    remote = ray.remote(max_restarts=0, max_task_retries=0, num_cpus=1)(EpisodeActor)
    if label_selector:
        remote = remote.options(label_selector=dict(label_selector))
    return remote.remote(import_paths, plan, worker_id, books, pool)
