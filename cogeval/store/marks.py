"""Marks: what a run in an object store knows of the directories in which its open shards may lie.

Invariant: a mark is there before the first stream of its directory, and stays; a directory that a mark names
is looked into only when it is this run's, on this host, no link, and nobody else can write there. Whether a
mark says that its directory was emptied decides what a user reads, never where recovery looks. Others may be
able to write into the store: a mark that none of us can have written is none, for whoever reads marks.
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
_MOST_BYTES: Final = 4095  # of a path
_MOST_PART: Final = 255  # bytes of one part of it, characters of a host's name
_KEY: Final = "[0-9a-f]{12}"  # of a spool, after its run's name
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
    mark = Mark(socket.gethostname(), os.path.abspath(spool), is_emptied)  # noqa: PTH100 - keeps links
    run.sub(SPOOLS).publish(_name(mark), msgspec.json.encode(mark), replace=True)


def read_marks(run: Place, *, here: bool = False) -> list[Mark]:
    """The marks of a run, in the order of their names; none of a run in a directory.

    One that is cut short, or that none of us can have written, is left out.

    Args:
        run: the run's place.
        here: only those of this host.
    """
    if run.path is not None:
        return []
    place, marks = run.sub(SPOOLS), []
    for name, data in place.read_each(place.names(f"{_prefix(socket.gethostname()) if here else ''}*.json")):
        try:
            mark = msgspec.json.decode(b"" if isinstance(data, OSError) else data, type=Mark)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # cut short: its writer goes on to write it again
        if _is_possible(mark, name, run) and (mark.is_here or not here):
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


def _is_possible(mark: Mark, name: str, run: Place) -> bool:
    """True when one of us can have left a mark: of a spool of the run, by a path that there can be."""
    try:
        path = os.fsencode(mark.directory)
    except UnicodeEncodeError:  # no file of this host can have that name
        return False
    return (
        name == _name(mark)
        and 0 < len(mark.host) <= _MOST_PART
        and b"\0" not in path
        and path.startswith(b"/")
        and os.path.normpath(path) == path
        and len(path) <= _MOST_BYTES
        and max(map(len, path.split(b"/"))) <= _MOST_PART
        and re.fullmatch(f"{re.escape(run.name)}-{_KEY}", mark.directory.rpartition("/")[2]) is not None
    )


def _name(mark: Mark) -> str:
    """The name under which a mark lies: one for a directory of a host."""
    digest = hashlib.sha256(f"{mark.host} {mark.directory}".encode()).hexdigest()
    return f"{_prefix(mark.host)}{digest[:12]}.json"


def _prefix(host: str) -> str:
    return f"{_ODD.sub('_', host)}-"
