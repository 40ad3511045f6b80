"""A question inside a replica, and what its client has not heard yet.

Invariant: of "begun" and "waiting" a client hears the last, and neither after the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cogeval.agents.actor.messages import Answer, News, Question
from cogeval.core.agent import Request
from cogeval.core.clock import Clock, ThinkTimer


class Inbox:
    """What one client is to hear of its questions."""

    __slots__ = ("_answers", "_begun", "_more", "_news", "jobs")

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}  # in the replica, not answered
        self._news = asyncio.Event()
        self._more = asyncio.Event()  # clear: there may soon be more, which is worth a moment
        self._begun: dict[int, Job] = {}
        self._answers: list[Answer] = []

    def tell(self, job: Job) -> None:
        """The agent has a question, or lets it wait: which, is looked up when the client listens."""
        self._begun[job.question.id] = job
        self._news.set()
        if job.question.alone:
            self._more.set()

    def answer(self, job: Job, answer: Answer) -> None:
        """A question is answered."""
        self.leave(job)
        self._answers.append(answer)
        self._news.set()

    def leave(self, job: Job) -> None:
        """A question is not in the replica any more."""
        self.jobs.pop(job.question.id, None)
        self._begun.pop(job.question.id, None)
        if not self.jobs:
            self._more.set()

    async def take(self, wait_s: float, flush_s: float) -> News:
        """Everything that the client has not heard.

        Args:
            wait_s: longest wait for any.
            flush_s: how long to gather more, while there is more to come.
        """
        self._news.clear()
        self._more.clear()
        if not (self._begun or self._answers):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), wait_s)
        if flush_s and self.jobs and (self._begun or self._answers) and not self._is_urgent:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._more.wait(), flush_s)
        begun: list[int] = []
        waiting: list[int] = []
        for number, job in self._begun.items():
            (waiting if job.is_waiting else begun).append(number)
            job.is_told = True
        news = News(tuple(begun), tuple(waiting), tuple(self._answers))
        self._begun, self._answers = {}, []
        return news

    @property
    def _is_urgent(self) -> bool:
        return any(job.question.alone for job in self._begun.values())


class Job:
    """One question of one client."""

    __slots__ = (
        "_clock", "_loop", "inbox", "is_dropped", "is_running", "is_told", "is_waiting", "most", "question",
        "task", "timer",
    )  # fmt: skip

    def __init__(self, inbox: Inbox, question: Question, clock: Clock, most: int) -> None:
        self.inbox = inbox
        self.question = question
        self.most = most  # how many may be in its batch
        self.timer: ThinkTimer | None = None
        self.task: asyncio.Task[None] | None = None  # when it runs in the loop and can be cancelled
        self.is_dropped = False
        self.is_running = False
        self.is_waiting = True
        self.is_told = False  # its client has heard the last about it
        self._clock = clock
        self._loop = asyncio.get_running_loop()

    def request(self) -> Request:
        """What the agent is asked, now: its time runs."""
        question = self.question
        timer = self.timer = _Timer(self._clock, question.budget_s, self._wait_in_agent)
        return Request(
            question.observation,
            question.decision,
            timer,
            question.hint,
            question.budget_s,
            question.memory,
            question.seed,
        )

    def tell(self, *, is_waiting: bool) -> None:
        """Notes whether it waits, for its client."""
        self.is_waiting = is_waiting
        self.is_told = False
        if not self.is_dropped:
            self.inbox.tell(self)

    def _wait_in_agent(self, is_waiting: bool) -> None:
        self._loop.call_soon_threadsafe(self._tell_if_running, is_waiting)

    def _tell_if_running(self, is_waiting: bool) -> None:
        if self.is_running:
            self.tell(is_waiting=is_waiting)


class _Timer(ThinkTimer):
    """A timer whose waits its client hears of."""

    __slots__ = ("_tell",)

    def __init__(self, clock: Clock, budget_s: float | None, tell: Callable[[bool], None]) -> None:
        super().__init__(clock, budget_s)
        self._tell = tell

    @contextmanager
    def queued(self) -> Iterator[None]:
        """Marks a wait."""
        is_first = not self._depth
        if is_first:
            self._tell(True)
        try:
            with super().queued():
                yield
        finally:
            if is_first:
                self._tell(False)
