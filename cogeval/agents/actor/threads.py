"""Threads that call plain functions for an event loop, in the order in which they were asked to.

Invariant: the threads are daemons and never joined: a call that hangs keeps neither the loop nor the
process. What they say reaches the loop in groups, in the order in which it was said.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable

Work = Callable[[], None]


class Threads:
    """A fixed number of threads beside one event loop.

    Args:
        number: of threads.
    """

    def __init__(self, number: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._said: deque[Work] = deque()
        self._is_heard = True  # the loop knows that something was said
        self._lock = threading.Lock()
        self._number = number
        for _ in range(number):
            threading.Thread(target=self._run, name="cogeval-replica", daemon=True).start()

    def put(self, work: Work) -> None:
        """Has a thread do this when those before it have begun; it must not raise."""
        self._work.put(work)

    def say(self, heard: Work) -> None:
        """Has the loop do this; called in one of the threads."""
        with self._lock:
            self._said.append(heard)
            if not self._is_heard:
                return
            self._is_heard = False
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._hear)

    def close(self) -> None:
        """Lets each thread end after what it does now."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._work.get_nowait()
        for _ in range(self._number):
            self._work.put(None)

    def _hear(self) -> None:
        with self._lock:
            said, self._said = self._said, deque()
            self._is_heard = True
        for heard in said:
            heard()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
