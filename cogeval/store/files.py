"""The few functions through which the store touches files.

Invariant: a final name appears only with its whole content under it, on disk. A disk without room is
one error, `StoreFull`, wherever it shows. Must not know what the files mean.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from cogeval.errors import RunError

Bytes: TypeAlias = bytes | memoryview

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # no space, over quota, over the file limit
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_SUFFIX = ".tmp"


class StoreFull(RunError):  # noqa: N818 - says what is, as the messages do
    """There was no room to write; everything committed before is intact."""


@contextlib.contextmanager
def naming_full_disk(path: Path) -> Iterator[None]:
    """Turns "no room" of any kind into a `StoreFull` that names the file.

    Args:
        path: what was being written.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise StoreFull(
            f"no room to write {path}: {error.strerror}; what is committed is intact. Make room, then "
            "go on with `cogeval resume`"
        ) from error


def write_all(fd: int, data: Bytes) -> None:
    """Writes every byte to an open file, however many calls it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_directory(path: Path) -> None:
    """Makes the names in a directory survive a power cut, where the file system can."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EBADF}:  # not for directories here
            raise
    finally:
        os.close(fd)


def publish(path: Path, data: Bytes, *, replace: bool) -> None:
    """Makes a file appear whole under its final name: temporary file, fsync, rename, fsync.

    Args:
        path: the final name.
        data: the whole content.
        replace: whether a file of that name may be there already.

    Raises:
        StoreFull: there is no room; nothing is left behind.
        FileExistsError: the name is taken and `replace` is False.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}")
    with naming_full_disk(path):
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
            if replace:
                temporary.replace(path)
            else:
                _move_to_free_name(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def _move_to_free_name(temporary: Path, path: Path) -> None:
    """Gives a file its final name unless that is taken; a rename would silently replace."""
    try:
        path.hardlink_to(temporary)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():  # a file system without hard links: the best there is
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        temporary.replace(path)
    else:
        temporary.unlink()


def leftovers(directory: Path, prefix: str) -> list[Path]:
    """Temporary files that a process died over.

    Args:
        directory: where to look.
        prefix: what their names begin with.
    """
    return [path for path in directory.glob(f"{prefix}*{_SUFFIX}") if path.is_file()]
