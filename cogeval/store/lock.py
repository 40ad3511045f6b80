"""One driver at a time: the lock file of a run.

Invariant: whoever holds the lock is the only one that writes records, the log or the lock itself. A
lock left by a process of this host that has ended is taken over; one of another host is not, for
nobody here can tell whether its process lives. Must not know shards.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec
import psutil

from cogeval.errors import InputError
from cogeval.store.files import publish

_START_SLACK_S = 5.0  # a process's start time is computed from a boot time that clock corrections move


class LockHolder(msgspec.Struct, frozen=True):
    """Who holds a lock, as its file says."""

    host: str
    pid: int
    process_start: float  # unix time at which that process began: process ids are used again
    start: float  # unix time at which the lock was taken
    token: str  # tells this lock from every other
    since_boot: float | None = None  # seconds from the host's boot to that beginning

    def is_dead(self) -> bool:
        """True when the holder was a process of this host that has ended."""
        if self.host != socket.gethostname():
            return False
        try:
            started = psutil.Process(self.pid).create_time()
        except psutil.NoSuchProcess:
            return True
        if abs(started - self.process_start) <= _START_SLACK_S:
            return False
        # A clock that was set moves the first of these on some systems and the second on the others.
        since_boot = started - psutil.boot_time()
        return self.since_boot is None or bool(abs(since_boot - self.since_boot) > _START_SLACK_S)


class HeldLock(Protocol):
    """A lock that is held until `release`."""

    @property
    def holder(self) -> LockHolder:
        """Who holds it: this process."""

    def check(self) -> None:
        """Makes sure that it is still ours before something is written under it.

        Raises:
            RunError: another driver has taken it.
        """

    def release(self) -> None:
        """Gives the lock up; does nothing when it is no longer ours."""


class Lock:
    """A lock file that is held until `release`.

    Args:
        path: its file.
        holder: what was written into it.
    """

    __slots__ = ("_path", "holder")

    def __init__(self, path: Path, holder: LockHolder) -> None:
        self._path = path
        self.holder: LockHolder = holder

    def check(self) -> None:
        """Does nothing: while this process lives, nobody takes its file over."""

    def release(self) -> None:
        """Gives the lock up; does nothing when it is no longer ours."""
        if read_lock(self._path) == self.holder:
            self._path.unlink(missing_ok=True)


def read_lock(path: Path) -> LockHolder | None:
    """Who holds the lock; None when nobody does, its file is torn by a crash, or it is no file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=LockHolder)
    except (FileNotFoundError, IsADirectoryError, msgspec.DecodeError):
        return None


def this_process() -> LockHolder:
    """A new holder: this process, now."""
    started = psutil.Process().create_time()
    return LockHolder(
        socket.gethostname(),
        os.getpid(),
        started,
        time.time(),
        secrets.token_hex(8),
        started - psutil.boot_time(),
    )


def acquire(path: Path, run_id: str) -> Lock:
    """Takes the lock or says who has it.

    Args:
        path: the lock's file.
        run_id: how the message names the run.

    Raises:
        InputError: another driver holds it; the message gives its host, process and age. Or a
            directory has its name.
        StoreFull: there is no room for the file.
    """
    mine = this_process()
    if path.is_dir():
        raise InputError(f"expected a lock file or nothing at {path}, got a directory; remove it")
    with _one_taker(path.parent):
        if path.exists():
            other = read_lock(path)
            if other is not None and not other.is_dead():
                raise InputError(refusal(other, f"delete {path}", run_id))
            path.unlink(missing_ok=True)
        try:
            publish(path, json.dumps(msgspec.to_builtins(mine)).encode(), replace=False)
        except FileExistsError:
            raise InputError(f"run {run_id} was just locked by another driver; wait for it to end") from None
    return Lock(path, mine)


@contextlib.contextmanager
def _one_taker(directory: Path) -> Iterator[None]:
    """Lets one process of this host at a time look at a lock and replace it.

    Two that found the same stale lock would otherwise each remove it, the second one the first one's
    new lock. The kernel frees this guard with its process; where it has none, O_EXCL still decides.
    """
    fd = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def refusal(other: LockHolder, when_gone: str, run_id: str) -> str:
    """Says who holds the lock and what to do.

    Args:
        other: the holder.
        when_gone: what to do when its process, on another host, is gone; empty: nothing but to try again.
        run_id: how to name the run.
    """
    minutes, seconds = divmod(int(max(0.0, time.time() - other.start)), 60)
    hours, minutes = divmod(minutes, 60)
    age = f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
    if other.host == socket.gethostname():
        way_out = f"wait for it to end or stop it (kill {other.pid})"
    elif when_gone:
        way_out = f"wait for it to end, or, when that process is gone, {when_gone}"
    else:
        way_out = (
            "wait for it to end; when that process is gone, the run can be taken over half a minute later"
        )
    return f"run {run_id} is being driven by process {other.pid} on {other.host} since {age}; {way_out}"
