"""Places: the directories of a store, on a file system or in an object store.

Invariant: a name in a place has its whole content or does not exist; who reads never sees half of it.
Must not know what the contents mean.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol, TypeAlias

from cogeval.store.addresses import check_address, check_path, file_path, is_address, is_mistyped
from cogeval.store.files import Bytes, naming_full_disk, publish, sync_directory


class Place(Protocol):
    """A directory of a store. Pickles as its address: whoever gets it opens it anew."""

    @property
    def uri(self) -> str:
        """What opens it again with `place_at`; no secret is in it."""

    @property
    def name(self) -> str:
        """The last part of its path."""

    @property
    def path(self) -> Path | None:
        """The directory on this host; None in an object store."""

    @property
    def parent(self) -> Place:
        """The place that it lies in."""

    def resolved(self) -> Place:
        """The same place by the one address that all its addresses lead to, wherever a process stands."""

    def where(self, name: str = "") -> str:
        """How to name it, or something in it, in a message."""

    def sub(self, name: str) -> Place:
        """The place of that name in it."""

    def hasty(self) -> Place:
        """The same for who only reads: a store that does not answer is given up after about ten seconds."""

    def patient(self) -> Place:
        """The same for who writes: a store may be away for a minute."""

    def exists(self) -> bool:
        """True when it is there; one in an object store is when something is in it."""

    def lacks(self) -> str | None:
        """What it lies in that is not there and we cannot make, for a message; None: nothing known."""

    def make(self, *, new: bool = False) -> None:
        """Makes it, and, when it is to be new, what it lies in: who is late makes nothing that is gone anew.

        Raises:
            FileExistsError: it is there and `new` is True.
            FileNotFoundError: `new` is False and what it lies in is not there.
            OSError: it cannot be made.
        """

    def names(self, pattern: str = "*") -> list[str]:
        """Names in it that match a pattern, places among them, in order; none when it is not there."""

    def size(self, name: str) -> int | None:
        """Bytes under a name; None when there is nothing."""

    def read(self, name: str) -> bytes:
        """The whole content under a name.

        Raises:
            FileNotFoundError: there is nothing.
            OSError: it cannot be read.
        """

    def read_each(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        """The contents under many names, in their order; the error in place of one that cannot be read."""

    def publish(self, name: str, data: Bytes, *, replace: bool) -> None:
        """Makes a name appear with its whole content.

        Args:
            name: in this place.
            data: the content.
            replace: whether there may be something under that name. An object store looks before it
                writes: names that two may want at once need a protocol of their own there.

        Raises:
            FileExistsError: the name is taken and `replace` is False.
            StoreFull: there is no room.
            OSError: it cannot be written.
        """

    def remove(self, name: str) -> None:
        """Removes what is under a name, if anything is."""

    def rename(self, name: str, to: str) -> None:
        """Gives something another name; in an object store there are both for a moment."""

    def remove_all(self) -> None:
        """Removes the place and everything in it, if it is there."""


PlaceLike: TypeAlias = "Place | Path | str"


def place_at(where: PlaceLike) -> Place:
    """The place at a path or URI.

    Args:
        where: a directory, or any URI that pyarrow.fs opens, such as ``s3://bucket/prefix?region=eu-west-1``.

    Raises:
        InputError: the URI holds a secret, names no file system that there is, or lacks its slashes.
    """
    if isinstance(where, Path):
        return LocalPlace(where)
    if not isinstance(where, str):
        return where
    if not is_address(where):
        check_path(where)
        return LocalPlace(Path(where))
    check_address(where)
    path = file_path(where)
    if path is not None:
        return LocalPlace(path)
    # Importing pyarrow takes a third of a second, which shell completion on a disk need not pay.
    from cogeval.store.objects import open_objects

    return open_objects(where)


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A directory of a file system, with rename, hard links and fsync.

    Args:
        directory: its path.
    """

    directory: Path

    @property
    def uri(self) -> str:
        """Its path, so that it is not taken for a mistyped URI."""
        text = str(self.directory)
        return f"./{text}" if is_mistyped(text) else text

    @property
    def name(self) -> str:
        """The last part of its path, wherever it was named from."""
        try:
            return self.directory.resolve().name
        except OSError:  # the directory that we stand in was removed; messages need a name even then
            return self.directory.name

    @property
    def path(self) -> Path | None:
        """Its path."""
        return self.directory

    @property
    def parent(self) -> LocalPlace:
        """The directory that it lies in."""
        return LocalPlace(self.directory.parent)

    def resolved(self) -> LocalPlace:
        """The same by its absolute path without links."""
        return LocalPlace(self.directory.resolve())

    def where(self, name: str = "") -> str:
        """The path."""
        return str(self.directory / name)

    def sub(self, name: str) -> LocalPlace:
        """The directory of that name in it."""
        return LocalPlace(self.directory / name)

    def hasty(self) -> LocalPlace:
        """Itself: a file system answers when it does."""
        return self

    def patient(self) -> LocalPlace:
        """Itself."""
        return self

    def exists(self) -> bool:
        """True when it is a directory."""
        return self.directory.is_dir()

    def lacks(self) -> str | None:
        """Nothing: directories can be made."""
        return None

    def make(self, *, new: bool = False) -> None:
        """See `Place`."""
        with naming_full_disk(self.directory):
            if new:
                self.directory.parent.mkdir(parents=True, exist_ok=True)
            self.directory.mkdir(exist_ok=not new)
            if new:
                sync_directory(self.directory.parent)

    def names(self, pattern: str = "*") -> list[str]:
        """See `Place`."""
        try:
            return sorted(name for name in os.listdir(self.directory) if fnmatchcase(name, pattern))  # noqa: PTH208 - names only
        except (FileNotFoundError, NotADirectoryError):
            return []

    def size(self, name: str) -> int | None:
        """See `Place`."""
        try:
            return (self.directory / name).stat().st_size
        except FileNotFoundError:
            return None

    def read(self, name: str) -> bytes:
        """See `Place`."""
        return (self.directory / name).read_bytes()

    def read_each(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        """See `Place`."""
        for name in names:
            try:
                yield name, self.read(name)
            except OSError as error:
                yield name, error

    def publish(self, name: str, data: Bytes, *, replace: bool) -> None:
        """See `Place`."""
        publish(self.directory / name, data, replace=replace)

    def remove(self, name: str) -> None:
        """See `Place`."""
        (self.directory / name).unlink(missing_ok=True)

    def rename(self, name: str, to: str) -> None:
        """See `Place`."""
        (self.directory / name).replace(self.directory / to)
        sync_directory(self.directory)

    def remove_all(self) -> None:
        """See `Place`; never follows a link."""
        if self.directory.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self.directory))
        with contextlib.suppress(FileNotFoundError):  # somebody else has removed it, or is about it
            shutil.rmtree(self.directory)
