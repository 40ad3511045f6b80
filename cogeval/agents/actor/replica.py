"""A replica of an agent: one object that decides for the seats of many episodes.

Invariant: each question that is not cancelled is answered once, and whatever the agent does with one is
that question's fault only. Lives in one event loop; must not know processes, episodes or other replicas.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cogeval.agents.actor.jobs import Inbox, Job
from cogeval.agents.actor.messages import Answer, News, Question
from cogeval.agents.actor.options import ActorOptions
from cogeval.agents.actor.threads import Threads
from cogeval.agents.actor.wire import answered, failed
from cogeval.core.clock import Clock, MonotonicClock
from cogeval.core.game import AnyGame
from cogeval.core.record import ActionCodec
from cogeval.core.replies import DETAIL_CHARS, describe

_HELD_S = 30.0  # that an announced question may wait for its client to listen
_CLOSE_S = 2.0  # that the agent may take to put its things away
_LEAVES_S = 0.05  # in which an answer that was taken is out of the process
_UNTAKEN_S = 1.0  # that the answer of one that ran alone may wait for its client to listen
_STOP_S = 0.2  # that a cancelled coroutine may take to end


class SeatReplica:
    """One object of an agent's class, asked by many clients.

    Args:
        make: makes the object; an error of it is the failure of every decision.
        game: that the agent plays.
        options: how decisions travel.
        clock: of the timers.

    Attributes:
        failure: why the agent could not be made; None: it was.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        game: AnyGame,
        options: ActorOptions,
        clock: Clock = MonotonicClock(),  # noqa: B008 - has no state
    ) -> None:
        self.failure: str | None = None
        self._options = options
        self._clock = clock
        self._codec = ActionCodec(game)
        self._loop = asyncio.get_running_loop()
        self._inboxes: dict[str, Inbox] = {}
        self._pending: deque[Job] = deque()
        self._num_running = 0  # questions that the agent has now
        self._num_lanes = 0  # plain calls and batches under way
        self._alone: Job | None = None  # announced or running: nothing else runs
        self._leaving: Job | None = None  # ran alone, and its answer is on its way: nothing else begins
        self._threads: Threads | None = None
        self._tasks: dict[asyncio.Task[Any], Sequence[Job]] = {}  # coroutines under way
        self._agent: Any = None
        try:
            self._agent = make()
        except BaseException as error:  # noqa: BLE001 - an agent's failure costs its own seats only
            self.failure = describe(error)
        many = getattr(self._agent, "decide_many", None)
        one = getattr(self._agent, "decide", None)
        self._decide: Callable[[Any], Any] = one if many is None else many  # type: ignore[assignment]
        self._is_many = many is not None
        self._is_async = inspect.iscoroutinefunction(self._decide)

    async def submit(self, client: str, questions: tuple[Question, ...]) -> None:
        """Takes questions of a client; returns at once.

        Args:
            client: its id.
            questions: each with an id that is the client's own.
        """
        inbox = self._inbox(client)
        for question in questions:
            job = Job(inbox, question, self._clock, self._options.batch)
            if self.failure is not None:
                why = f"the agent could not be made: {self.failure}"[:DETAIL_CHARS]
                inbox.answer(job, Answer(question.id, fault="exception", detail=why, is_unmade=True))
                continue
            inbox.jobs[question.id] = job
            self._pending.append(job)
        self._start()

    async def collect(self, client: str, wait_s: float) -> News:
        """Waits for news of a client's questions, and gathers more for a moment while there is more to come.

        Args:
            client: its id.
            wait_s: longest wait, in seconds.
        """
        inbox = self._inbox(client)
        alone = self._alone
        if alone is not None and alone.inbox is inbox and alone.is_told and not alone.is_running:
            self._run(alone)  # its client has heard that it begins
        news = await inbox.take(wait_s, self._options.flush_ms / 1000)
        left = self._leaving
        if left is not None and left.inbox is inbox and left.question.id in {a.id for a in news.answers}:
            self._loop.call_later(_LEAVES_S, self._left, left)
        return news

    async def thinking(self, client: str, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Gives at once those of a client's questions that the agent thinks about now."""
        jobs = self._inbox(client).jobs
        found = [jobs[number] for number in ids if number in jobs]
        return tuple(job.question.id for job in found if job.is_running and not job.is_waiting)

    async def keeping(self, client: str) -> tuple[int, ...] | None:
        """Gives those of a client's questions whose coroutine runs at this moment; for other threads' loops.

        In a loop that turns it says nothing; in one that stands still, whom all others wait for.

        Args:
            client: its id.

        Returns:
            Empty: the coroutine is another client's; None: it is no question's.
        """
        return self.asked_in(asyncio.current_task(self._loop), client)

    def asked_in(self, task: asyncio.Task[Any] | None, client: str) -> tuple[int, ...] | None:
        """A client's questions that a task answers; empty: another's; None: it answers none."""
        jobs = None if task is None else self._tasks.get(task)
        if jobs is None:
            return None
        inbox = self._inboxes.get(client)
        return tuple(job.question.id for job in jobs if job.inbox is inbox)

    async def cancel(self, client: str, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Drops questions of a client.

        Returns:
            Those that are with the agent in a thread or in a batch and cannot be taken from it.
        """
        inbox = self._inbox(client)
        jobs = [inbox.jobs[number] for number in ids if number in inbox.jobs]
        if stopping := [task for job in jobs if (task := self._drop(job)) is not None]:
            await asyncio.wait(stopping, timeout=_STOP_S)
        self._start()
        return tuple(job.question.id for job in jobs if job.is_running)

    def forget(self, client: str) -> None:
        """A client is gone: what it asked and has not begun is dropped, and nothing is kept for it."""
        inbox = self._inboxes.pop(client, None)
        for job in list(inbox.jobs.values()) if inbox is not None else ():
            self._drop(job)
        self._start()

    async def close(self) -> None:
        """Stops what can be stopped, and lets the agent put its things away."""
        self._pending.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._threads is not None:
            self._threads.close()
        closing = getattr(self._agent, "close", None)
        if closing is not None:
            with contextlib.suppress(Exception, SystemExit, GeneratorExit):
                await asyncio.wait_for(closing(None), _CLOSE_S)

    def _inbox(self, client: str) -> Inbox:
        inbox = self._inboxes.get(client)
        if inbox is None:
            inbox = self._inboxes[client] = Inbox()
        return inbox

    def _drop(self, job: Job) -> asyncio.Task[None] | None:
        """Nobody wants this answer any more; gives the task that may still be at it."""
        job.is_dropped = True
        if job.is_running:
            if job.task is not None:
                job.task.cancel()
            return job.task
        job.inbox.leave(job)
        if job is self._alone:
            self._alone = None
        return None

    def _start(self) -> None:
        """Gives the agent what it may have now, first come, first served."""
        pending = self._pending
        while pending and self._alone is self._leaving is None:
            job = pending[0]
            if job.is_dropped:
                pending.popleft()
            elif job.question.alone:
                if self._num_running:
                    return  # nothing overtakes it, or it would wait for ever
                pending.popleft()
                self._announce(job)
            elif self._is_full:
                return
            elif self._is_many:
                self._run(*self._batch())
            else:
                self._run(pending.popleft())

    @property
    def _is_full(self) -> bool:
        """True when the agent gets no more: coroutines one by one have no limit."""
        return (self._is_many or not self._is_async) and self._num_lanes >= self._options.threads

    def _batch(self) -> list[Job]:
        """The next micro-batch."""
        batch: list[Job] = []
        most = self._options.batch
        while self._pending and len(batch) < min(most, self._pending[0].most):
            job = self._pending[0]
            if not job.is_dropped:
                if job.question.alone:
                    break
                most = min(most, job.most)
                batch.append(job)
            self._pending.popleft()
        return batch

    def _announce(self, job: Job) -> None:
        """Holds everything else back until its client has heard that this one begins."""
        self._alone = job
        job.tell(is_waiting=False)
        self._loop.call_later(_HELD_S, self._unheard, job)

    def _unheard(self, job: Job) -> None:
        """A client that does not listen must not hold the others."""
        if self._alone is job and not job.is_running:
            self._alone = None
            self._pending.append(job)
            self._start()

    def _left(self, job: Job) -> None:
        """What stops the process from now on is not taken for what ran alone before it."""
        if self._leaving is job:
            self._leaving = None
            self._start()

    def _run(self, *jobs: Job) -> None:
        self._num_running += len(jobs)
        self._num_lanes += 1
        for job in jobs:
            job.is_running = True
            if job is not self._alone:
                job.tell(is_waiting=False)
        if self._is_async:
            self._in_task(jobs)
            return
        if self._threads is None:
            self._threads = Threads(self._options.threads)
        self._threads.put(lambda: self._in_thread(jobs))

    def _argument(self, jobs: Sequence[Job]) -> Any:
        return [job.request() for job in jobs] if self._is_many else jobs[0].request()

    def _in_thread(self, jobs: Sequence[Job]) -> None:
        threads = self._threads
        assert threads is not None
        try:
            given = self._decide(self._argument(jobs))
        except BaseException as error:  # noqa: BLE001 - an agent's failure costs its own seats only
            outcome = [failed(job.question.id, error, job.timer) for job in jobs]
            threads.say(lambda: self._done(jobs, outcome, is_error=True))
            return
        if inspect.isawaitable(given):
            threads.say(lambda: self._in_task(jobs, given))
            return
        answers, is_error = self._answers(jobs, given)
        threads.say(lambda: self._done(jobs, answers, is_error=is_error))

    def _in_task(self, jobs: Sequence[Job], given: Awaitable[Any] | None = None) -> None:
        task = self._loop.create_task(self._in_loop(jobs, given))
        if not self._is_many:
            jobs[0].task = task
            if jobs[0].is_dropped:
                task.cancel()
        self._tasks[task] = jobs
        task.add_done_callback(lambda ended: self._task_done(ended, jobs))

    async def _in_loop(self, jobs: Sequence[Job], given: Awaitable[Any] | None = None) -> None:
        try:
            answers, is_error = self._answers(
                jobs, await (self._decide(self._argument(jobs)) if given is None else given)
            )
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            answers, is_error = [failed(job.question.id, error, job.timer) for job in jobs], True
        except BaseException as error:  # noqa: BLE001 - an agent's failure costs its own seats only
            answers, is_error = [failed(job.question.id, error, job.timer) for job in jobs], True
        self._done(jobs, answers, is_error=is_error)

    def _answers(self, jobs: Sequence[Job], given: Any) -> tuple[list[Answer], bool]:
        """What the agent gave, as answers; and whether it is none for a batch."""
        replies = [given]
        if self._is_many:
            replies = list(given) if isinstance(given, list | tuple) else []
            if len(replies) != len(jobs):
                got = f"{len(replies):,}" if isinstance(given, list | tuple) else type(given).__name__
                wrong = TypeError(f"decide_many: expected a list of {len(jobs):,} replies, got {got}")
                return [failed(job.question.id, wrong, job.timer) for job in jobs], True
        return [
            failed(job.question.id, reply, job.timer)
            if isinstance(reply, BaseException)
            else answered(job.question.id, reply, self._codec, job.timer)
            for job, reply in zip(jobs, replies, strict=True)
        ], False

    def _task_done(self, task: asyncio.Task[None], jobs: Sequence[Job]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled() and jobs[0].is_running:
            self._over(jobs)
            self._start()

    def _over(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.is_running = False
            job.task = None
            if job.is_dropped:
                job.inbox.leave(job)
            if job is self._alone:
                self._alone = None
        self._num_running -= len(jobs)
        self._num_lanes -= 1

    def _done(self, jobs: Sequence[Job], answers: Sequence[Answer], *, is_error: bool) -> None:
        """The agent is done with these; of a failed batch, each half is asked again."""
        self._over(jobs)
        if is_error and len(jobs) > 1:
            for job in reversed(jobs):
                job.most = (len(jobs) + 1) // 2
                if not job.is_dropped:
                    job.tell(is_waiting=True)
                    self._pending.appendleft(job)
        else:
            for job, answer in zip(jobs, answers, strict=True):
                if not job.is_dropped:
                    job.inbox.answer(job, answer)
                    if job.question.alone:
                        self._leaving = job
                        self._loop.call_later(_UNTAKEN_S, self._left, job)
        self._start()
