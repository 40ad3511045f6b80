"""The ledger's log: what must survive a driver that dies between two shard records.

Invariant: an entry is written before its command is obeyed, so that what the log does not name was
never sent. Pure: lines in, lines out; the store writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np

from cogeval.core.ranges import from_ranges, to_ranges
from cogeval.schedule.messages import Command, Dispatch, Event, Failed, Returned, Void, WorkerLost

__all__ = ["PARDON", "History", "attempts_from_log", "log_entry"]

PARDON: Final[Mapping[str, Any]] = MappingProxyType({"event": "pardon"})
"""The entry after which no episode is void, and no earlier attempt counts."""


class History(msgspec.Struct, frozen=True):
    """What earlier sessions of a run came to, beside their shard records."""

    attempts: Mapping[int, int]  # per index: how often it was sent without coming back
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
        case WorkerLost(worker):
            return {"event": "lost", "worker": worker}
        case Void(index, reason):
            return {"event": "void", "index": index, "reason": reason}
        case _:
            return None


def attempts_from_log(entries: Iterable[Mapping[str, Any]], *, recorded: Iterable[int] = ()) -> History:
    """Rebuilds attempts and voids when a run is resumed.

    Every dispatch counts as an attempt, whatever came of it: what was recorded is not sent again, and
    an episode that took the driver with it must not be retried for ever. Only what a worker gave back
    unplayed does not count.

    Args:
        entries: as `log_entry` made them, oldest first.
        recorded: indexes that shard records hold; left out of the result.

    Returns:
        The history.
    """
    counts = np.zeros(0, dtype=np.int32)
    void: dict[int, str] = {}
    num_unreadable = 0
    for entry in entries:
        try:
            event = entry["event"]
            if event == "void":
                void[int(entry["index"])] = str(entry["reason"])
            elif event == "pardon":  # a person wants what was given up tried again, as if for the first time
                void.clear()
                counts[:] = 0
            elif event in ("dispatch", "returned"):
                indexes = from_ranges(entry["indexes"])
                if indexes.size and indexes[-1] >= len(counts):
                    counts = np.concatenate((counts, np.zeros(indexes[-1] + 1, dtype=np.int32)))
                counts[indexes] += 1 if event == "dispatch" else -1
        except (ValueError, KeyError, TypeError):
            num_unreadable += 1
    done = {*recorded} | void.keys()
    attempts = {i: int(counts[i]) for i in np.flatnonzero(counts > 0).tolist() if i not in done}
    return History(attempts, void, num_unreadable)


def _as_json(indexes: Iterable[int]) -> list[list[int]]:
    return [list(pair) for pair in to_ranges(indexes)]
