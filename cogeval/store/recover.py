"""Saving what a dead worker had flushed.

Invariant: every episode whose flush had ended is in a sealed shard afterwards, none twice; nothing is
removed before its shard is committed. May itself be killed at any moment and be run again. Call it
only for workers that are dead or must be taken for dead: a worker that lives on cannot seal a shard
that was recovered, and its streams are gone once that is committed.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cogeval.store.columns import bool_column, to_numpy
from cogeval.store.files import leftovers
from cogeval.store.schema import SCHEMAS, conformed
from cogeval.store.shards import (
    TABLES,
    FileSeal,
    Indexes,
    SealedShard,
    file_name,
    hot_name,
    record_name,
    set_aside_name,
)
from cogeval.store.write import read_sums, write_files


def hot_shards(run_path: Path | str) -> list[str]:
    """Ids of the shards that have streams or files but no record, in order.

    Args:
        run_path: the run's directory.
    """
    directory = Path(run_path) / "shards"
    found = {path.name.split(".")[0] for path in directory.glob("*.*.*") if _is_data(path)}
    return sorted(shard_id for shard_id in found if not _is_settled(directory, shard_id))


def open_indexes(run_path: Path | str) -> Indexes:
    """What `recover` would find, for a look only: changes nothing and checks no rows.

    Args:
        run_path: the run's directory.

    Returns:
        Schedule indexes of the episodes flushed to shards that have no record yet (int64, ascending).
    """
    directory = Path(run_path) / "shards"
    found = [_flushed(directory, shard_id) for shard_id in hot_shards(run_path)]
    return np.unique(np.concatenate([np.empty(0, np.int64), *found]))


def _flushed(directory: Path, shard_id: str) -> Indexes:
    """Indexes in the episodes of an open shard; none when it was committed meanwhile."""
    position = SCHEMAS["episodes"].get_field_index("index")
    only = pa.ipc.IpcReadOptions(included_fields=[position], use_threads=False)
    found = [np.empty(0, np.int64)]
    with suppress(OSError, pa.ArrowException):
        hot = directory / hot_name(shard_id, "episodes")
        if not hot.exists():
            final = directory / file_name(shard_id, "episodes")
            return to_numpy(pa.ipc.open_file(pa.memory_map(str(final)), options=only).read_all()["index"])
        num_flushes = len(read_sums(_read(directory / hot_name(shard_id, "sums"))))
        reader = pa.ipc.open_stream(pa.memory_map(str(hot)), options=only)
        for _ in range(num_flushes):
            found.append(to_numpy(reader.read_next_batch()["index"]))  # noqa: PERF401 - a torn one ends it
    return np.concatenate(found)


def recover(run_path: Path | str, prefix: str = "") -> list[SealedShard]:
    """Seals what can be read of the shards of dead workers, under the same ids.

    Args:
        run_path: the run's directory.
        prefix: a worker id, or the beginning of worker ids up to a dash; empty: all workers.

    Returns:
        The shards to commit. One that had no complete flush is removed and not among them.

    Raises:
        StoreFull: there is no room to seal; the streams stay.
    """
    directory = Path(run_path) / "shards"
    mine = f"{prefix}-" if prefix else ""
    _tidy(directory, mine)
    sealed = []
    for shard_id in hot_shards(run_path):
        if shard_id.startswith(mine):
            shard = _finished(directory, shard_id) or _from_streams(directory, shard_id)
            if shard is None:
                _remove(directory, shard_id)
            else:
                sealed.append(shard)
    return sealed


def _is_data(path: Path) -> bool:
    parts = path.name.split(".")
    return len(parts) == 3 and parts[1] in (*TABLES, "sums") and parts[2] in {"hot", "arrow"}


def _is_settled(directory: Path, shard_id: str) -> bool:
    """True when the shard is committed, or its damaged remains have been set aside."""
    return any((directory / name).exists() for name in (record_name(shard_id), set_aside_name(shard_id)))


def _tidy(directory: Path, prefix: str) -> None:
    """Removes what dead processes left: temporary files, and streams of committed shards."""
    for path in leftovers(directory, prefix):
        path.unlink(missing_ok=True)
    for path in directory.glob(f"{prefix}*.hot"):
        if _is_settled(directory, path.name.split(".")[0]):
            path.unlink(missing_ok=True)


def _remove(directory: Path, shard_id: str) -> None:
    for name in [hot_name(shard_id, s) for s in (*TABLES, "sums")] + [file_name(shard_id, t) for t in TABLES]:
        (directory / name).unlink(missing_ok=True)


def _finished(directory: Path, shard_id: str) -> SealedShard | None:
    """The shard from its final files, when all are there, whole, and agree."""
    files: dict[str, FileSeal] = {}
    tables: dict[str, Any] = {}
    for table in TABLES:
        try:
            data = (directory / file_name(shard_id, table)).read_bytes()
            rows = pa.ipc.open_file(pa.BufferReader(data)).read_all()
            rows.validate(full=True)
        except (OSError, pa.ArrowException):
            return None
        files[table] = FileSeal(rows.num_rows, len(data), hashlib.sha256(data).hexdigest())
        tables[table] = rows
    indexes = to_numpy(tables["episodes"]["index"])
    whole = _whole(tables, indexes)
    if not whole.all() or not whole.size:
        return None
    return SealedShard(shard_id, tuple(indexes.tolist()), files)


def _from_streams(directory: Path, shard_id: str) -> SealedShard | None:
    """Seals the complete flushes of a shard; None when there is none."""
    data = {table: _read(directory / hot_name(shard_id, table)) for table in TABLES}
    num_flushes = _count_intact(data, read_sums(_read(directory / hot_name(shard_id, "sums"))))
    batches = {table: list(_batches(data[table], num_flushes)) for table in TABLES}
    num = min(len(b) for b in batches.values())
    if num == 0:
        return None
    tables = {t: conformed(pa.Table.from_batches(b[:num]), SCHEMAS[t]) for t, b in batches.items()}
    indexes = to_numpy(tables["episodes"]["index"])
    whole = indexes[_whole(tables, indexes)]
    if not whole.size:
        return None
    kept = {
        t: rows.filter(bool_column(np.isin(to_numpy(rows["index"]), whole))).to_batches()
        for t, rows in tables.items()
    }
    return write_files(directory, shard_id, tuple(whole.tolist()), kept, replace=True)


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _count_intact(data: dict[str, bytes], sums: list[list[int]]) -> int:
    """Number of flushes before the first that is cut short or damaged in any stream."""
    starts = dict.fromkeys(TABLES, 0)
    for number, line in enumerate(sums):
        for table, size, crc in zip(TABLES, line[::2], line[1::2], strict=True):
            part = memoryview(data[table])[starts[table] : size]
            if len(part) != size - starts[table] or zlib.crc32(part) != crc:
                return number
            starts[table] = size
    return len(sums)


def _batches(data: bytes, num: int) -> Iterator[Any]:
    """The first batches of a stream: every flush wrote one."""
    if num:
        reader = pa.ipc.open_stream(pa.BufferReader(data))
        for _ in range(num):
            yield reader.read_next_batch()


def _whole(tables: dict[str, Any], indexes: Any) -> Any:
    """Which episodes have all their rows: bool [num_episodes].

    An episode is whole when its index occurs once, its seats count 0, 1, 2, ..., and its decisions
    are as many as its seats say.
    """
    order = np.sort(indexes)
    once = ~np.isin(indexes, order[1:][order[1:] == order[:-1]])
    seats, decisions = tables["seats"], tables["decisions"]
    accepted = to_numpy(decisions["index"])[to_numpy(decisions["accepted"])]
    num_seats = _sums(indexes, to_numpy(seats["index"]), None)
    highest = _sums(indexes, to_numpy(seats["index"]), to_numpy(seats["seat"]))
    expected = _sums(indexes, to_numpy(seats["index"]), to_numpy(seats["num_decisions"]))
    found = _sums(indexes, accepted, None)
    full_house = (num_seats > 0) & (highest == num_seats * (num_seats - 1) / 2)
    return once & full_house & (expected == found)


def _sums(indexes: Any, keys: Any, weights: Any) -> Any:
    """Sums weights (default: counts) of the rows of each index; rows of other indexes are left out."""
    order = np.argsort(indexes, kind="stable")
    place = np.searchsorted(indexes, keys, sorter=order)
    known = place < indexes.size
    known[known] = indexes[order[place[known]]] == keys[known]
    values = None if weights is None else weights[known]
    return np.bincount(order[place[known]], values, indexes.size)
