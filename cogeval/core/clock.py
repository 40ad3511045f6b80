"""Time inside an episode: a clock to inject, and the timer that tells thinking from waiting.

Invariant: only think time is charged to a seat; a wait inside `ThinkTimer.queued` moves the deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock and its sleep; tests inject their own."""

    def now(self) -> float:
        """Seconds since an arbitrary start; never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Waits."""


class MonotonicClock:
    """The clock of this host."""

    now = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)


class ThinkTimer:
    """Measures one attempt: think time runs except inside `queued`.

    Args:
        clock: where the time comes from.
        budget_s: think time allowed, in seconds; None: unlimited.
    """

    __slots__ = ("_budget_s", "_clock", "_depth", "_queued_at", "_queued_s", "_started")

    def __init__(self, clock: Clock, budget_s: float | None) -> None:
        self._clock = clock
        self._budget_s = budget_s
        self._started = clock.now()
        self._queued_s = 0.0
        self._queued_at: float | None = None
        self._depth = 0  # waits may overlap: a queue inside a start-up

    @property
    def queue_s(self) -> float:
        """Seconds spent waiting so far, the current wait included."""
        if self._queued_at is None:
            return self._queued_s
        return self._queued_s + self._clock.now() - self._queued_at

    @property
    def think_s(self) -> float:
        """Seconds spent thinking so far."""
        return self._clock.now() - self._started - self.queue_s

    def remaining_s(self) -> float | None:
        """Think time left (negative when overdrawn); None: unlimited."""
        return None if self._budget_s is None else self._budget_s - self.think_s

    def forgive(self) -> None:
        """Counts all thinking so far as waiting: it was lost through no fault of the seat."""
        self._queued_s += self.think_s

    def charge(self, seconds: float) -> None:
        """Counts so much of what was forgiven as thinking after all."""
        self._queued_s -= seconds

    @contextmanager
    def queued(self) -> Iterator[None]:
        """Marks a wait (rate limit, queue, start-up) that is not charged to the seat."""
        if self._queued_at is None:
            self._queued_at = self._clock.now()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._queued_s += self._clock.now() - self._queued_at
                self._queued_at = None
