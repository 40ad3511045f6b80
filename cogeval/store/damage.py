"""What is wrong with the files of a committed shard, and which shards count when that is a merged one.

Invariant: a merged shard that is damaged hides nothing that is still there: what it replaced counts again,
for who reads as for `resume`, which sets it aside. Looks at sizes and checksums, never at rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import msgspec
import numpy as np

from cogeval.core.ranges import from_ranges
from cogeval.store.places import Place
from cogeval.store.shards import DamagedShard, FileSeal, ShardRecord, file_name, standing

Look = Callable[[ShardRecord], DamagedShard | None]
"""What is wrong with a shard's files; None: nothing."""


def find_damage(
    shards: Place,
    record: ShardRecord,
    files: Mapping[str, FileSeal] | None = None,
    *,
    verify: bool = True,
) -> DamagedShard | None:
    """What is wrong with a shard's files; None: nothing.

    Args:
        shards: the place of the run's shards.
        record: the shard's record.
        files: the seals of those to look at, by table; None: all.
        verify: compare every file with its checksum, not only with its size.
    """
    for table, seal in (record.files if files is None else files).items():
        name = file_name(record.shard_id, table)
        found = checked_bytes(shards, name, seal) if verify else _size_problem(shards, name, seal)
        if isinstance(found, str):
            return DamagedShard(record.shard_id, name, found, record.num_accepted)
    return None


def counting(
    shards: Place, believed: Iterable[ShardRecord], look: Look | None = None
) -> tuple[list[ShardRecord], list[DamagedShard]]:
    """Says which shards count: those that none merged another one into, or only damaged ones.

    Only a merged shard is looked at that something it replaced lies beside, since its merger was killed.

    Args:
        shards: the place of the run's shards.
        believed: the records to believe, in order.
        look: how a merged shard is looked at; None: every file is compared with its checksum.

    Returns:
        The records that count, in order, and the merged shards that are damaged and hide nothing.
    """
    look = look or partial(find_damage, shards)
    left, intact = list(believed), set[str]()
    damaged: list[tuple[ShardRecord, DamagedShard]] = []
    while True:
        counted, there = standing(left), {record.shard_id for record in left}
        broken = []
        for record in counted:
            if record.shard_id in intact or there.isdisjoint(record.merged):
                continue
            problem = look(record)
            if problem is None:
                intact.add(record.shard_id)
            else:
                broken.append((record, problem))
        if not broken:
            held = [record for record in counted if damaged and look(record) is None]
            return counted, [_with_elsewhere(record, problem, held) for record, problem in damaged]
        damaged += broken
        gone = {record.shard_id for record, _ in broken}
        left = [record for record in left if record.shard_id not in gone]


def _with_elsewhere(merged: ShardRecord, problem: DamagedShard, held: Iterable[ShardRecord]) -> DamagedShard:
    """Adds how many of a merged shard's episodes count in what it replaced and what is intact of that."""
    olds = [pair for record in held if record.shard_id in merged.merged for pair in record.accepted]
    num = int(np.isin(from_ranges(merged.accepted), from_ranges(olds)).sum())
    return msgspec.structs.replace(problem, num_elsewhere=num)


def checked_bytes(shards: Place, name: str, seal: FileSeal, verify: bool = True) -> bytes | str:
    """A file's content, or what is wrong with it.

    It is read, not mapped: what was checked is what gets parsed, and a disk that fails later raises
    an error here instead of killing the process.

    Args:
        shards: the place of the run's shards.
        name: the file.
        seal: what its record says of it.
        verify: compare it with its checksum, not only with its size.
    """
    try:
        data = shards.read(name)
    except OSError as error:
        return _unreadable(error)
    if len(data) != seal.size:
        return _wrong_size(len(data), seal)
    if verify and hashlib.sha256(data).hexdigest() != seal.sha256:
        return "does not match its checksum"
    return data


def _size_problem(shards: Place, name: str, seal: FileSeal) -> str | None:
    try:
        size = shards.size(name)
    except OSError as error:
        return _unreadable(error)
    if size is None:
        return "is missing"
    return None if size == seal.size else _wrong_size(size, seal)


def _unreadable(error: OSError) -> str:
    return "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"


def _wrong_size(size: int, seal: FileSeal) -> str:
    return f"has {size:,} bytes where {seal.size:,} were written"
