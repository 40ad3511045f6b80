"""Ctrl-C and SIGTERM as a request to stop, which the driver looks at between two receipts.

Invariant: the first signal asks, a second one interrupts at once; the handlers that were there
before are back when the context ends.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """A context in which signals set `requested`; outside the main thread it only holds the flag."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        self.take_over()
        return self

    def take_over(self) -> None:
        """Installs the handlers, again after a library has installed its own."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                found = signal.signal(number, self._handle)
                if found != self._handle:
                    self._before.setdefault(number, found)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
