"""Marks: what a run in an object store knows of the directories in which its open shards may lie.

Invariant: a mark is there before the first stream of its directory, and stays; a directory that a mark names
is looked into only when it is this run's, on this host, no link, and nobody else can write there. Whether a
mark says that its directory was emptied decides what a user reads, never where recovery looks.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import stat
from pathlib import Path
from typing import Final

import msgspec

from cogeval.store.places import Place

SPOOLS: Final = "spools"  # of a run: its marks
_ODD = re.compile(r"[^A-Za-z0-9.-]")  # in a host's name: what is not kept in an object's


class Mark(msgspec.Struct, frozen=True):
    """The content of a mark."""

    host: str
    directory: str  # absolute path on that host
    is_emptied: bool = False  # who looked last found no stream there

    @property
    def is_here(self) -> bool:
        """True when it names a directory of this host."""
        return self.host == socket.gethostname()


def put_mark(run: Place, spool: Path, *, is_emptied: bool) -> None:
    """Says with the run that streams may lie in a directory of this host, or that none does any more.

    Args:
        run: the run's place, in an object store.
        spool: the directory.
        is_emptied: whether no stream is in it.

    Raises:
        RunError: the store does not take it.
    """
    host, directory = socket.gethostname(), os.path.abspath(spool)  # noqa: PTH100 - keeps links
    name = f"{_prefix(host)}{hashlib.sha256(f'{host} {directory}'.encode()).hexdigest()[:12]}.json"
    data = msgspec.json.encode(Mark(host, directory, is_emptied))
    run.sub(SPOOLS).publish(name, data, replace=True)


def read_marks(run: Place, *, here: bool = False) -> list[Mark]:
    """The marks of a run, in the order of their names; none of a run in a directory.

    Args:
        run: the run's place.
        here: only those of this host.
    """
    if run.path is not None:
        return []
    place, marks = run.sub(SPOOLS), []
    for _, data in place.read_each(place.names(f"{_prefix(socket.gethostname()) if here else ''}*.json")):
        try:
            mark = msgspec.json.decode(b"" if isinstance(data, OSError) else data, type=Mark)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # cut short: its writer goes on to write it again
        if not here or mark.is_here:
            marks.append(mark)
    return marks


def is_ours(directory: Path) -> bool:
    """True for a directory of this user's that is no link, and that nobody else can write into."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def has_streams(directory: Path) -> bool:
    """True when a directory of ours has a stream in it."""
    return is_ours(directory) and any(name.endswith(".hot") for name in os.listdir(directory))  # noqa: PTH208


def _prefix(host: str) -> str:
    return f"{_ODD.sub('_', host)}-"
