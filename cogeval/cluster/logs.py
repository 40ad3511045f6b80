"""The log of one process of a run: JSON lines with the run, the episode and the seat that they are about.

Invariant: a line for each fault and for each event of the cluster, none for an episode that went well; a log
is bounded, its end is in it nevertheless, and one that cannot be written never hurts the run: nothing is
waited for, no link is followed, and a run's directory that is gone stays gone. It holds what the shards hold
too: it is for `tail -f` and log collectors, and nothing is read back from it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

from cogeval.core.game import Json
from cogeval.core.record import Attempt
from cogeval.schedule.designs import Slot

FOLDER: Final = "logs"  # in the run's directory
_MOST_LINES = 10_000  # of one process, beside its end; the shards have every fault
_BRIEF_CHARS = 200


class RunLog:
    """Appends lines to a file, which is made with the first one.

    Args:
        path: the file; None: nowhere.
        run_id: in every line.
        worker: in every line: a worker's id, or ``driver``.
    """

    def __init__(self, path: Path | None, run_id: str, worker: str) -> None:
        self._path = path
        self._who = {"run": run_id, "by": worker}
        self._num_lines = 0
        self._file: TextIO | None = None

    def event(self, event: str, **facts: Json) -> None:
        """Writes one line.

        Args:
            event: what happened, one word or two with an underscore.
            **facts: JSON values.
        """
        self._num_lines += 1
        if self._num_lines > _MOST_LINES or self._path is None:
            return
        if self._num_lines == _MOST_LINES:
            event, facts = "log_full", {"lines": _MOST_LINES, "rest": "in the shards: cogeval show"}
        self._write(event, facts)

    def end(self, event: str, **facts: Json) -> None:
        """Writes the last line, into a full log too, and closes the file.

        Args:
            event: as in `event`.
            **facts: JSON values.
        """
        if self._path is not None:
            self._write(event, facts)
        self.close()

    def _write(self, event: str, facts: Mapping[str, Json]) -> None:
        assert self._path is not None
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": time, "event": event, **self._who, **facts})
        with contextlib.suppress(OSError, ValueError):  # a full disk says so where it matters
            if self._file is None:
                self._file = _opened(self._path)
            self._file.write(line + "\n")
            self._file.flush()

    def faults(self, slot: Slot, episode_id: str, names: Sequence[str], faulty: Sequence[Attempt]) -> None:
        """Writes a line for each fault of an episode.

        Args:
            slot: its place in the schedule.
            episode_id: its identity.
            names: of the agents, per seat.
            faulty: its attempts with a fault.
        """
        for attempt in faulty:
            self.event(
                "fault",
                episode=slot.index,
                episode_id=episode_id,
                seed=slot.seed,
                phase=attempt.phase,
                seat=attempt.seat,
                attempt=attempt.attempt,
                agent=names[attempt.seat],
                fault=attempt.fault,
                detail=brief(attempt.detail or ""),
                think_s=round(attempt.think_s, 4),
                queue_s=round(attempt.queue_s, 4),
            )

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


def brief(text: str, most: int = _BRIEF_CHARS) -> str:
    """The beginning of a text in one line, cut behind a sentence, else behind a word.

    Args:
        text: what somebody else has to say; Ray says a page.
        most: characters, those that say that something is left out included.
    """
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    mark = " ..."
    begun = line[: most - len(mark) + 1]  # one more: a blank there ends what is before it
    for end in (begun.rfind(". ") + 1, begun.rfind(" ")):
        if end > most // 4:
            return begun[:end] + mark
    return begun[:-1] + mark


def _opened(path: Path) -> TextIO:
    """A file to append to, which is made in a directory that is made too, but in no other one.

    Raises:
        OSError: there is something else, which might be waited for, or lead elsewhere.
    """
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
        file = os.open(path.name, flags, 0o666, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return os.fdopen(file, "a", encoding="utf-8")
