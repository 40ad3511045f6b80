"""Runs the store in children that kill themselves at their n-th touch of a file, for every n.

``crash_points.py write DIR`` writes, seals and commits two shards; ``crash_points.py recover DIR``
recovers and commits what a dead worker left. Case n happens in DIR/n; what `flush` had returned for
is in DIR/n/receipts. Ends at the first n that a child survives, with the number of kills on stdout.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from store_made import add, new_run, new_writer

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


def main() -> None:
    """Forks a child per crash point."""
    mode, directory = sys.argv[1], Path(sys.argv[2])
    for at in range(1, 500):
        run = new_run(directory / str(at))
        if mode == "recover":
            leave_streams(run)
        child = os.fork()
        if child == 0:
            Death(at).arm()
            (write_two_shards if mode == "write" else recover_and_commit)(run)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            sys.stdout.write(str(at - 1))
            return


if __name__ == "__main__":
    main()
