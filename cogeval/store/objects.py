"""A place in an object store: whole objects, no rename, no lock, and a network in between.

Invariant: a call returns with its work done, or raises after about a minute of trying, for who only reads
after about ten seconds; a refusal of the credentials is raised at once. What is written is looked at again:
a dropped connection can leave half an object. No message holds a credential. Must not know what the objects
mean.
"""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import pyarrow as pa
from pyarrow import fs

from cogeval.store.failures import refusal, unreachable
from cogeval.store.files import Bytes
from cogeval.store.filesystems import Opened, open_file_system

T = TypeVar("T")

PATIENCE_S: Final = 60.0  # how long a call goes on trying
HASTE_S: Final = 8.0  # and for who only reads; the last try may take some seconds on top
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 8.0
_READERS = 16  # objects read at once: each is a wait for the network


def open_objects(uri: str) -> ObjectPlace:
    """The place at a URI.

    Raises:
        InputError: no file system of pyarrow.fs is meant by it, or one of its parameters.
    """
    opened = open_file_system(uri)
    return ObjectPlace(opened.file_system, opened.directory, opened)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectPlace:
    """A prefix of an object store.

    Args:
        fs: any file system of pyarrow.fs.
        directory: the prefix, as `fs` takes it, without a slash at its end.
        opened: by what address; its own directory and this one differ by what `sub` and `parent` did.
        patience_s: how long a call goes on trying, seconds.
    """

    fs: Any
    directory: str
    opened: Opened
    patience_s: float = PATIENCE_S

    def __reduce__(self) -> tuple[Any, ...]:
        """Whoever gets it opens it anew, with the credentials of its own surroundings."""
        return open_objects, (self.uri,)

    @property
    def uri(self) -> str:
        """Opens it again; no secret is in it."""
        query = urlencode(self.opened.parameters, safe="/:")
        return f"{self.where()}{'?' if query else ''}{query}"

    def hasty(self) -> ObjectPlace:
        """See `Place`."""
        opened = open_file_system(self.opened.uri, is_hasty=True)
        return ObjectPlace(opened.file_system, self.directory, opened, HASTE_S)

    def patient(self) -> ObjectPlace:
        """See `Place`."""
        if not self.opened.is_hasty:
            return self
        opened = open_file_system(self.opened.uri)
        return ObjectPlace(opened.file_system, self.directory, opened)

    @property
    def name(self) -> str:
        """The last part of the prefix."""
        return self.directory.rpartition("/")[2]

    @property
    def path(self) -> Path | None:
        """None: it is not in a file system of this host."""
        return None

    @property
    def parent(self) -> ObjectPlace:
        """The prefix without its last part."""
        return self._at(self.directory.rpartition("/")[0])

    def resolved(self) -> ObjectPlace:
        """Itself: an address is absolute."""
        return self

    def where(self, name: str = "") -> str:
        """The URI without its parameters."""
        return f"{self.opened.base}{self.directory}{'/' if name else ''}{name}"

    def sub(self, name: str) -> ObjectPlace:
        """The prefix longer by a part."""
        return self._at(f"{self.directory}/{name}")

    def exists(self) -> bool:
        """True when something is in it."""
        return bool(self.names())

    def lacks(self) -> str | None:
        """Its bucket, when the store says that there is none of that name."""
        if not self.opened.is_flat:
            return None
        bucket = self.directory.partition("/")[0]
        found = self._patiently("look for", "", lambda: self.fs.get_file_info(bucket))
        return f"bucket {bucket!r}" if found.type == fs.FileType.NotFound else None

    def make(self, *, new: bool = False) -> None:
        """Makes nothing where prefixes need not be made; see `Place`."""
        if new and self.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.where())
        if not self.opened.is_flat:
            self._patiently("make", "", lambda: self.fs.create_dir(self.directory, recursive=True))

    def names(self, pattern: str = "*") -> list[str]:
        """See `Place`."""
        selector = fs.FileSelector(self.directory, allow_not_found=True)
        found = self._patiently("list", "", lambda: self.fs.get_file_info(selector))
        return sorted(info.base_name for info in found if fnmatchcase(info.base_name, pattern))

    def size(self, name: str) -> int | None:
        """See `Place`."""
        info = self._patiently("look at", name, lambda: self.fs.get_file_info(self._key(name)))
        return int(info.size) if info.type == fs.FileType.File else None

    def read(self, name: str) -> bytes:
        """See `Place`."""
        return self._patiently("read", name, lambda: self._get(name))

    def read_each(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        """See `Place`; several at once."""

        def one(name: str) -> tuple[str, bytes | OSError]:
            try:
                return name, self.read(name)
            except OSError as error:
                return name, error

        with ThreadPoolExecutor(_READERS) as pool:
            yield from pool.map(one, names)

    def publish(self, name: str, data: Bytes, *, replace: bool) -> None:
        """See `Place`."""
        if not replace and self.size(name) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.where(name))
        self._patiently("write", name, lambda: self._put(name, data))

    def remove(self, name: str) -> None:
        """See `Place`."""
        try:
            self._patiently("remove", name, lambda: self.fs.delete_file(self._key(name)))
        except FileNotFoundError:
            return

    def rename(self, name: str, to: str) -> None:
        """See `Place`: a copy, then the old name goes."""
        self._patiently("copy", name, lambda: self.fs.copy_file(self._key(name), self._key(to)))
        self.remove(name)

    def remove_all(self) -> None:
        """See `Place`."""
        try:
            self._patiently("remove", "", lambda: self.fs.delete_dir(self.directory))
        except FileNotFoundError:
            return

    def _at(self, directory: str) -> ObjectPlace:
        return ObjectPlace(self.fs, directory, self.opened, self.patience_s)

    def _key(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def _get(self, name: str) -> bytes:
        with self.fs.open_input_file(self._key(name)) as file:
            size = file.size()
            data: bytes = file.read()
        if len(data) != size:
            raise OSError(errno.EIO, f"got {len(data):,} of {size:,} bytes")
        return data

    def _put(self, name: str, data: Bytes) -> None:
        with self.fs.open_output_stream(self._key(name), compression=None) as file:
            file.write(data)
        found = self.fs.get_file_info(self._key(name)).size
        if found != len(data):
            raise OSError(errno.EIO, f"{found or 0:,} of {len(data):,} bytes arrived")

    def _patiently(self, what: str, name: str, call: Callable[[], T]) -> T:
        """Does something again until it is done, the patience ends, or trying again has no use."""
        began, pause_s = time.monotonic(), _FIRST_PAUSE_S
        longest_s = min(_LONGEST_PAUSE_S, self.patience_s / 7)
        while True:
            try:
                return call()
            except (FileNotFoundError, FileExistsError):
                raise
            except (OSError, pa.ArrowException) as error:
                is_hasty, where = self.opened.is_hasty, self.where(name)
                denied = refusal(what, where, error, reads_only=is_hasty)
                if denied is not None:
                    raise denied from None
                if time.monotonic() - began + pause_s > self.patience_s:
                    endpoint = self.opened.endpoint if is_hasty else None
                    raise unreachable(what, where, error, self.patience_s, endpoint) from None
            time.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311 - spreads clients
            pause_s = min(2 * pause_s, longest_s)
