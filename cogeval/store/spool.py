"""Where the streams of a run's shards lie while they fill: always on a disk of the host that fills them.

Invariant: two runs never share a spool, not even two that had the same name at the same address: what is
recovered from one belongs to its run. Of a run in a directory it is the directory of its shards.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from cogeval.errors import InputError
from cogeval.store.files import naming_full_disk
from cogeval.store.places import PlaceLike, place_at
from cogeval.store.roots import SHARDS
from cogeval.store.run import RunDir


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
                _check_ours(spool.parent)
            spool.mkdir(mode=0o700, exist_ok=True)
        except (PermissionError, FileExistsError, NotADirectoryError) as error:
            raise InputError(
                f"expected to be able to make {spool} for a worker's open shards, got: {error.strerror}; "
                "name another directory with store.spool_dir=DIR"
            ) from error


def _of_user() -> Path:
    return Path(tempfile.gettempdir()) / f"cogeval-spool-{os.getuid()}"


def _check_ours(directory: Path) -> None:
    """Everybody may write where temporary files lie: another's directory of our name is refused."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise InputError(
            f"expected {directory} to be a directory of ours that nobody else can enter, got mode "
            f"{stat.filemode(found.st_mode)} of user {found.st_uid}; remove it, or set store.spool_dir=DIR"
        )
