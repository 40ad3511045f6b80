"""The ledger's log in an object store, which cannot be appended to: numbered segments, each written whole.

Invariant: segments are read in the order of their numbers, whoever wrote them; a number is higher than all
that were there when its driver began. An entry is sent within a second, one that ends something at once; a
driver that is killed loses at most that second, which costs an attempt's count, never an episode.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from cogeval.errors import RunError
from cogeval.store.log import encode_line, read_lines
from cogeval.store.places import Place

_EVERY_S = 1.0
_MOST_BYTES = 200_000  # of a segment: it is sent again with every entry
_AT_ONCE: Final = frozenset({"void", "paused", "spent", "complete"})


class SegmentLog:
    """A log that is open for appending; only the holder of the run's lock may have one.

    Args:
        place: of the segments.
        token: of the driver, which no other has.
        every_s: longest time that an entry stays here, seconds.
    """

    def __init__(self, place: Place, token: str, every_s: float = _EVERY_S) -> None:
        self._place = place
        self._token = token
        self._every_s = every_s
        self._number = _next_number(place)
        self._segment = bytearray()
        self._num_sent = 0
        self._sent_at = 0.0
        self._guard = threading.Lock()
        self._timer: threading.Timer | None = None
        self._failure: Exception | None = None

    def append(self, line: Mapping[str, Any]) -> None:
        """Adds one event.

        Raises:
            RunError: the store does not take the log.
        """
        with self._guard:
            if self._failure is not None:
                raise self._failure
            self._segment += encode_line(line)
            wait_s = self._sent_at + self._every_s - time.monotonic()
            if line.get("event") in _AT_ONCE or wait_s <= 0:
                self._send()
            elif self._timer is None:
                self._timer = threading.Timer(wait_s, self._send_late)
                self._timer.daemon = True
                self._timer.start()

    def close(self) -> None:
        """Sends the rest.

        Raises:
            RunError: the store does not take the log.
        """
        with self._guard:
            if self._timer is not None:
                self._timer.cancel()
            self._send()

    def _send_late(self) -> None:
        with self._guard:
            self._timer = None
            try:
                self._send()
            except (RunError, OSError) as error:
                self._failure = error

    def _send(self) -> None:
        if self._num_sent == len(self._segment):
            return
        name = f"{self._number:06d}-{self._token}.jsonl"
        self._place.publish(name, bytes(self._segment), replace=True)
        self._num_sent = len(self._segment)
        self._sent_at = time.monotonic()
        if self._num_sent >= _MOST_BYTES:
            self._number += 1
            self._num_sent = 0
            self._segment.clear()


def read_segments(place: Place) -> tuple[list[dict[str, Any]], int]:
    """Reads a log.

    Args:
        place: of the segments.

    Returns:
        The events in order, and the number of damaged lines that were left out.

    Raises:
        OSError: a segment cannot be read.
    """
    events: list[dict[str, Any]] = []
    num_damaged = 0
    for _, data in place.read_each(place.names("*.jsonl")):
        if isinstance(data, OSError):
            raise data
        found, damaged = read_lines(data)
        events += found
        num_damaged += damaged
    return events, num_damaged


def _next_number(place: Place) -> int:
    last = -1
    for name in place.names("*.jsonl"):
        with contextlib.suppress(ValueError):
            last = max(last, int(name.partition("-")[0]))
    return last + 1
