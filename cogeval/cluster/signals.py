"""Ctrl-C and SIGTERM as a request to stop, which the driver looks at between two receipts.

Invariant: the first signal asks, a second one interrupts at once; where nobody looks, the first one does. The
handlers that were there before are back when the context ends.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def terminable() -> Iterator[None]:
    """A context in which SIGTERM interrupts as Ctrl-C does, instead of ending the process without a word.

    Only where nobody else has said what SIGTERM does, and in the main thread.
    """
    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_ours:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


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
