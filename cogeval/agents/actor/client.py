"""The episodes' side of an agent's seat actors: who is asked, and what happens when an actor dies.

Invariant: every decision gets one answer. What was in flight in an actor that died is asked again, first
beside others, then alone in an actor; only one under which two actors have died alone is to blame.
Knows replicas and their pool by protocol only.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

from cogeval.agents.actor.lanes import ALONE_DEATHS, FEW, Asked, Lane
from cogeval.agents.actor.messages import Answer, News, Pool, Replica, ReplicaLostError
from cogeval.agents.actor.options import ActorOptions
from cogeval.agents.actor.wire import AnswerReader
from cogeval.core.agent import Reply, Request
from cogeval.core.game import AnyGame
from cogeval.core.replies import describe
from cogeval.errors import HostError

_POLL_S: Final = 0.5  # longest that a replica is asked to wait for news
_ANSWER_S: Final = 0.5  # in which a replica must answer what needs no thought
_BESIDE_S: Final = 1.0  # in which it answers beside an event loop that is kept: its cores are busy
_LATE_S: Final = 0.1  # by which a wait that ended so much later shows that this process was kept itself
_LEAST_S: Final = 0.001
_BLAME: Final = (
    f"the seat actor's process ended {ALONE_DEATHS} times while it made this decision and no other"
)


class SeatClient:
    """Asks the replicas of one agent; lives in the event loop of the episodes.

    Args:
        agent: its name in the pool of agents.
        client_id: unique among the clients of the replicas.
        pool: of the replicas.
        game: that is played.
        options: how decisions travel.
    """

    def __init__(self, agent: str, client_id: str, pool: Pool, game: AnyGame, options: ActorOptions) -> None:
        self._agent = agent
        self._client_id = client_id
        self._pool = pool
        self._linger_s = options.linger_ms / 1000
        self._reader = AnswerReader(game)
        self._lanes: dict[str, Lane] = {}  # that may be asked
        self._gone: set[str] = set()
        self._outbox: list[Asked] = []
        self._open: dict[int, Asked] = {}
        self._num_asked = 0
        self._sending: asyncio.TimerHandle | None = None
        self._watching: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._end: str | None = None  # why nobody is asked any more

    async def ask(self, request: Request) -> Reply:
        """Lets one decision be made.

        Args:
            request: its timer stands still until the agent has it.

        Raises:
            RecordedFaultError: the agent failed.
            HostError: there are no replicas any more.
        """
        if self._end is not None:
            raise HostError(self._end)
        if self._watching is None:
            self._watching = self._task(self._watch())
        self._num_asked += 1
        asked = self._open[self._num_asked] = Asked(self._num_asked, request)
        self._outbox.append(asked)
        self._send_soon()
        try:
            return self._reader.reply(await asked.answer)
        except asyncio.CancelledError:
            self._withdraw(asked)
            raise
        finally:
            asked.go()
            if asked.alarm is not None:
                asked.alarm.cancel()
            del self._open[asked.id]

    async def close(self) -> None:
        """Stops listening."""
        self._finish(f"nobody asks the seat actors of {self._agent} any more")
        if self._sending is not None:
            self._sending.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _finish(self, why: str) -> None:
        """Nobody is asked any more: everybody who waits is told."""
        self._end = self._end or why
        for asked in self._open.values():
            if not asked.answer.done():
                asked.answer.set_exception(HostError(self._end))
        self._outbox.clear()

    async def _watch(self) -> None:
        """Keeps up with the list of replicas."""
        version = -1
        try:
            while True:
                version, replicas = await self._pool.replicas(version)
                self._see(replicas)
        except Exception as error:  # noqa: BLE001 - whatever it is: without its pool nobody can be asked
            self._finish(f"the seat actors of {self._agent} cannot be reached: {describe(error)}")

    def _see(self, replicas: Mapping[str, Replica]) -> None:
        self._gone &= replicas.keys()
        for replica_id in self._lanes.keys() - replicas.keys():
            del self._lanes[replica_id]  # what is in flight there is collected, or lost, by its own task
        for replica_id, replica in replicas.items():
            if replica_id not in self._lanes and replica_id not in self._gone:
                self._lanes[replica_id] = Lane(replica_id, replica)
        self._send_soon()

    def _send_soon(self) -> None:
        if self._sending is None and self._outbox and self._lanes:
            self._sending = asyncio.get_running_loop().call_later(self._linger_s, self._send)

    def _send(self) -> None:
        """Gives each decision to the replica that has the fewest."""
        self._sending = None
        if not self._lanes:
            return
        outbox, self._outbox = self._outbox, []
        loads = [(len(lane.in_flight), name) for name, lane in self._lanes.items()]
        heapq.heapify(loads)
        groups: dict[str, list[Asked]] = {}
        for asked in outbox:
            if asked.answer.done():
                continue
            load, name = loads[0]
            heapq.heapreplace(loads, (load + 1, name))
            lane = asked.lane = self._lanes[name]
            lane.in_flight[asked.id] = asked
            groups.setdefault(name, []).append(asked)
        for name, group in groups.items():
            lane = self._lanes[name]
            submit = self._task(self._submit(lane, group))
            lane.submits.add(submit)
            submit.add_done_callback(lane.submits.discard)
            if lane.collecting is None:
                lane.collecting = self._task(self._collect(lane))

    async def _submit(self, lane: Lane, group: list[Asked]) -> None:
        try:
            await lane.replica.submit(self._client_id, tuple(asked.question() for asked in group))
        except ReplicaLostError:
            await self._lose(lane)
        except Exception as error:  # noqa: BLE001 - an observation that cannot travel is no fault of a seat
            why = f"decisions cannot be sent to the seat actors of {self._agent}: {describe(error)}"
            for asked in group:
                lane.in_flight.pop(asked.id, None)
                if not asked.answer.done():
                    asked.answer.set_exception(HostError(why))

    async def _collect(self, lane: Lane) -> None:
        """Listens to a replica while something is in flight there."""
        while lane.in_flight and not lane.is_lost:
            silence_s = lane.silence_s()
            limit_s = None if silence_s is None else _POLL_S + silence_s + _ANSWER_S
            try:
                news = await asyncio.wait_for(lane.replica.collect(self._client_id, _POLL_S), limit_s)
            except TimeoutError:  # its event loop has stood still for longer than any decision may take
                keepers = await self._keepers(lane)
                self._charge(keepers or ())
                await self._kill(lane, is_known=keepers is not None)
            except Exception:  # noqa: BLE001 - whatever it is: what it was to bring is lost
                await self._lose(lane)
            else:
                self._hear(lane, news)
        lane.collecting = None

    def _hear(self, lane: Lane, news: News) -> None:
        in_flight = lane.in_flight
        for number in news.begun:
            if number in in_flight:
                self._begin(in_flight[number])
        for number in news.waiting:
            if number in in_flight:
                in_flight[number].pause()
        for answer in news.answers:
            asked = in_flight.pop(answer.id, None)
            if asked is not None:
                asked.settle(answer)

    def _begin(self, asked: Asked) -> None:
        asked.begin()
        self._set_alarm(asked)

    def _set_alarm(self, asked: Asked) -> None:
        if asked.alarm is not None:
            asked.alarm.cancel()
        left_s = asked.request.timer.remaining_s()
        if left_s is not None:  # before whoever asks looks at the time: what counts is said here
            left_s = max(left_s - _LEAST_S, 0.0)
            asked.alarm = asyncio.get_running_loop().call_later(left_s, self._due, asked)

    def _due(self, asked: Asked) -> None:
        """A decision's time is over, unless there was a wait in it."""
        lane = asked.lane
        if lane is None or asked.is_waiting or asked.id not in lane.in_flight:
            return
        left_s = asked.request.timer.remaining_s()
        if left_s is not None and left_s > 2 * _LEAST_S:
            self._set_alarm(asked)
            return
        asked.hold()
        lane.due.append(asked)
        if lane.listening is None:
            lane.listening = self._task(self._listen(lane))

    async def _listen(self, lane: Lane) -> None:
        """Charges those whose time is over and that the agent still has.

        The answer of one may be there and not have left when another keeps the event loop or stops the whole
        process. So while a replica is silent only who does that is charged, or who is alone there.
        """
        time = asyncio.get_running_loop().time
        while lane.due and not lane.is_lost:
            due, lane.due = lane.due, []
            asked_at = time()
            call = lane.replica.thinking(self._client_id, tuple(asked.id for asked in due))
            try:
                unanswered = await asyncio.wait_for(call, _ANSWER_S)
            except TimeoutError:
                if time() - asked_at > _ANSWER_S + _LATE_S:
                    lane.due += due
                    continue
                await self._hurry(lane, due)
            except Exception:  # noqa: BLE001 - whatever it is: who collects there notices a death
                break
            else:
                held = [lane.in_flight[number] for number in unanswered if number in lane.in_flight]
                self._charge(asked for asked in held if asked.is_held)
        lane.listening = None

    async def _hurry(self, lane: Lane, due: list[Asked]) -> None:
        """A replica is silent while the time of some is over: ends it, unless who keeps it is in its time."""
        keepers = await self._keepers(lane)
        suspects = due if keepers is None else keepers
        late = [asked for asked in suspects if asked.is_held and asked.id in lane.in_flight]
        if keepers is None:
            late = [asked for asked in late if asked.is_alone]
        elif not late:  # or it is another client's, whose care it is; who collects does not wait for ever
            lane.due += due
            return
        self._charge(late)
        await self._kill(lane, is_known=bool(late))

    async def _keepers(self, lane: Lane) -> list[Asked] | None:
        """Who keeps a silent replica's event loop; empty: none of ours; None: nobody knows."""
        try:
            numbers = await asyncio.wait_for(lane.replica.keeping(self._client_id), _BESIDE_S)
        except Exception:  # noqa: BLE001 - something holds the whole process, or it is gone
            return None
        if numbers is None:
            return None
        return [lane.in_flight[number] for number in numbers if number in lane.in_flight]

    def _charge(self, late: Iterable[Asked]) -> None:
        for asked in late:
            asked.charge()
            self._withdraw(asked)

    async def _lose(self, lane: Lane) -> None:
        """A replica's process is gone: what was in flight there is asked again."""
        self._stop_asking(lane)
        is_known = lane.is_killed
        with contextlib.suppress(Exception):  # a pool that is gone is noticed by who watches it
            is_known = await self._pool.lost(lane.id) or is_known
        if not lane.is_lost:
            self._bury(lane, counts=not is_known)

    async def _kill(self, lane: Lane, *, is_known: bool) -> None:
        """A replica hangs: its pool ends it.

        Args:
            lane: the replica's.
            is_known: the decision that hangs is charged, or another client's: none of those in flight.
        """
        if lane.is_lost or lane.is_killed:
            return
        lane.is_killed = is_known
        self._stop_asking(lane)
        with contextlib.suppress(Exception):
            await self._pool.hung(lane.id, is_known)
        if not lane.is_lost:
            self._bury(lane, counts=not is_known)

    def _stop_asking(self, lane: Lane) -> None:
        self._gone.add(lane.id)
        if self._lanes.get(lane.id) is lane:
            del self._lanes[lane.id]

    def _bury(self, lane: Lane, *, counts: bool) -> None:
        lane.is_lost = True
        is_few = sum(not asked.is_alone for asked in lane.in_flight.values()) <= FEW
        for asked in lane.in_flight.values():
            if asked.survive(counts=counts, is_suspect=is_few):
                self._outbox.append(asked)
            else:
                asked.settle(Answer(asked.id, fault="exception", detail=_BLAME))
        lane.in_flight.clear()
        if lane.collecting is not None and lane.collecting is not asyncio.current_task():
            lane.collecting.cancel()
        self._send_soon()

    def _withdraw(self, asked: Asked) -> None:
        """Nobody waits for it any more."""
        lane = asked.lane
        if lane is None or lane.in_flight.pop(asked.id, None) is None or self._end is not None:
            return
        is_first = not lane.withdrawn
        lane.withdrawn[asked.id] = asked
        if is_first:
            self._task(self._cancel(lane))

    async def _cancel(self, lane: Lane) -> None:
        """Has a replica drop decisions; one that still holds one when its time is over hangs."""
        await asyncio.sleep(self._linger_s)
        dropped, lane.withdrawn = lane.withdrawn, {}
        while dropped and not lane.is_lost:
            held = await self._held(lane, dropped)
            left_s = {number: dropped[number].request.timer.remaining_s() for number in held}
            rest = {number: left for number, left in left_s.items() if left is not None}
            if rest and min(rest.values()) <= 0:
                await self._kill(lane, is_known=True)
                return
            dropped = {number: dropped[number] for number in rest}
            if rest:
                await asyncio.sleep(max(min(rest.values()), _LEAST_S))

    async def _held(self, lane: Lane, dropped: Mapping[int, Asked]) -> list[int]:
        """Which of these a replica cannot let go of."""
        try:
            if lane.submits:  # or it would drop what it has not got yet
                await asyncio.wait(lane.submits, timeout=_ANSWER_S)
            call = lane.replica.cancel(self._client_id, tuple(dropped))
            return [number for number in await asyncio.wait_for(call, _ANSWER_S) if number in dropped]
        except TimeoutError:
            return [number for number, asked in dropped.items() if asked.is_begun]
        except Exception:  # noqa: BLE001 - whatever it is: who collects there notices a death
            return []


class SeatClients:
    """The clients of all agents that decide in seat actors: the `RemoteAgents` of an episode actor.

    Args:
        clients: agent, as its pool names it -> its client.
    """

    def __init__(self, clients: Mapping[str, SeatClient]) -> None:
        self._clients = clients

    async def ask(self, agent: str, request: Request) -> Reply:
        """Lets one decision be made by one of the agent's replicas."""
        return await self._clients[agent].ask(request)

    async def close(self) -> None:
        """Stops listening."""
        for client in self._clients.values():
            await client.close()
