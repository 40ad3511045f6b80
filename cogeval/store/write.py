"""Writing one shard: streams while it fills, files when it is full.

Invariant: once `flush` has returned, its episodes survive the death of this process; once `seal` has,
they are complete under final names and on disk. A worker's shard is written by that worker alone.
Must not commit anything: a shard exists by its record, which only the driver writes.
"""

from __future__ import annotations

import io
import os
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from cogeval.core.record import Episode
from cogeval.errors import RunError
from cogeval.store.batches import EpisodeBuffer
from cogeval.store.files import naming_full_disk, write_all
from cogeval.store.final import FinalFile
from cogeval.store.places import PlaceLike, place_at
from cogeval.store.roots import MANIFEST, SHARDS, check_there, naming_gone
from cogeval.store.schema import SCHEMAS
from cogeval.store.shards import (
    TABLES,
    SealedShard,
    check_shard_id,
    file_name,
    hot_name,
)
from cogeval.store.spool import leave_spool, open_spool, spool_of
from cogeval.store.sums import sums_of

_HOT = pa.ipc.IpcWriteOptions(use_threads=False)
_TRIES = 9  # to make streams in a spool that another worker, done with it, removes


class ShardWriter:
    """Collects finished episodes of one shard.

    Args:
        run: the run's place.
        shard_id: ``<worker id>-<nnnn>``, never used before in this run.
        agent_names: names that the lineups' indexes stand for.
        worker: name of the worker, a column of the episodes.
        spool: where its streams lie on this host; None: as `spool_of` has it.

    Raises:
        ValueError: the shard id is malformed.
    """

    def __init__(
        self,
        run: PlaceLike,
        shard_id: str,
        *,
        agent_names: Sequence[str],
        worker: str,
        spool: Path | None = None,
    ) -> None:
        place = place_at(run)
        self.shard_id = check_shard_id(shard_id)
        self._place = place
        self._shards = place.sub(SHARDS)
        self._spool = spool_of(place) if spool is None else spool
        self._is_apart = place.path is None  # the streams lie elsewhere than the finished files
        self._buffer = EpisodeBuffer(agent_names, worker)
        self._indexes: dict[int, None] = {}  # an ordered set
        self._batches: dict[str, list[Any]] = {table: [] for table in TABLES}
        self._streams: HotStreams | None = None
        self._closed = False

    @property
    def num_episodes(self) -> int:
        """Episodes added so far, flushed or not."""
        return len(self._indexes)

    @property
    def num_bytes(self) -> int:
        """Bytes flushed so far; about five times what the sealed files will have."""
        return self._streams.num_bytes if self._streams else 0

    def add(
        self,
        *,
        index: int,
        episode_id: str,
        block: int,
        lineup: Sequence[int],
        episode: Episode,
    ) -> None:
        """Takes one finished episode; nothing is written before `flush`.

        Args:
            index: its place in the schedule.
            episode_id: its identity, 32 hexadecimal digits.
            block: its block.
            lineup: per seat, index into the agent names.
            episode: what happened.

        Raises:
            ValueError: the shard holds that index already, or the lineup does not fit the episode.
            RunError: the shard is sealed, or an earlier write failed.
        """
        self._check_open()
        if index in self._indexes:
            raise ValueError(f"expected an index that shard {self.shard_id} does not hold, got {index!r}")
        self._buffer.add(
            index=index,
            episode_id=episode_id,
            block=block,
            lineup=lineup,
            episode=episode,
            finished_us=time.time_ns() // 1000,
        )
        self._indexes[index] = None

    def flush(self) -> int:
        """Hands everything added so far to the operating system, in one batch per table.

        Returns:
            Number of episodes written.

        Raises:
            StoreFull: there is no room; what was flushed before can be recovered.
            RunError: the shard is sealed, an earlier write failed, or the run's directory is gone.
        """
        self._check_open()
        num = len(self._buffer)
        if num == 0:
            return 0
        batches = self._buffer.batches()
        try:
            if self._streams is None:
                self._streams = self._open_streams()
            self._streams.append(batches)
        except BaseException:
            self.close()
            raise
        for table, batch in batches.items():
            self._batches[table].append(batch)
        self._buffer.clear()
        return num

    def _open_streams(self) -> HotStreams:
        """Makes the streams, and the spool for as often as one who leaves it removes it in between."""
        for _ in range(_TRIES if self._is_apart else 0):
            open_spool(self._place, self._spool)
            with suppress(FileNotFoundError):
                return HotStreams(self._spool, self.shard_id)
        with naming_gone(self._place):
            return HotStreams(self._spool, self.shard_id)

    def seal(self) -> SealedShard:
        """Finishes the shard: flushes the rest and writes the final files.

        The streams stay until the driver has committed the shard; those of a run in an object store until
        all files are there, for then they are recovered from there.

        Returns:
            What the driver needs to commit it.

        Raises:
            StoreFull: there is no room; what was flushed can be recovered.
            RunError: the shard is empty or closed, or was recovered by the driver meanwhile; or the run's
                directory is gone; or the object store does not take it, and what was flushed can be
                recovered on this host.
        """
        self.flush()
        if not self._indexes:
            raise RunError(f"expected at least one episode in shard {self.shard_id} to seal it, got none")
        self.close()
        try:
            sealed = write_files(
                self._shards, self.shard_id, tuple(self._indexes), self._batches, replace=False
            )
            if self._is_apart:
                remove_streams(self._spool, self.shard_id)
                leave_spool(self._place, self._spool)
            return sealed
        except (FileExistsError, FileNotFoundError) as error:
            check_there(self._place, SHARDS, MANIFEST)
            raise RunError(
                f"shard {self.shard_id} was recovered while its worker still wrote it; its worker must stop"
            ) from error

    def close(self) -> None:
        """Closes the streams; nothing can be added any more. What was flushed can be recovered."""
        self._closed = True
        if self._streams is not None:
            self._streams.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RunError(f"shard {self.shard_id} is closed; go on with a new one")


class HotStreams:
    """The streams of a shard that is being filled: one per table, and their checksums.

    A line of the checksum stream ends a flush: it gives, per table, the size of the stream and the
    crc32 of what this flush added, and a crc32 of itself. A flush without its line never happened.

    Args:
        directory: where they lie.
        shard_id: the shard.
    """

    def __init__(self, directory: Path, shard_id: str) -> None:
        self.num_bytes = 0
        self._fds: dict[str, int] = {}
        self._sizes = dict.fromkeys(TABLES, 0)
        self._buffers = {table: io.BytesIO() for table in TABLES}
        self._writers = {
            table: pa.ipc.new_stream(self._buffers[table], SCHEMAS[table], options=_HOT) for table in TABLES
        }
        try:
            for stream in (*TABLES, "sums"):
                path = directory / hot_name(shard_id, stream)
                with naming_full_disk(path):
                    self._fds[stream] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError as error:
            self.close()
            raise RunError(f"expected a new shard id, got {shard_id!r}: its streams are there") from error
        except BaseException:
            self.close()
            raise
        self._paths = {stream: directory / hot_name(shard_id, stream) for stream in self._fds}

    def append(self, batches: dict[str, Any]) -> None:
        """Appends one batch per table and the line that makes them count."""
        numbers: list[int] = []
        for table in TABLES:
            self._writers[table].write_batch(batches[table])
            data = self._buffers[table].getvalue()
            self._write(table, data)
            self._sizes[table] += len(data)
            self._buffers[table].seek(0)
            self._buffers[table].truncate()
            numbers += [self._sizes[table], zlib.crc32(data)]
        self._write("sums", sums_line(numbers))

    def close(self) -> None:
        """Closes the files."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds = {}

    def _write(self, stream: str, data: bytes) -> None:
        with naming_full_disk(self._paths[stream]):
            write_all(self._fds[stream], data)
        self.num_bytes += len(data)


def remove_streams(directory: Path, shard_id: str) -> None:
    """Removes what is there of a shard's streams.

    Args:
        directory: where they lie.
        shard_id: the shard.
    """
    for stream in (*TABLES, "sums"):
        (directory / hot_name(shard_id, stream)).unlink(missing_ok=True)


def sums_line(numbers: Sequence[int]) -> bytes:
    """A line of the checksum stream.

    Args:
        numbers: size and crc32, per table in the order of `TABLES`.
    """
    text = " ".join(map(str, numbers))
    return f"{text} {zlib.crc32(text.encode())}\n".encode()


def read_sums(data: bytes) -> list[list[int]]:
    """The numbers of every line of a checksum stream up to the first that is torn or damaged."""
    flushes = []
    for line in data.split(b"\n")[:-1]:
        body = line.rpartition(b" ")[0]
        if not body or line + b"\n" != body + f" {zlib.crc32(body)}\n".encode():
            break
        flushes.append([int(number) for number in body.split()])
    return flushes


def write_files(
    shards: PlaceLike,
    shard_id: str,
    indexes: tuple[int, ...],
    batches: dict[str, list[Any]],
    *,
    replace: bool,
) -> SealedShard:
    """Writes the final files of a shard, episodes last: whoever sees those sees all.

    Args:
        shards: the place of the run's shards.
        shard_id: the shard.
        indexes: schedule indexes of its episodes.
        batches: by table, in order.
        replace: whether files of these names may be there: only recovery replaces what it recovers.

    Returns:
        The seal.
    """
    place, files = place_at(shards), {}
    tables = {t: pa.Table.from_batches(batches[t], SCHEMAS[t]).unify_dictionaries() for t in TABLES}
    for table in TABLES:
        file = FinalFile(SCHEMAS[table])
        file.write(tables[table])
        data, files[table] = file.finish()
        place.publish(file_name(shard_id, table), data, replace=replace)
    return SealedShard(shard_id, indexes, files, sums_of(tables))
