"""The Ray actor that owns a run's seat actors, and its two other ends: in the driver and in a worker.

Invariant: it lives and dies with its driver, and every seat actor with it. Who takes whose place is
decided by the rosters; here they are only obeyed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import ray
from ray import cloudpickle
from ray.actor import ActorHandle
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cogeval import __version__
from cogeval.agents.actor.build import options_of
from cogeval.agents.actor.client import SeatClient, SeatClients
from cogeval.agents.actor.messages import Replica
from cogeval.agents.actor.options import ActorOptions
from cogeval.cluster.deaths import last_line, went_with_node
from cogeval.cluster.logs import brief
from cogeval.cluster.plan import RunPlan
from cogeval.cluster.seat_actor import RemoteReplica, start_seat_actor
from cogeval.cluster.seat_fit import Need
from cogeval.cluster.seat_pool import HowLost, Loss, Losses, Roster
from cogeval.errors import RunError

NAMESPACE = "cogeval-seats"
_CALLS = 10_000  # answered at once: one waits for each agent in each worker
_WAIT_S = 10.0  # longest that a call waits for another list
_REMEMBERED = 1000  # seat actors ended for a decision that is known
_BREATH_S = 0.02  # between the end of a seat actor and the start of another
_ROOM_S = 60.0  # in which at least one of those that wait for room must find it
_MADE_S = 600.0  # that an agent may take to be made: it may load weights
_LOOK_S = 0.5  # between two looks at how far they are
_CLOSE_S = 2.0  # that agents may take to put their things away


class _Agent(msgspec.Struct, frozen=True):
    pickled: bytes
    options: ActorOptions

    @property
    def size(self) -> tuple[float, float, int]:
        """What one of its actors needs, the scarcest first."""
        return (self.options.gpus, self.options.cpus, self.options.memory_mb or 0)


class SeatPool:
    """Keeps the seat actors of all agents of one run.

    Args:
        import_paths: directories to import agents from.
        agents: name in the pool -> the agent.
    """

    def __init__(self, import_paths: tuple[str, ...], agents: Mapping[str, _Agent]) -> None:
        self._import_paths = import_paths
        self._agents = agents
        self._rosters = {
            name: Roster(name, agent.options.replicas, agent.options.spares) for name, agent in agents.items()
        }
        self._actors: dict[str, ActorHandle] = {}  # by id, while they live
        self._lives: set[asyncio.Task[None]] = set()
        self._unplaced: set[str] = set()  # ids of those that wait for room
        self._known: dict[str, None] = {}  # ids of those that were ended for a decision that is known
        self._losses = Losses()
        self._is_closed = False
        self._changed = asyncio.Event()  # set, and replaced, at every change

    async def begin(self) -> None:
        """Starts them all, the largest first."""
        for name in sorted(self._agents, key=lambda name: self._agents[name].size, reverse=True):
            self._complete(name)

    async def missing(self) -> tuple[int, tuple[str, ...]]:
        """How many wait for room; and the agents of which none is made yet."""
        unmade = tuple(name for name, roster in self._rosters.items() if not roster.active)
        return len(self._unplaced), unmade

    async def replicas(self, agent: str, known: int) -> tuple[int, dict[str, ActorHandle]]:
        """Waits for another version of an agent's list than `known`; may give the same after a while.

        Raises:
            RuntimeError: there will be no seat actors of this agent any more.
        """
        roster = self._rosters[agent]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_S):
                while (not roster.active or roster.version == known) and roster.trouble is None:
                    await self._changed.wait()
        if roster.trouble is not None:
            raise RuntimeError(roster.trouble)
        return roster.version, {replica: self._actors[replica] for replica in roster.active}

    async def lose(self, agent: str, replica: str, is_known: bool = False, is_hung: bool = False) -> bool:
        """A worker says that a seat actor does not answer, or holds a decision past its time: ends it.

        Args:
            agent: its name in the pool.
            replica: the seat actor's id.
            is_known: the worker knows which decision that is.
            is_hung: it holds a decision past its time; else it does not answer.

        Returns:
            True when this worker, or one before it, knew.
        """
        if is_known and replica in self._actors:
            self._known[replica] = None
            if len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
        if replica in self._actors:
            if is_hung:
                self._losses.tell(Loss(agent, replica, "hung"))
            else:
                self._losses.suspect(agent, replica)
        self._lose(agent, replica, "a worker gave it up")
        return replica in self._known

    async def forget(self, worker: str) -> None:
        """A worker is lost: nobody waits for what it has asked."""
        for actor in self._actors.values():
            actor.forget.remote(worker)

    async def trouble(self) -> str:
        """Waits until the run cannot go on, and says why."""
        while True:
            for roster in self._rosters.values():
                if roster.trouble is not None:
                    return f"seat actors of agent {roster.agent}: {roster.trouble}"
            await self._changed.wait()

    async def losses(self) -> list[Loss]:
        """Waits until seat actors were lost, and gives those of which it has not told; none: it is closed."""
        while not (told := self._losses.take()) and not self._is_closed:
            await self._changed.wait()
        return told

    async def close(self) -> None:
        """Lets the agents put their things away, then ends them."""
        actors, self._actors = dict(self._actors), {}
        self._is_closed = True
        self._losses.end()
        self._tell()
        for life in self._lives:
            life.cancel()
        closing = [asyncio.ensure_future(_heard(actor.close.remote())) for actor in actors.values()]
        if closing:
            await asyncio.wait(closing, timeout=_CLOSE_S)
        for actor in actors.values():
            ray.kill(actor)

    def _complete(self, agent: str) -> None:
        for replica in () if self._is_closed else self._rosters[agent].begin():
            self._unplaced.add(replica)
            life = asyncio.ensure_future(self._live(agent, replica))
            self._lives.add(life)
            life.add_done_callback(self._lives.discard)

    async def _live(self, agent: str, replica: str) -> None:
        """One seat actor from its start to its end."""
        known = self._agents[agent]
        actor = start_seat_actor(self._import_paths, known.pickled, known.options)
        self._actors[replica] = actor
        try:
            await actor.here.remote()
            self._unplaced.discard(replica)
            self._tell()
            hello = await actor.hello.remote()
            if hello["cogeval"] != __version__:
                self._rosters[agent].fail(
                    f"cogeval {hello['cogeval']} is installed on {hello['host']}, here {__version__}; "
                    "install one version on every node"
                )
            self._rosters[agent].ready(replica)
            self._tell()
            await actor.alive.remote()
        except RayActorError as error:
            self._explain(agent, replica, error)
            self._lose(agent, replica, f"they die as they start: {last_line(error)}")
        except RayError as error:
            self._unplaced.discard(replica)
            self._rosters[agent].fail(last_line(error))
            self._tell()

    def _lose(self, agent: str, replica: str, why: str) -> None:
        actor = self._actors.pop(replica, None)
        if actor is None:
            return
        self._unplaced.discard(replica)
        ray.kill(actor)  # dead already, or cut off, or held by what only its death ends
        if self._rosters[agent].lost(replica, why):
            self._tell()
            # To start one takes a while, and whoever waits hears of the spare first.
            asyncio.get_running_loop().call_later(_BREATH_S, self._complete, agent)

    def _explain(self, agent: str, replica: str, error: RayActorError) -> None:
        """Tells why one is gone: of one that nobody else has missed, or that a worker could not reach."""
        why: HowLost = "node lost" if went_with_node(error) else "died"
        detail = brief(last_line(error))
        if self._losses.explain(replica, why, detail):
            self._tell()
        elif replica in self._actors:
            self._losses.tell(Loss(agent, replica, why, detail))

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def _heard(call: Any) -> None:
    with contextlib.suppress(RayError):
        await call


class RunSeats:
    """The driver's hold on its run's pool: starts it, hears of its trouble, and ends it.

    Args:
        plan: the run.
        name: of the pool's actor, unique in the cluster.
    """

    def __init__(self, plan: RunPlan, name: str) -> None:
        agents = {
            entry.name: _Agent(cloudpickle.dumps(entry.seated.agent), options)
            for entry in plan.agents
            if (options := options_of(entry.seated.agent)) is not None
        }
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        remote = ray.remote(
            max_restarts=0, max_task_retries=0, num_cpus=0, max_concurrency=_CALLS, scheduling_strategy=here
        )(SeatPool)
        self.actor: ActorHandle = remote.options(name=name, namespace=NAMESPACE).remote(
            plan.import_paths, agents
        )
        self._begun: ray.ObjectRef = self.actor.begin.remote()
        self._trouble: ray.ObjectRef = self.actor.trouble.remote()
        self._losses: ray.ObjectRef | None = self.actor.losses.remote()  # None: it is dead

    def wait(self, needs: Sequence[Need], is_over: Callable[[], bool]) -> None:
        """Waits until each seat actor has its room and one of each agent is made.

        Workers that came first could leave the room in pieces; and an episode that began before its agent
        was made would charge the seat with the wait.

        Args:
            needs: of the agents, for messages.
            is_over: asked now and then; True ends the wait.

        Raises:
            RunError: the cluster has the room, but others hold it; or an agent is not made in time.
        """
        began = moved = time.monotonic()
        before = None
        while not is_over() and self.trouble() is None:
            num_unplaced, unmade = self._missing()
            if not (num_unplaced or unmade):
                return
            now = time.monotonic()
            if num_unplaced != before:
                before, moved = num_unplaced, now
            if num_unplaced and now - moved > _ROOM_S:
                asked = "; ".join(f"{need.count} x {need.each()} for {need.agent}" for need in needs)
                raise RunError(
                    f"{num_unplaced} seat actors of {asked} did not start in {_ROOM_S:g} s: other jobs hold "
                    "what the cluster has, or the machine is too busy; `cogeval resume` plays the run later"
                )
            if not num_unplaced and now - began > _MADE_S:
                raise RunError(
                    f"no seat actor has made its agent in {_MADE_S:g} s: {', '.join(unmade)}; look at what "
                    "the constructor waits for, with `cogeval check-agent`"
                )
            time.sleep(_LOOK_S)

    def _missing(self) -> tuple[int, tuple[str, ...]]:
        try:
            found: tuple[int, tuple[str, ...]] = ray.get([self._begun, self.actor.missing.remote()])[1]
        except RayError:  # it is dead: `trouble` says so
            return 1, ()
        return found

    def forget(self, worker: str) -> None:
        """A worker is lost."""
        self.actor.forget.remote(worker)

    def trouble(self) -> str | None:
        """Why the run cannot go on; None: it can."""
        if not ray.wait([self._trouble], timeout=0)[0]:
            return None
        try:
            why: str = ray.get(self._trouble)
        except RayError as error:
            what = last_line(error).split(". ")[0][:200]  # Ray goes on for a page
            return f"the pool of seat actors is lost ({what}); `cogeval resume` plays the rest"
        return why

    def losses(self) -> list[Loss]:
        """The seat actors that were lost since the last call; none of a pool that is dead."""
        if self._losses is None or not ray.wait([self._losses], timeout=0)[0]:
            return []
        try:
            told: list[Loss] = ray.get(self._losses)
        except RayError:  # `trouble` says so
            self._losses = None
            return []
        self._losses = self.actor.losses.remote()
        return told

    def close(self) -> list[Loss]:
        """Ends the seat actors and their pool; gives the losses that nobody has asked for yet."""
        calls = [self.actor.close.remote(), *([] if self._losses is None else [self._losses])]
        ray.wait(calls, num_returns=len(calls), timeout=2 * _CLOSE_S)
        last = self.losses()
        ray.kill(self.actor)
        return last


class RemotePool:
    """The seat actors of one agent, as a worker's client sees them.

    Args:
        pool: the handle of the run's `SeatPool`.
        agent: its name in the pool.
    """

    def __init__(self, pool: ActorHandle, agent: str) -> None:
        self._pool = pool
        self._agent = agent

    async def replicas(self, known: int) -> tuple[int, Mapping[str, Replica]]:
        """Waits for another version of the list than `known`."""
        version, actors = await self._pool.replicas.remote(self._agent, known)
        return version, {replica: RemoteReplica(actor) for replica, actor in actors.items()}

    async def lost(self, replica_id: str) -> bool:
        """Tells that a replica did not answer; True when it was ended for a decision that is known."""
        is_known: bool = await self._pool.lose.remote(self._agent, replica_id)
        return is_known

    async def hung(self, replica_id: str, is_known: bool) -> None:
        """Asks for the end of a replica."""
        await self._pool.lose.remote(self._agent, replica_id, is_known, is_hung=True)


def seat_clients(plan: RunPlan, worker: str, pool: ActorHandle) -> SeatClients:
    """A worker's clients of all agents that have seat actors."""
    clients = {
        entry.name: SeatClient(entry.name, worker, RemotePool(pool, entry.name), plan.game, options)
        for entry in plan.agents
        if (options := options_of(entry.seated.agent)) is not None
    }
    return SeatClients(clients)
