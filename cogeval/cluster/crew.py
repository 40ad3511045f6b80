"""The workers of one driver: who is there, what each is asked, and who takes the place of one that is gone.

Invariant: the driver waits for exactly one call of each worker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import ray
from ray import cloudpickle
from ray.actor import ActorHandle

from cogeval.cluster.grounds import Grounds
from cogeval.cluster.plan import RunPlan
from cogeval.cluster.workers import Worker, complaint
from cogeval.store.places import place_at

_WAIT_S = 0.2  # longest wait for an answer, before the driver looks after everything else


class Crew:
    """Workers by id, and the calls that are waited for.

    Args:
        plan: the run.
        generation: begins the ids of this driver's workers.
        grounds: where they may be.
        books: the run's `QuotaActor`; None: nobody limits its agents.
        pool: the run's `SeatPool`; None: no agent has seat actors.
    """

    def __init__(
        self,
        plan: RunPlan,
        generation: str,
        grounds: Grounds,
        books: ActorHandle | None,
        pool: ActorHandle | None,
    ) -> None:
        self._plan = plan
        self._pickled_plan = ray.put(cloudpickle.dumps(plan))
        self._generation = generation
        self._grounds = grounds
        self._books = books
        self._pool = pool
        self._num_started = 0
        self._workers: dict[str, Worker] = {}
        self._calls: dict[ray.ObjectRef, Worker] = {}

    def __getitem__(self, worker_id: str) -> Worker:
        return self._workers[worker_id]

    def __iter__(self) -> Iterator[Worker]:
        return iter(list(self._workers.values()))

    def __len__(self) -> int:
        return len(self._workers)

    def complete(self) -> None:
        """Starts a worker for each that there is room for."""
        for _ in range(self._grounds.lacking(len(self))):
            self.start()

    def start(self) -> None:
        """Starts a worker: Ray places it as soon as a node has a free CPU."""
        worker_id = f"{self._generation}-w{self._num_started}"
        self._num_started += 1
        plan = self._plan
        worker = Worker(
            worker_id,
            plan.import_paths,
            self._pickled_plan,
            plan.episodes_in_flight,
            self._books,
            self._pool,
            self._grounds.label_selector(),
        )
        self._workers[worker_id] = worker
        self._calls[worker.pending] = worker

    def welcome(self, worker: Worker, hello: Mapping[str, Any]) -> str | None:
        """A worker is there.

        Args:
            worker: the worker.
            hello: what it says of itself.

        Returns:
            What is wrong with its node; None: nothing.
        """
        wrong = complaint(hello, place_at(self._plan.run_path), self._plan.token)
        if wrong is None:
            worker.ready = True
            self._grounds.trust(hello["node"])
        return wrong

    def refuse(self, worker: Worker, node_id: str) -> bool:
        """Puts a worker elsewhere that cannot play where it is.

        Returns:
            False when its node is refused already.
        """
        is_new = self._grounds.refuse(node_id)
        self.dismiss(worker)
        self.start()
        return is_new

    def dismiss(self, worker: Worker) -> None:
        """Ends a worker that is dead already, cut off or not wanted: it must not go on writing."""
        ray.kill(worker.actor)
        del self._workers[worker.id]
        self._calls.pop(worker.pending, None)

    def ask(self, worker: Worker) -> None:
        """Asks a worker for its next receipt."""
        self._calls[worker.ask()] = worker

    def answers(self) -> Iterator[tuple[Worker, ray.ObjectRef]]:
        """Waits a moment, and gives the calls that are answered, or have failed."""
        done, _ = ray.wait(list(self._calls), timeout=_WAIT_S)
        for call in done:
            if (worker := self._calls.pop(call, None)) is not None:
                yield worker, call

    def hung(self) -> Iterator[tuple[Worker, float]]:
        """Those that have said nothing for longer than any decision may take, and that time in seconds."""
        limit_s, now = self._plan.silence_s, time.monotonic()
        for worker in self if limit_s is not None else ():
            if limit_s is not None and worker.ready and now - worker.asked_at > limit_s:
                yield worker, limit_s

    def pending(self) -> dict[ray.ObjectRef, Worker]:
        """The calls of workers that have begun, which bring their last receipts."""
        return {call: worker for call, worker in self._calls.items() if worker.ready}
