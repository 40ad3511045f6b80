"""Runs the store in children that kill themselves at their n-th touch of a file, for every n.

``crash_points.py write DIR`` writes, seals and commits two shards; ``crash_points.py recover DIR``
recovers and commits what a dead worker left; ``compact`` merges shards, ``tidy`` ends a merger that was
killed after its record. Case n happens in DIR/n; what `flush` had returned for
is in DIR/n/receipts. Ends at the first n that a child survives, with the number of kills on stdout.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from store_made import add, new_run, new_writer

from cogeval.store.compact import compact
from cogeval.store.recover import recover
from cogeval.store.run import RunDir

_open, _write = os.open, os.write  # the unarmed ones


class Death:
    """Counts touches of files and ends the process at one of them."""

    def __init__(self, at: int) -> None:
        self.left = at

    def due(self) -> bool:
        self.left -= 1
        return self.left == 0

    def now(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def write(self, fd: int, data: Any) -> int:
        if self.due():  # half of it gets out
            _write(fd, bytes(data)[: len(data) // 2])
            self.now()
        return _write(fd, data)

    def before(self, function: Any) -> Any:
        def dying(*args: Any, **kwargs: Any) -> Any:
            if self.due():
                self.now()
            return function(*args, **kwargs)

        return dying

    def arm(self) -> None:
        os.write = self.write
        for name in ("open", "fsync"):
            setattr(os, name, self.before(getattr(os, name)))
        for name in ("replace", "hardlink_to", "unlink", "exists"):
            setattr(Path, name, self.before(getattr(Path, name)))


def receipt(run: RunDir, text: str) -> None:
    """Says to the parent what has been promised."""
    fd = _open(run.path.parent / "receipts", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    _write(fd, f"{text}\n".encode())


def write_two_shards(run: RunDir) -> None:
    """What a worker and its driver do, in one process."""
    for number, start in enumerate((0, 6)):
        writer = new_writer(run, f"w0-{number:04d}")
        for index in range(start, start + 6):
            add(writer, index)
            if index % 2:
                writer.flush()
                receipt(run, str(index))
        sealed = writer.seal()
        run.commit(sealed, sealed.indexes)


def leave_streams(run: RunDir) -> None:
    """A worker that died with one shard sealed and one being filled."""
    for number, start in enumerate((0, 4)):
        writer = new_writer(run, f"w0-{number:04d}")
        for index in range(start, start + 4):
            add(writer, index)
            if index % 2:
                writer.flush()
                receipt(run, str(index))
        if number == 0:
            writer.seal()
        writer.close()


def recover_and_commit(run: RunDir) -> None:
    """What a driver does on resume."""
    for sealed in recover(run.path):
        run.commit(sealed, sealed.indexes)


def leave_shards(run: RunDir) -> None:
    """Three shards, two episodes of the last one second copies."""
    for number, indexes in enumerate((range(6), range(6, 12), range(10, 16))):
        writer = new_writer(run, f"w{number}-0000")
        for index in indexes:
            add(writer, index, usage=True)
        sealed = writer.seal()
        copies = set(sealed.indexes) & {10, 11} if number == 2 else set()
        run.commit(sealed, set(sealed.indexes) - copies, copies)


def leave_a_merger(run: RunDir) -> None:
    """A merged shard, and all that it was merged from."""
    leave_shards(run)
    kept = {path: path.read_bytes() for path in run.shards_path.iterdir()}
    compact(run)
    for path, data in kept.items():
        path.write_bytes(data)


MODES = {
    "write": (lambda _: None, write_two_shards),
    "recover": (leave_streams, recover_and_commit),
    "compact": (leave_shards, compact),
    "tidy": (leave_a_merger, recover_and_commit),
}
"""What is there before, and what is killed."""


def main() -> None:
    """Forks a child per crash point."""
    mode, directory = sys.argv[1], Path(sys.argv[2])
    for at in range(1, 500):
        run = new_run(directory / str(at))
        prepare, attempt = MODES[mode]
        prepare(run)
        child = os.fork()
        if child == 0:
            Death(at).arm()
            attempt(run)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            sys.stdout.write(str(at - 1))
            return


if __name__ == "__main__":
    main()
