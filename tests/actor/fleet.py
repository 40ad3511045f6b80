"""Replicas in processes that can die, and their pool, all of them fakes in one event loop.

What an agent here does with a decision is written in its observation: `Deed`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass

from virtual import LoopClock

from cogeval.agents.actor.messages import ReplicaLostError, packed, unpacked
from cogeval.agents.actor.options import ActorOptions
from cogeval.agents.actor.replica import SeatReplica
from cogeval.core.agent import Reply, Request
from cogeval.core.clock import ThinkTimer
from cogeval.games import make_game

GAME = make_game("cogz")


@dataclass(frozen=True)
class Deed:
    """What comes of one decision."""

    label: int
    takes_s: float = 0.1
    kills: bool = False
    raises: bool = False
    stubborn: bool = False  # cannot be cancelled
    stalls: bool = False  # keeps the whole process from doing anything else, for ever
    blocks: bool = False  # keeps the event loop of its process, for ever


class Doer:
    """Does what it is told, one by one."""

    def __init__(self, process):
        self.process = process

    async def decide(self, request):
        return (await self.doing([request]))[0]

    async def doing(self, requests):
        deeds = [request.observation for request in requests]
        for deed in deeds:
            self.process.running[deed.label] += 1
            self.process.fleet.begun[deed.label] += 1
        try:
            await self.sleep(max(deed.takes_s for deed in deeds), stubborn=any(d.stubborn for d in deeds))
            if any(deed.kills for deed in deeds):
                self.process.die()
                await asyncio.Event().wait()
            if any(deed.stalls or deed.blocks for deed in deeds):
                if any(deed.blocks for deed in deeds):
                    self.process.keeper = asyncio.current_task()
                self.process.stalled.set()
                await asyncio.Event().wait()
            if any(deed.raises for deed in deeds):
                raise ValueError("told to")
            return [Reply(payload={"label": deed.label}, memory=request.memory + b"+")
                    for deed, request in zip(deeds, requests, strict=True)]  # fmt: skip
        finally:
            for deed in deeds:
                self.process.running[deed.label] -= 1

    async def sleep(self, seconds, *, stubborn):
        end = asyncio.get_running_loop().time() + seconds
        while (left := end - asyncio.get_running_loop().time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                if not stubborn or self.process.is_dead:
                    raise


class ManyDoer(Doer):
    """Does what it is told, in batches."""

    async def decide_many(self, requests):
        return await self.doing(requests)


class Process:
    """A process with a replica in it."""

    def __init__(self, fleet, made, options):
        self.fleet = fleet
        self.running = Counter()
        self.dead = asyncio.Event()
        self.stalled = asyncio.Event()
        self.keeper = None  # the coroutine that keeps the event loop, when that is what stalls it
        self.replica = SeatReplica(lambda: made(self), GAME, options, LoopClock())

    @property
    def is_dead(self):
        return self.dead.is_set()

    def die(self):
        """Ends it at once, and notes what ran in it."""
        if not self.is_dead:
            running = [label for label, number in self.running.items() if number]
            if len(running) == 1:
                self.fleet.killed_alone[running[0]] += 1
            self.dead.set()
            self.fleet.closing.append(asyncio.ensure_future(self.replica.close()))
            self.fleet.replace(self)

    async def submit(self, client, questions):
        await self._alive(self.replica.submit(client, questions))

    async def collect(self, client, wait_s):
        return unpacked(packed(await self._alive(self.replica.collect(client, wait_s))))

    async def thinking(self, client, ids):
        return await self._alive(self.replica.thinking(client, ids))

    async def keeping(self, client):
        if self.keeper is None:
            return await self._alive(self.replica.keeping(client))
        return self.replica.asked_in(self.keeper, client)

    async def cancel(self, client, ids):
        return await self._alive(self.replica.cancel(client, ids))

    async def _alive(self, call):
        """The call's result, unless the process dies before it has left."""
        call, dying = asyncio.ensure_future(call), asyncio.ensure_future(self.dead.wait())
        try:
            await asyncio.wait({call, dying}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0.001)  # on its way
            if self.stalled.is_set():  # nothing leaves it any more
                await self.dead.wait()
            if self.is_dead:
                raise ReplicaLostError("dead")
            return call.result()
        finally:
            call.cancel()
            dying.cancel()


class Fleet:
    """A pool of such processes; each dead one is replaced after a moment."""

    def __init__(self, replicas, made=Doer, **options):
        self.begun = Counter()  # label -> how often an agent got it
        self.killed_alone = Counter()  # label -> processes that died while they ran nothing else
        self.num_hung = 0
        self.known = set()  # names of processes that were ended for a decision that is known
        self.closing = []
        self._made = made
        self._options = ActorOptions(**options)
        self._names = itertools.count()
        self._changed = asyncio.Event()
        self._version = 0
        self.processes = {}
        for _ in range(replicas):
            self.add()

    def add(self):
        self.processes[f"r{next(self._names)}"] = Process(self, self._made, self._options)
        self._news()

    def replace(self, process):
        self.processes = {name: each for name, each in self.processes.items() if each is not process}
        self._news()
        asyncio.get_running_loop().call_later(0.05, self.add)

    def _news(self):
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def replicas(self, known):
        while self._version == known:
            await self._changed.wait()
        return self._version, dict(self.processes)

    async def lost(self, replica_id):
        assert replica_id not in self.processes or self.processes[replica_id].is_dead
        return replica_id in self.known

    async def hung(self, replica_id, is_known):
        self.num_hung += 1
        if replica_id in self.processes:
            self.known |= {replica_id} if is_known else set()
            self.processes[replica_id].die()


def request(deed, budget_s=1000.0, memory=b""):
    return Request(deed, None, ThinkTimer(LoopClock(), budget_s), None, budget_s, memory, 7)
