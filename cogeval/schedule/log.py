"""The ledger's log: what must survive a driver that dies between two shard records.

Invariant: an entry is written before its command is obeyed, so that what the log does not name was
never sent. Pure: lines in, lines out; the store writes them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from cogeval.core.ranges import from_ranges, to_ranges
from cogeval.schedule.messages import Command, Dispatch, Event, Failed, Returned, Void, WorkerLost

__all__ = ["PARDON", "History", "attempts_from_log", "log_entry"]

PARDON: Final[Mapping[str, Any]] = MappingProxyType({"event": "pardon"})
"""The entry after which no episode is void, and no earlier attempt counts."""


class History(msgspec.Struct, frozen=True):
    """What earlier sessions of a run came to, beside their shard records."""

    attempts: Mapping[int, int]  # per index: how often it failed, or was lost with its worker
    mishaps: Mapping[int, int]  # per index: how often it was lost with a node or the driver
    void: Mapping[int, str]  # index given up: why
    num_unreadable: int  # entries that are none of ours


def log_entry(message: Event | Command) -> dict[str, Any] | None:
    """The log's entry for an event or a command; None when it leaves no trace there.

    Args:
        message: anything that the ledger hears or says.

    Returns:
        A JSON object with ``event`` and what it concerns.
    """
    match message:
        case Dispatch(worker, indexes, alone):
            return {"event": "dispatch", "worker": worker, "indexes": _as_json(indexes), "alone": alone}
        case Returned(worker, indexes):
            return {"event": "returned", "worker": worker, "indexes": _as_json(indexes)}
        case Failed(worker, index, reason):
            return {"event": "failed", "worker": worker, "index": index, "reason": reason}
        case WorkerLost(worker, is_mishap):
            return {"event": "lost", "worker": worker, **({"mishap": True} if is_mishap else {})}
        case Void(index, reason):
            return {"event": "void", "index": index, "reason": reason}
        case _:
            return None


def attempts_from_log(entries: Iterable[Mapping[str, Any]], *, recorded: Iterable[int] = ()) -> History:
    """Rebuilds attempts and voids when a run is resumed.

    A dispatch of which the log says no more than that it was sent is a mishap: its driver died, or its shard
    was damaged later. What was recorded is not sent again; what a worker gave back unplayed does not count.

    Args:
        entries: as `log_entry` made them, oldest first.
        recorded: indexes that shard records hold; left out of the result.

    Returns:
        The history.
    """
    tally, void = _Tally(), {}
    num_unreadable = 0
    for entry in entries:
        try:
            event = entry["event"]
            if event == "void":
                void[int(entry["index"])] = str(entry["reason"])
            elif event == "pardon":  # a person wants what was given up tried again, as if for the first time
                void.clear()
                tally = _Tally()
            elif event in ("dispatch", "returned"):
                tally.sent(str(entry["worker"]), from_ranges(entry["indexes"]), is_back=event == "returned")
            elif event == "failed":
                tally.failed(int(entry["index"]))
            elif event == "lost":
                tally.lost(str(entry["worker"]), is_mishap=entry.get("mishap") is True)
        except (ValueError, KeyError, TypeError):
            num_unreadable += 1
    done = {*recorded} | void.keys()
    attempts, mishaps = tally.attempts, tally.sends - tally.attempts
    return History(_nonzero(attempts, done), _nonzero(mishaps, done), void, num_unreadable)


class _Tally:
    """What a log says of each index: how often it was sent, and how often that came to nothing known."""

    def __init__(self) -> None:
        self.sends = np.zeros(0, dtype=np.int32)  # and not given back
        self.attempts = np.zeros(0, dtype=np.int32)  # failed, or lost with a worker
        self._holders = np.zeros(0, dtype=np.int32)  # number of the worker that has it; 0: nobody
        self._numbers: dict[str, int] = {}

    def sent(self, worker: str, indexes: NDArray[np.int64], *, is_back: bool) -> None:
        """They were sent to a worker, or given back by it."""
        if indexes.size and indexes[-1] >= len(self.sends):
            self._grow(int(indexes[-1]) + 1)
        self.sends[indexes] += -1 if is_back else 1
        self._holders[indexes] = 0 if is_back else self._numbers.setdefault(worker, len(self._numbers) + 1)

    def failed(self, index: int) -> None:
        """An attempt failed without harm to its worker."""
        if not 0 <= index < len(self.sends):
            raise ValueError(f"expected the index of something that was sent, got {index}")
        self.attempts[index] += 1
        self._holders[index] = 0

    def lost(self, worker: str, *, is_mishap: bool) -> None:
        """A worker was lost with all that it had; what it had finished is recorded, or lost as well."""
        if (number := self._numbers.get(worker)) is not None:
            held = np.flatnonzero(self._holders == number)
            self.attempts[held] += not is_mishap
            self._holders[held] = 0

    def _grow(self, size: int) -> None:
        more = np.zeros(max(size, 2 * len(self.sends)) - len(self.sends), dtype=np.int32)
        self.sends = np.concatenate((self.sends, more))
        self.attempts = np.concatenate((self.attempts, more))
        self._holders = np.concatenate((self._holders, more))


def _nonzero(counts: NDArray[np.int32], done: Container[int]) -> dict[int, int]:
    return {i: int(counts[i]) for i in np.flatnonzero(counts > 0).tolist() if i not in done}


def _as_json(indexes: Iterable[int]) -> list[list[int]]:
    return [list(pair) for pair in to_ranges(indexes)]
