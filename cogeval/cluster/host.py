"""A worker's inside: plays many episodes at once, writes their rows, and answers with receipts.

Invariant: an episode is reported finished only when its rows are in the worker's streams, and a shard
only when its files are complete on disk. Imports no ray: the actor is a thin shell around this.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterable

from cogeval.cluster.chronicle import log_path
from cogeval.cluster.logs import RunLog
from cogeval.cluster.meters import Meter, NoSink, Sink
from cogeval.cluster.plan import Receipt, RunPlan
from cogeval.cluster.tally import Counter
from cogeval.core.agent import Resources, bound, released
from cogeval.core.episode import play
from cogeval.core.quota import BudgetSpentError
from cogeval.core.record import ActionCodec, Episode
from cogeval.errors import RunError
from cogeval.schedule.designs import Slot
from cogeval.store.shards import SealedShard
from cogeval.store.spool import spool_of
from cogeval.store.write import ShardWriter

_FLUSH_EPISODES = 256  # deterministic episodes are written in groups: a flush has a price of its own
_BREATH_S = 0.02  # longest that playing keeps the event loop from answering the driver


class EpisodeHost:
    """Plays the episodes that it is given.

    Args:
        plan: the run.
        worker: this worker's id, unique in the run for ever.
        resources: what this process shares among its agents.
        sink: where its numbers go.
    """

    def __init__(
        self,
        plan: RunPlan,
        worker: str,
        resources: Resources = Resources(),  # noqa: B008 - frozen value
        sink: Sink = NoSink(),  # noqa: B008 - holds nothing
    ) -> None:
        self._plan = plan
        self._worker = worker
        self._codec = ActionCodec(plan.game)
        self._seated = [bound(agent.seated, resources) for agent in plan.agents]
        self._queue: deque[int] = deque()
        self._lanes: set[asyncio.Task[None]] = set()
        self._seals: set[asyncio.Task[None]] = set()
        self._spool = spool_of(plan.run_path)
        self._writer: ShardWriter | None = None
        self._writer_opened = 0.0
        self._num_shards = 0
        self._unflushed: list[int] = []
        self._finished: list[int] = []
        self._failed: list[tuple[int, str]] = []
        self._returned: list[int] = []
        self._sealed: list[SealedShard] = []
        self._counter = Counter(len(plan.agents))
        self._meter = Meter(self._seated, sink, worker)
        self._log = RunLog(log_path(plan.run_path, self._spool, worker), plan.run_id, worker)
        self._fatal: str | None = None
        self._draining = False
        self._paused = False  # the run's money is spent
        self._news = asyncio.Event()  # set when a report should not wait any longer
        self._breathed = time.monotonic()

    def give(self, indexes: Iterable[int]) -> None:
        """Adds episodes to the queue and starts as many lanes as there is use for."""
        if self._draining or self._paused:  # calls need not arrive in the order in which they were made
            self._returned += indexes
            return
        self._queue.extend(indexes)
        for _ in range(min(self._plan.episodes_in_flight - len(self._lanes), len(self._queue))):
            lane = asyncio.ensure_future(self._lane())
            self._lanes.add(lane)
            lane.add_done_callback(self._lane_done)

    async def report(self, wait_s: float) -> Receipt:
        """Gives what happened since the last receipt.

        Args:
            wait_s: longest wait for news, in seconds; shorter when the work ran out.
        """
        if self._lanes or self._seals:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), wait_s)
        elif not (self._finished or self._unflushed or self._failed or self._sealed or self._fatal):
            await asyncio.sleep(min(wait_s, 0.05))  # idle: the driver asks again
        self._guarded_flush()
        return self._receipt()

    async def seal(self) -> None:
        """Seals the open shard; a receipt will name it."""
        self._guarded_flush()
        self._roll()

    async def drain(self, finish_s: float = 0.0) -> Receipt:
        """Drops what is not finished, seals what is, and gives the last receipt.

        Args:
            finish_s: how long episodes that have begun may go on, in seconds.
        """
        self._draining = True
        self._return_queue()
        if finish_s > 0 and self._lanes:
            await asyncio.wait(self._lanes, timeout=finish_s)
        for lane in list(self._lanes):
            lane.cancel()
        await asyncio.gather(*self._lanes, return_exceptions=True)
        await self.seal()
        await asyncio.gather(*self._seals)
        for seated in self._seated:
            await released(seated.agent)
        self._log.close()
        self._news.set()
        return self._receipt()

    async def _lane(self) -> None:
        """Plays episodes from the queue until it is empty."""
        while self._queue and self._fatal is None:
            index = self._queue.popleft()
            slot = self._plan.schedule[index]
            try:
                episode = await self._play(slot)
            except asyncio.CancelledError:
                self._returned.append(index)
                raise
            except BudgetSpentError:
                self._returned.append(index)
                self._pause()
            except RunError as error:  # no other episode would fare better
                self._stop_for(error)
                return
            except Exception as error:  # noqa: BLE001 - whatever failed in here is ours: this episode is retried
                what = "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
                self._failed.append((index, f"episode {index}, seed {slot.seed}: {what}"))
            else:
                self._keep(slot, episode)
            if time.monotonic() - self._breathed > _BREATH_S:
                await asyncio.sleep(0)
                self._breathed = time.monotonic()

    async def _play(self, slot: Slot) -> Episode:
        plan = self._plan
        return await play(
            plan.game,
            slot.seed,
            [self._seated[i] for i in slot.lineup],
            fallback=plan.fallback,
            deadlines=plan.deadlines,
            replicate=slot.replicate,
            codec=self._codec,
        )

    def _return_queue(self) -> None:
        self._returned += self._queue
        self._queue.clear()

    def _pause(self) -> None:
        """No episode begins any more; those that need no more money are played to their end."""
        self._paused = True
        self._return_queue()
        self._news.set()

    def _stop_for(self, error: RunError | OSError) -> None:
        """The run cannot go on: the next receipt says why, and comes now."""
        self._blame(str(error) if isinstance(error, RunError) else f"a worker cannot write its rows: {error}")
        self._news.set()

    def _blame(self, why: str) -> None:
        """Keeps the first reason: what fails after it, such as a closed shard, is only its consequence."""
        if self._fatal is None:
            self._fatal = why

    def _lane_done(self, lane: asyncio.Task[None]) -> None:
        self._lanes.discard(lane)
        if not lane.cancelled() and (error := lane.exception()) is not None:
            self._blame(f"{type(error).__name__}: {error}")
        if not self._lanes:
            self._news.set()

    def _keep(self, slot: Slot, episode: Episode) -> None:
        """Writes an episode's rows and counts it."""
        try:
            self._open_writer().add(
                index=slot.index,
                episode_id=self._plan.episode_id(slot),
                block=slot.block,
                lineup=slot.lineup,
                episode=episode,
            )
            self._unflushed.append(slot.index)
            self._counter.add(slot.lineup, episode)
            faulty = [a for a in episode.attempts if a.fault is not None]
            self._meter.add(slot.lineup, episode, faulty)
            if faulty:
                names = [self._seated[i].name for i in slot.lineup]
                self._log.faults(slot, self._plan.episode_id(slot), names, faulty)
            # What may have cost money or time is on disk before anything else happens, and what carries
            # replies is not kept in memory.
            is_costly = not self._plan.deterministic or any(a.text for a in episode.attempts)
            if is_costly or len(self._unflushed) >= _FLUSH_EPISODES:
                self._flush()
        except (RunError, OSError) as error:
            self._stop_for(error)

    def _open_writer(self) -> ShardWriter:
        if self._writer is None:
            self._writer = ShardWriter(
                self._plan.run_path,
                f"{self._worker}-{self._num_shards:04d}",
                agent_names=[agent.name for agent in self._plan.agents],
                worker=self._worker,
                spool=self._spool,
            )
            self._num_shards += 1
            self._writer_opened = time.monotonic()
        return self._writer

    def _flush(self) -> None:
        if self._writer is None or not self._unflushed:
            return
        self._writer.flush()
        self._finished += self._unflushed
        self._unflushed = []
        is_old = time.monotonic() - self._writer_opened >= self._plan.seal_every_s
        if is_old or self._writer.num_bytes >= self._plan.shard_bytes:
            self._roll()

    def _guarded_flush(self) -> None:
        try:
            self._flush()
        except (RunError, OSError) as error:
            self._stop_for(error)

    def _roll(self) -> None:
        """Seals the open shard in a thread; the next episode opens another."""
        if self._writer is None or self._fatal is not None:
            return
        task = asyncio.ensure_future(self._seal(self._writer))
        self._writer = None
        self._seals.add(task)
        task.add_done_callback(self._seals.discard)

    async def _seal(self, writer: ShardWriter) -> None:
        try:
            shard = await asyncio.to_thread(writer.seal)
            self._sealed.append(shard)  # not in one expression: a receipt replaces the list meanwhile
        except (RunError, OSError) as error:
            self._stop_for(error)
        self._news.set()

    def _receipt(self) -> Receipt:
        self._meter.publish(len(self._lanes))
        receipt = Receipt(
            self._worker,
            tuple(self._finished),
            tuple(self._failed),
            tuple(self._returned),
            tuple(self._sealed),
            self._counter.take(),
            self._fatal,
            self._paused,
        )
        self._finished, self._failed, self._returned, self._sealed = [], [], [], []
        return receipt
