"""Saving what a dead worker had flushed.

Invariant: every episode whose flush had ended is in a sealed shard afterwards, none twice; nothing is
removed before its shard is committed. May itself be killed at any moment and be run again. Call it
only for workers that are dead or must be taken for dead: a worker that lives on cannot seal a shard
that was recovered, and its streams are gone once that is committed.

On an object store a name is written by one process with one content, for nothing there keeps two from
writing it. So what is sealed from streams gets a shard id of its own, made of its content: sealing the same
streams again gives the same files, and a worker that was not dead after all writes others.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cogeval.core.ranges import from_ranges
from cogeval.store.columns import bool_column, to_numpy
from cogeval.store.files import leftovers
from cogeval.store.marks import is_ours, read_marks
from cogeval.store.places import Place, PlaceLike, place_at
from cogeval.store.roots import SHARDS, naming_gone
from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS, conformed
from cogeval.store.shards import (
    TABLES,
    FileSeal,
    Indexes,
    SealedShard,
    ShardRecord,
    file_name,
    hot_name,
    is_merged_id,
    record_name,
    set_aside_name,
)
from cogeval.store.spool import leave_spool, spools_of
from cogeval.store.sums import sums_of
from cogeval.store.tidy import tidy
from cogeval.store.write import read_sums, remove_streams, write_files


@dataclass(frozen=True, slots=True)
class _Remains:
    """What is there of a run's shards, seen from this host.

    Args:
        shards: the place of the finished files and records.
        spools: where streams lie on this host.
        final: names in `shards`.
        hot: names in `spools`, and in which of them each is.
        merged: ids of shards that others have taken the place of.
    """

    shards: Place
    spools: tuple[Path, ...]
    final: frozenset[str]
    hot: Mapping[str, Path]
    merged: frozenset[str]

    @property
    def is_apart(self) -> bool:
        """True for a run in an object store: its streams lie elsewhere than its finished files."""
        return self.shards.path is None

    def is_settled(self, shard_id: str) -> bool:
        """True when the shard is committed, merged, or its damaged remains have been set aside."""
        names = {record_name(shard_id), set_aside_name(shard_id)}
        return shard_id in self.merged or not names.isdisjoint(self.final)

    def unsettled(self) -> list[str]:
        """Ids of the shards that have streams or files but no record, in order."""
        found = {name.split(".")[0] for name in {*self.final, *self.hot} if _is_data(name)}
        return sorted(s for s in found if not (self.is_settled(s) or is_merged_id(s)))

    def stream(self, shard_id: str, stream: str) -> Path | None:
        """The path of a stream; None when it is not there."""
        name = hot_name(shard_id, stream)
        return self.hot[name] / name if name in self.hot else None


def _remains(run: PlaceLike, spool: Path | None) -> _Remains:
    place = place_at(run)
    shards = place.sub(SHARDS)
    named = spools_of(place) if spool is None else [spool]
    spools = tuple(d for d in named if (d.is_dir() if d == shards.path else is_ours(d)))
    hot: dict[str, Path] = {}
    for directory in reversed(spools):  # a name is in one of them; of two, the present one's counts
        hot |= dict.fromkeys(os.listdir(directory), directory)  # noqa: PTH208 - names
    final = frozenset(hot if shards.path in spools else shards.names())
    remains = _Remains(shards, spools, final, hot, frozenset())
    unsettled = remains.unsettled()
    mergers = RunDir(place).mergers() if unsettled else {}  # read only when they may settle something
    merged = {s for s in unsettled if s in mergers and _is_held(_flushed(remains, s), mergers[s])}
    return replace(remains, merged=frozenset(merged))


def _is_held(indexes: Indexes, record: ShardRecord) -> bool:
    """True when a merged shard has all of some episodes: what it only claims to replace is recovered."""
    return bool(np.isin(indexes, from_ranges(record.accepted)).all())


def hot_shards(run: PlaceLike, spool: Path | None = None) -> list[str]:
    """Ids of the shards that have streams or files but no record, in order.

    Args:
        run: the run's place.
        spool: where streams lie on this host; None: wherever `spools_of` knows of.
    """
    return _remains(run, spool).unsettled()


def open_indexes(run: PlaceLike, spool: Path | None = None) -> Indexes:
    """What `recover` would find, for a look only: changes nothing and checks no rows.

    Args:
        run: the run's place.
        spool: where streams lie on this host; None: wherever `spools_of` knows of.

    Returns:
        Schedule indexes of the episodes flushed to shards that have no record yet (int64, ascending).
    """
    remains = _remains(run, spool)
    found = [_flushed(remains, shard_id) for shard_id in remains.unsettled()]
    return np.unique(np.concatenate([np.empty(0, np.int64), *found]))


def _flushed(remains: _Remains, shard_id: str) -> Indexes:
    """Indexes in the episodes of an open shard; none when it was committed meanwhile."""
    position = SCHEMAS["episodes"].get_field_index("index")
    only = pa.ipc.IpcReadOptions(included_fields=[position], use_threads=False)
    found = [np.empty(0, np.int64)]
    with suppress(OSError, pa.ArrowException):
        hot = remains.stream(shard_id, "episodes")
        if hot is None or not hot.exists():
            data = remains.shards.read(file_name(shard_id, "episodes"))
            return to_numpy(pa.ipc.open_file(pa.BufferReader(data), options=only).read_all()["index"])
        num_flushes = len(read_sums(_read(remains.stream(shard_id, "sums"))))
        reader = pa.ipc.open_stream(pa.memory_map(str(hot)), options=only)
        for _ in range(num_flushes):
            found.append(to_numpy(reader.read_next_batch()["index"]))  # noqa: PERF401 - a torn one ends it
    return np.concatenate(found)


def recover(run: PlaceLike, prefix: str = "", spool: Path | None = None) -> list[SealedShard]:
    """Seals what can be read of the shards of dead workers.

    Sees the streams on this host, and finished files without a record wherever they come from.

    Args:
        run: the run's place.
        prefix: a worker id, or the beginning of worker ids up to a dash; empty: all workers.
        spool: where streams lie on this host; None: wherever `spools_of` knows of.

    Returns:
        The shards to commit. One that had no complete flush is removed and not among them.

    Raises:
        StoreFull: there is no room to seal; the streams stay.
        RunError: the object store does not take them, and the streams stay; or the run's directory is gone.
    """
    if not prefix:
        tidy(RunDir(run))
    remains = _remains(run, spool)
    mine = f"{prefix}-" if prefix else ""
    _tidy(remains, mine)
    sealed: dict[str, SealedShard] = {}
    for shard_id in remains.unsettled():
        if not shard_id.startswith(mine) or shard_id in sealed:
            continue
        shard = _finished(remains, shard_id)
        if shard is None:
            shard = _from_streams(remains, shard_id)
            if shard is None or remains.is_apart:
                _remove_files(remains, shard_id, alone=not prefix)
        if shard is None or remains.is_apart:
            for directory in remains.spools:
                remove_streams(directory, shard_id)
        if shard is not None and not remains.is_settled(shard.shard_id):
            sealed[shard.shard_id] = shard
    if remains.is_apart and not mine:
        _leave(place_at(run), remains.spools)
    return [sealed[shard_id] for shard_id in sorted(sealed)]


def _is_data(name: str) -> bool:
    parts = name.split(".")
    return len(parts) == 3 and parts[1] in (*TABLES, "sums") and parts[2] in {"hot", "arrow"}


def _tidy(remains: _Remains, prefix: str) -> None:
    """Removes what dead processes left: temporary files, and streams of committed shards."""
    for directory in remains.spools:
        for path in leftovers(directory, prefix):
            path.unlink(missing_ok=True)
    for name, directory in remains.hot.items():
        is_stream = name.startswith(prefix) and name.endswith(".hot")
        if is_stream and remains.is_settled(name.split(".")[0]):
            (directory / name).unlink(missing_ok=True)


def _leave(place: Place, spools: Sequence[Path]) -> None:
    """Removes emptied spools, and has their marks say so; those of a spool that is gone for good too."""
    marked = [Path(mark.directory) for mark in read_marks(place, here=True) if not mark.is_emptied]
    for spool in dict.fromkeys([*spools, *marked]):
        if spool in spools or not os.path.lexists(spool):
            leave_spool(place, spool)


def _remove_files(remains: _Remains, shard_id: str, *, alone: bool) -> None:
    """Removes files that are no whole shard.

    In an object store only when nobody else works on this run's shards (`alone`): another host may be
    sending the rest of them just now.
    """
    if alone or not remains.is_apart:
        for table in TABLES:
            if file_name(shard_id, table) in remains.final:
                remains.shards.remove(file_name(shard_id, table))


def _finished(remains: _Remains, shard_id: str) -> SealedShard | None:
    """The shard from its final files, when all are there, whole, and agree."""
    files: dict[str, FileSeal] = {}
    tables: dict[str, Any] = {}
    if not all(file_name(shard_id, table) in remains.final for table in TABLES):
        return None
    for table in TABLES:
        try:
            data = remains.shards.read(file_name(shard_id, table))
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
    return SealedShard(shard_id, tuple(indexes.tolist()), files, sums_of(tables))


def _from_streams(remains: _Remains, shard_id: str) -> SealedShard | None:
    """Seals the complete flushes of a shard; None when there is none."""
    data = {table: _read(remains.stream(shard_id, table)) for table in TABLES}
    sums = read_sums(_read(remains.stream(shard_id, "sums")))
    num_flushes = _count_intact(data, sums)
    batches = {table: list(_batches(data[table], num_flushes)) for table in TABLES}
    num = min(len(b) for b in batches.values())
    if num == 0:
        return None
    tables = {t: conformed(pa.Table.from_batches(b[:num]), SCHEMAS[t]) for t, b in batches.items()}
    indexes = to_numpy(tables["episodes"]["index"])
    whole = indexes[_whole(tables, indexes)]
    name = _recovered_id(shard_id, sums[:num]) if remains.is_apart else shard_id
    if not whole.size or remains.is_settled(name):
        return None
    kept = {
        t: rows.filter(bool_column(np.isin(to_numpy(rows["index"]), whole))).to_batches()
        for t, rows in tables.items()
    }
    with naming_gone(remains.shards.parent):
        return write_files(remains.shards, name, tuple(whole.tolist()), kept, replace=True)


def _recovered_id(shard_id: str, sums: list[list[int]]) -> str:
    """The id of what is sealed of a shard's streams: the same for the same flushes."""
    worker, _, number = shard_id.rpartition("-")
    return f"{worker}-r{hashlib.sha256(repr(sums).encode()).hexdigest()[:8]}-{number}"


def _read(path: Path | None) -> bytes:
    return path.read_bytes() if path is not None and path.exists() else b""


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
