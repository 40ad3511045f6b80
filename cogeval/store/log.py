"""The ledger's log: one JSON line per event, appended before the event takes effect.

Invariant: every line carries a checksum; a line torn by a crash or damaged later is not an event. A
line survives the death of its process, not a power cut in the same second: that costs an attempt's
count, never an episode. Must not know what the events mean.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from cogeval.store.files import naming_full_disk, write_all

_CRC = ',"crc":"'


class Log(Protocol):
    """A log that is open for appending; only the holder of the run's lock may have one."""

    def append(self, line: Mapping[str, Any]) -> None:
        """Writes one event: JSON values, at least one member."""

    def close(self) -> None:
        """Writes what is not written yet and closes the log."""


class AppendLog:
    """A file that is open for appending; only the holder of the run's lock may have one.

    Args:
        path: its file, made when it is missing.
    """

    __slots__ = ("_fd", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        _cut_torn_end(self._fd, path)

    def append(self, line: Mapping[str, Any]) -> None:
        """Writes one event.

        Args:
            line: JSON values, at least one member.

        Raises:
            StoreFull: there is no room; no half line is left.
        """
        size = os.fstat(self._fd).st_size
        try:
            with naming_full_disk(self._path):
                write_all(self._fd, encode_line(line))
        except BaseException:
            os.ftruncate(self._fd, size)
            raise

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


def read_log(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Reads a log.

    Args:
        path: its file; a missing one is empty.

    Returns:
        The events in order, and the number of damaged lines that were left out (a torn last line,
        which a crash explains, is not counted).
    """
    if not path.exists():
        return [], 0
    return read_lines(path.read_bytes())


def read_lines(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Reads lines; see `read_log`."""
    events, num_damaged = [], 0
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        event = _decode(line)
        if event is None:
            num_damaged += 1
        else:
            events.append(event)
    return events, num_damaged


def encode_line(line: Mapping[str, Any]) -> bytes:
    """One line of the log, with its checksum and its end."""
    body = json.dumps(dict(line), separators=(",", ":"))[:-1]
    return f'{body}{_CRC}{zlib.crc32(body.encode()):08x}"}}\n'.encode()


def _decode(line: bytes) -> dict[str, Any] | None:
    body, found, _ = line.rpartition(_CRC.encode())
    if not found or line != body + f'{_CRC}{zlib.crc32(body):08x}"}}'.encode():
        return None
    event: dict[str, Any] = json.loads(body + b"}")
    return event


def _cut_torn_end(fd: int, path: Path) -> None:
    """Removes what a crash left of a last line, so that the next one does not run into it."""
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end < len(data):
        os.ftruncate(fd, end)
