"""What nurseries own on this machine, and how the next one puts away what a killed one left behind.

A nursery owns a directory, in which those of its agents lie, and the pids cgroups of its supervisors. Both
are locked while it or one of its supervisors lives: the kernel frees the lock when the last of them is
gone, however it ended, so that neither a number that another process has got since nor one of another
container's processes is taken for the owner.

Invariant: nothing is touched that is locked or another user's. Must not know what agents do.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cogeval.agents.process.owned import GROUP, PidsGroup, remove_tree

FOLDER: Final = "cogeval-seat-"  # begins the names of nurseries' directories


def make_folder() -> tuple[Path, int]:
    """A directory for a nursery, and the descriptor that holds its lock.

    Raises:
        OSError: this machine has no room or no descriptors left.
    """
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-"))
        try:
            fd = _locked(path)
        except (FileNotFoundError, BlockingIOError):  # who sweeps at this moment takes it away
            continue
        except OSError:  # of any other there is no end
            path.rmdir()
            raise
        if fd is not None:
            if path.exists():
                return path, fd
            os.close(fd)


def sweep() -> None:
    """Removes directories and cgroups of nurseries that are gone; kills who is left in such a cgroup."""
    for path in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        with _ownerless(path) as is_ownerless:
            if is_ownerless:
                remove_tree(path)
    for base in PidsGroup.bases():
        for path in base.glob(f"{GROUP}*"):
            with _ownerless(path) as is_ownerless, contextlib.suppress(OSError):
                if is_ownerless:
                    _empty(path)
                    path.rmdir()


@contextlib.contextmanager
def _ownerless(path: Path) -> Iterator[bool]:
    """Whether nobody owns it; nobody can while this is looked at."""
    fd = None
    with contextlib.suppress(OSError):
        fd = _locked(path)
    try:
        yield fd is not None
    finally:
        if fd is not None:
            os.close(fd)


def _locked(path: Path) -> int | None:
    """Locks a directory of this user's; None when it is another's."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(fd).st_uid == os.getuid():
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
    except OSError:
        os.close(fd)
        raise
    os.close(fd)
    return None


def _empty(group: Path) -> None:
    """Kills the processes of a cgroup."""
    for line in (group / "cgroup.procs").read_text().split():
        if int(line) > 0:  # 0: a process of another container
            with contextlib.suppress(OSError):
                os.kill(int(line), signal.SIGKILL)
