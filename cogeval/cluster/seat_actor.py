"""The Ray actor around a `SeatReplica`, and the replica as the episodes' processes see it.

Invariant: nothing is decided here. What leaves a seat actor is bytes of numbers and texts; a death of its
process surfaces at once (max_restarts=0) and no call is ever repeated by Ray.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import sys
from collections.abc import Awaitable
from functools import cache
from typing import Any, TypeVar

import ray
from ray import cloudpickle
from ray.actor import ActorHandle
from ray.exceptions import ActorUnschedulableError, ObjectLostError, RayActorError

from cogeval import __version__
from cogeval.agents.actor.build import ActorAgent
from cogeval.agents.actor.messages import News, Question, ReplicaLostError, packed, unpacked
from cogeval.agents.actor.options import ActorOptions
from cogeval.agents.actor.replica import SeatReplica

T = TypeVar("T")

_CALLS = 10_000  # that a seat actor answers at once: one waits for news from each worker
_BESIDE = "beside"  # its calls have a thread and an event loop of their own
_MB = 1_000_000
_GONE = (RayActorError, ObjectLostError, ActorUnschedulableError)


class SeatActor:
    """Serves the seats of one agent in many episodes, in one process.

    Args:
        import_paths: directories to import agents from, before the agent is read.
        agent: a pickled `ActorAgent`.
    """

    def __init__(self, import_paths: tuple[str, ...], agent: bytes) -> None:
        for path in reversed(import_paths):
            if path not in sys.path:
                sys.path.insert(0, path)
        self._agent: ActorAgent = cloudpickle.loads(agent)
        self._replica: SeatReplica | None = None

    async def here(self) -> None:
        """Answers as soon as there is room for this actor."""

    async def hello(self) -> dict[str, Any]:
        """Makes the agent; where it is and which cogeval it runs."""
        self._replica = self._agent.replica()  # here: it belongs to the actor's event loop
        return {"host": socket.gethostname(), "pid": os.getpid(), "cogeval": __version__}

    async def alive(self) -> None:
        """Never returns: its failure tells of the end of this process."""
        await asyncio.Event().wait()

    async def submit(self, client: str, questions: bytes) -> None:
        """Takes pickled questions of a worker."""
        # Our own workers have pickled them: nothing here comes from an agent.
        await self._serving.submit(client, pickle.loads(questions))  # noqa: S301

    async def collect(self, client: str, wait_s: float) -> bytes:
        """Gives news of a worker's questions."""
        return packed(await self._serving.collect(client, wait_s))

    async def thinking(self, client: str, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Which questions the agent has not answered."""
        return await self._serving.thinking(client, ids)

    @ray.method(concurrency_group=_BESIDE)  # type: ignore[untyped-decorator]
    async def keeping(self, client: str) -> tuple[int, ...] | None:
        """Which questions keep the event loop of everything else here."""
        return await self._serving.keeping(client)

    async def cancel(self, client: str, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Drops questions."""
        return await self._serving.cancel(client, ids)

    async def forget(self, client: str) -> None:
        """Drops all that a lost worker has asked."""
        self._serving.forget(client)

    async def close(self) -> None:
        """Lets the agent put its things away."""
        if self._replica is not None:
            await self._replica.close()

    @property
    def _serving(self) -> SeatReplica:
        assert self._replica is not None, "hello comes first"
        return self._replica


class RemoteReplica:
    """A seat actor as a client sees it.

    Args:
        actor: the handle of a `SeatActor`.
    """

    def __init__(self, actor: ActorHandle) -> None:
        self._actor = actor

    async def submit(self, client: str, questions: tuple[Question, ...]) -> None:
        """Takes questions; returns at once."""
        await answered(self._actor.submit.remote(client, pickle.dumps(questions, pickle.HIGHEST_PROTOCOL)))

    async def collect(self, client: str, wait_s: float) -> News:
        """Waits for news of the client's questions."""
        data: bytes = await answered(self._actor.collect.remote(client, wait_s))
        return unpacked(data)

    async def thinking(self, client: str, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Which questions the agent has not answered; silence means that something keeps its event loop."""
        unanswered: tuple[int, ...] = await answered(self._actor.thinking.remote(client, ids))
        return unanswered

    async def keeping(self, client: str) -> tuple[int, ...] | None:
        """Which of the client's questions keep the actor's event loop; empty: another's; None: unknown."""
        numbers: tuple[int, ...] | None = await answered(self._actor.keeping.remote(client))
        return numbers

    async def cancel(self, client: str, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Drops questions; gives those that only the end of the replica would end."""
        held: tuple[int, ...] = await answered(self._actor.cancel.remote(client, ids))
        return held


async def answered(call: Awaitable[T]) -> T:
    """Waits for a call of a seat actor.

    Raises:
        ReplicaLostError: its process or its node is gone, or cannot be reached.
    """
    try:
        return await call
    except _GONE as error:
        raise ReplicaLostError(str(error).strip().partition("\n")[0]) from error


def start_seat_actor(import_paths: tuple[str, ...], agent: bytes, options: ActorOptions) -> ActorHandle:
    """Starts a seat actor on the node that has most room.

    Args:
        import_paths: directories to import agents from.
        agent: the pickled agent.
        options: what each of its actors needs.
    """
    memory = {} if options.memory_mb is None else {"memory": options.memory_mb * _MB}
    wanted = _remote_class().options(num_cpus=options.cpus, num_gpus=options.gpus, **memory)
    return wanted.remote(import_paths, agent)


@cache
def _remote_class() -> Any:
    """Made once in a process: Ray sends each that is made to the whole cluster."""
    return ray.remote(
        max_restarts=0,
        max_task_retries=0,
        max_concurrency=_CALLS,
        concurrency_groups={_BESIDE: _CALLS},
        scheduling_strategy="SPREAD",
    )(SeatActor)
