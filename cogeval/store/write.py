"""Writing one shard: streams while it fills, files when it is full.

Invariant: once `flush` has returned, its episodes survive the death of this process; once `seal` has,
they are complete under final names and on disk. A worker's shard is written by that worker alone.
Must not commit anything: a shard exists by its record, which only the driver writes.
"""

from __future__ import annotations

import hashlib
import io
import os
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cogeval.core.record import Episode
from cogeval.errors import RunError
from cogeval.store.batches import EpisodeBuffer
from cogeval.store.files import naming_full_disk, publish, write_all
from cogeval.store.schema import SCHEMAS
from cogeval.store.shards import (
    TABLES,
    FileSeal,
    SealedShard,
    check_shard_id,
    file_name,
    hot_name,
)

_HOT = pa.ipc.IpcWriteOptions(use_threads=False)
_FINAL = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=False)
_ROWS_PER_BATCH = 1 << 20  # few big batches: small ones cost their readers more than they save


class ShardWriter:
    """Collects finished episodes of one shard.

    Args:
        run_path: the run's directory.
        shard_id: ``<worker id>-<nnnn>``, never used before in this run.
        agent_names: names that the lineups' indexes stand for.
        worker: name of the worker, a column of the episodes.

    Raises:
        ValueError: the shard id is malformed.
    """

    def __init__(
        self, run_path: Path | str, shard_id: str, *, agent_names: Sequence[str], worker: str
    ) -> None:
        self.shard_id = check_shard_id(shard_id)
        self._directory = Path(run_path) / "shards"
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
            RunError: the shard is sealed, or an earlier write failed.
        """
        self._check_open()
        num = len(self._buffer)
        if num == 0:
            return 0
        batches = self._buffer.batches()
        try:
            if self._streams is None:
                self._streams = HotStreams(self._directory, self.shard_id)
            self._streams.append(batches)
        except BaseException:
            self.close()
            raise
        for table, batch in batches.items():
            self._batches[table].append(batch)
        self._buffer.clear()
        return num

    def seal(self) -> SealedShard:
        """Finishes the shard: flushes the rest and writes the final files.

        The streams stay until the driver has committed the shard.

        Returns:
            What the driver needs to commit it.

        Raises:
            StoreFull: there is no room; what was flushed can be recovered.
            RunError: the shard is empty or closed, or was recovered by the driver meanwhile.
        """
        self.flush()
        if not self._indexes:
            raise RunError(f"expected at least one episode in shard {self.shard_id} to seal it, got none")
        self.close()
        try:
            return write_files(
                self._directory, self.shard_id, tuple(self._indexes), self._batches, replace=False
            )
        except (FileExistsError, FileNotFoundError) as error:
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
        directory: the run's shards.
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
    directory: Path,
    shard_id: str,
    indexes: tuple[int, ...],
    batches: dict[str, list[Any]],
    *,
    replace: bool,
) -> SealedShard:
    """Writes the final files of a shard, episodes last: whoever sees those sees all.

    Args:
        directory: the run's shards.
        shard_id: the shard.
        indexes: schedule indexes of its episodes.
        batches: by table, in order.
        replace: whether files of these names may be there: only recovery replaces what it recovers.

    Returns:
        The seal.
    """
    files = {}
    for table in TABLES:
        rows = pa.Table.from_batches(batches[table], SCHEMAS[table])
        # A file takes one dictionary per column, and big batches are fast to read.
        rows = rows.unify_dictionaries().combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, SCHEMAS[table], options=_FINAL) as writer:
            writer.write_table(rows, max_chunksize=_ROWS_PER_BATCH)
        data = memoryview(sink.getvalue())
        files[table] = FileSeal(rows.num_rows, data.nbytes, hashlib.sha256(data).hexdigest())
        publish(directory / file_name(shard_id, table), data, replace=replace)
    return SealedShard(shard_id, indexes, files)
