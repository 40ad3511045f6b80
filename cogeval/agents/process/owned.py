"""What a nursery and its supervisors own: cgroups that bound agents' processes, and agents' directories.

Invariant: a group is locked as long as the nursery that made it or one of its supervisors lives. Imports the
standard library alone: a supervisor, which is run as a file, loads this one as another.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

GROUP: Final = "cogeval-"  # begins the names of cgroups
MOST_COPIED: Final = 64 << 20  # bytes of a declared file; a larger one is linked


class PidsGroup:
    """A pids cgroup for one supervisor at a time, where this user may make one; locked while it is owned.

    Moving a process into it takes 15 ms, so a supervisor is moved before it is needed, and its agent is
    born in there.
    """

    _num = itertools.count()

    def __init__(self) -> None:
        self.path: Path | None = None
        self.lock = -1
        for base in self.bases() * 2:  # twice: who sweeps may take it for a dead one's before it is locked
            path = base / f"{GROUP}{os.getpid()}-{next(self._num)}"
            with contextlib.suppress(OSError):
                path.mkdir()
                self.path, self.lock = path, os.open(path, os.O_RDONLY)
                fcntl.flock(self.lock, fcntl.LOCK_EX)
                if self.limit(1):
                    return
            self.remove()

    @staticmethod
    def bases() -> list[Path]:
        """Where a cgroup with a limit of processes may be made: version 1, then version 2."""
        found = []
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/cgroup").read_text().splitlines():
                _, controllers, path = line.split(":", 2)
                if "pids" in controllers.split(","):
                    found.append(Path("/sys/fs/cgroup/pids", path.lstrip("/")))
                elif not controllers:
                    found.append(Path("/sys/fs/cgroup", path.lstrip("/")))
        return found

    def enter(self) -> None:
        """Moves this process in; where that is refused, the group is none."""
        if self.path is not None:
            try:
                (self.path / "cgroup.procs").write_text("0")
            except OSError:
                self.path = None

    def limit(self, most: int) -> bool:
        """Bounds processes and threads in it from now on, the supervisor not counted; False: it cannot."""
        if self.path is None:
            return False
        try:
            (self.path / "pids.max").write_text(str(most + 1))
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Takes it away; everything in it has ended."""
        if self.path is not None:
            with contextlib.suppress(OSError):
                self.path.rmdir()
            with contextlib.suppress(OSError):
                os.close(self.lock)
            self.path, self.lock = None, -1


def place_file(target: Path, place: Path) -> None:
    """Gives a program its own copy of a declared file, with its mode; of a large one a link.

    Args:
        target: the user's file.
        place: where it is to be, in a directory that no program has been in yet.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    if target.stat().st_size > MOST_COPIED:
        place.symlink_to(target)
    else:
        shutil.copy(target, place)


def remove_tree(top: Path) -> None:
    """Removes a directory in which a program was, and nothing else; what this user may not remove is left.

    It may be deeper than Python recurses or a path is long, so directories are brought up to the top one by
    one. A program may have forbidden itself to write in it, and put a link anywhere, in the place of the
    directory too: every step is taken from an open directory, and none follows a link.

    Args:
        top: the directory.
    """
    fresh = (f".{os.urandom(8).hex()}" for _ in itertools.count())
    seen: set[str] = set()
    try:
        root = _opened(top)
    except OSError:  # a link, or a file
        with contextlib.suppress(OSError):
            top.unlink()
        return
    with contextlib.suppress(OSError):
        while names := set(os.listdir(root)) - seen:  # noqa: PTH208 - from an open directory
            for name in names:
                with contextlib.suppress(OSError):
                    _dissolve(name, root, fresh)
            seen |= names
        top.rmdir()
    os.close(root)


def _opened(path: Path | str, within: int | None = None) -> int:
    """Opens a directory, which is made readable; an OSError when it is a link or no directory."""
    handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)
    try:
        same = f"/proc/self/fd/{handle}"  # this very directory, whatever the name means by now
        os.chmod(same, 0o700)  # noqa: PTH101 - no path of anybody's
        return os.open(same, os.O_RDONLY | os.O_DIRECTORY)
    finally:
        os.close(handle)


def _dissolve(name: str, root: int, fresh: Iterator[str]) -> None:
    """Removes a file, or a directory, of which the directories in it come to the top."""
    try:
        folder = _opened(name, root)
    except OSError:
        os.unlink(name, dir_fd=root)
        return
    try:
        for inner in os.listdir(folder):  # noqa: PTH208 - as above
            with contextlib.suppress(OSError):
                try:
                    os.close(_opened(inner, folder))  # one may not be moved that may not be written
                except OSError:
                    os.unlink(inner, dir_fd=folder)
                else:
                    os.rename(inner, next(fresh), src_dir_fd=folder, dst_dir_fd=root)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=root)
