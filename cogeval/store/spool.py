"""Where the streams of a run's shards lie while they fill: always on a disk of the host that fills them.

Invariant: two runs never share a spool, not even two that had the same name at the same address: what is
recovered from one belongs to its run. Of a run in a directory it is the directory of its shards.

The temporary directory may be another one when a run is resumed. So whoever makes a spool leaves a mark of it
with the run (`marks`), and whoever looks for streams looks into all that the marks of this host name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from cogeval.errors import InputError, RunError, few
from cogeval.store.files import naming_full_disk
from cogeval.store.marks import SPOOLS, Mark, has_streams, is_ours, put_mark, read_marks
from cogeval.store.places import Place, PlaceLike, place_at
from cogeval.store.roots import SHARDS
from cogeval.store.run import RunDir

_MOST_TOLD = 3  # directories in warnings
_MOST_SHOWN = 200  # characters of a path there


def spool_of(run: PlaceLike) -> Path:
    """The directory of a run's streams on this host; it need not be there.

    A run in an object store keeps in its manifest which directory of spools it uses (``store.spool_dir``);
    else it is one of this user's in the temporary directory.

    Args:
        run: the run's place.

    Raises:
        InputError: the run's manifest cannot be read.
    """
    place = place_at(run)
    if place.path is not None:
        return place.path / SHARDS
    manifest = RunDir(place).manifest
    key = hashlib.sha256(f"{place.where()} {manifest['created']}".encode()).hexdigest()[:12]
    spool_dir = manifest.get("spool_dir")
    root = _of_user() if spool_dir is None else Path(spool_dir)
    return root / f"{place.name}-{key}"


def spools_of(run: PlaceLike) -> list[Path]:
    """The directories of this host in which streams of a run may lie: the present one, then all others.

    Args:
        run: the run's place.

    Raises:
        InputError: the run's manifest cannot be read.
        RunError: the store does not say which there are.
    """
    place = place_at(run)
    present = spool_of(place)
    if place.path is not None:
        return [present]
    marked = [Path(mark.directory) for mark in read_marks(place, here=True)]
    return [present, *(spool for spool in marked if spool != present and _is_spool(spool, present))]


def _is_spool(spool: Path, present: Path) -> bool:
    """True when what a mark names is a spool of the run's; others may be able to write into the store."""
    return spool.name == present.name and is_ours(spool)


def open_spool(run: Place, spool: Path) -> None:
    """Makes a spool of a run in an object store, and marks it: streams will lie in it.

    A store that does not answer now keeps nobody from writing to his own disk: an episode that was played
    is worth more than its mark, and sealing it finds out about the store.

    Args:
        run: the run's place.
        spool: the directory.

    Raises:
        InputError: its place is not ours.
        StoreFull: there is no room.
    """
    if not has_streams(spool):  # else somebody has marked it
        with contextlib.suppress(RunError, OSError):
            put_mark(run.hasty(), spool, is_emptied=False)
    make_spool(spool)


def leave_spool(run: Place, spool: Path) -> None:
    """Removes a spool when nothing is in it, and marks one without streams as emptied.

    Args:
        run: the run's place.
        spool: the directory.
    """
    with contextlib.suppress(OSError):  # others have streams in it, or it has logs
        spool.rmdir()
    with contextlib.suppress(RunError, OSError):  # a mark that says more than there is costs a warning
        if not has_streams(spool):
            put_mark(run, spool, is_emptied=True)
            if has_streams(spool):  # somebody came meanwhile
                put_mark(run, spool, is_emptied=False)


def out_of_reach(run: Place) -> list[str]:
    """Where streams of a run may lie that a resume on this host does not see: a few sentences, however many.

    Args:
        run: the run's place.

    Raises:
        InputError: the run's manifest cannot be read.
        RunError: the store does not answer.
    """
    marks = [mark for mark in read_marks(run) if not mark.is_emptied]
    if not marks:
        return []
    present = spool_of(run)
    unseen = [mark for mark in marks if not (mark.is_here and _is_spool(Path(mark.directory), present))]
    told = [_unseen(run.name, mark) for mark in unseen[:_MOST_TOLD]]
    if rest := unseen[_MOST_TOLD:]:
        hosts = sorted({_shortened(mark.host) for mark in rest})
        told.append(
            f"the same of {len(rest):,} more directories of open shards of {run.name}, on "
            f"{few(hosts, _MOST_TOLD)}; each is named in {run.where(SPOOLS)}"
        )
    return told


def _unseen(name: str, mark: Mark) -> str:
    """What a mark of a directory that is not seen here means for who resumes its run."""
    host, directory = _shortened(mark.host), _shortened(mark.directory)
    if not mark.is_here:
        return (
            f"open shards of {name} may lie on {host} in {directory}: resume there, or on "
            "a cluster with that node, or their episodes are played again"
        )
    return (
        f"open shards of {name} lay on this host ({host}) in {directory}, which is "
        "gone or no directory of ours alone: put it back before you resume, or their episodes are "
        "played again"
    )


def _shortened(text: str) -> str:
    """A name or path for a message, without its middle when it is long."""
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN // 2]}...{text[-_MOST_SHOWN // 2 :]}"


def make_spool(spool: Path) -> None:
    """Makes a spool that nobody else can read: replies of models lie in it.

    Raises:
        InputError: its place is not ours.
        StoreFull: there is no room.
    """
    with naming_full_disk(spool):
        try:
            spool.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if spool.parent == _of_user():
                _keep_private(spool.parent)
            spool.mkdir(mode=0o700, exist_ok=True)
            _keep_private(spool)
        except (PermissionError, FileExistsError, NotADirectoryError) as error:
            raise InputError(
                f"expected to be able to make {spool} for a worker's open shards, got: {error.strerror}; "
                "name another directory with store.spool_dir=DIR"
            ) from error


def _of_user() -> Path:
    return Path(tempfile.gettempdir()) / f"cogeval-spool-{os.getuid()}"


def _keep_private(directory: Path) -> None:
    """Everybody may write where temporary files lie: another's directory of our name is refused.

    One of ours that others may look into, as a log makes it, is closed to them.
    """
    if is_ours(directory):
        directory.chmod(0o700)
        return
    found = directory.lstat()
    raise InputError(
        f"expected {directory} to be a directory of ours that nobody else can write into, got mode "
        f"{stat.filemode(found.st_mode)} of user {found.st_uid}; remove it, or set store.spool_dir=DIR"
    )
