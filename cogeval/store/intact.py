"""One committed shard at a time: whole, or named as damaged.

Invariant: no row comes out of a file whose size, checksum or format is not what its record says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cogeval.core.ranges import from_ranges, in_ranges
from cogeval.errors import InputError
from cogeval.store.columns import bool_column, to_numpy
from cogeval.store.damage import checked_bytes, find_damage
from cogeval.store.roots import call
from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS, conformed
from cogeval.store.shards import DamagedShard, ShardRecord, file_name

_PART_EPISODES = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """The tables of one intact shard, every row of them."""

    record: ShardRecord
    tables: dict[str, Any]  # pyarrow.Table by name

    def accepted(self, table: str) -> Any:
        """The rows that count, as a pyarrow table."""
        rows = self.tables[table]
        if not self.record.superseded:
            return rows
        return rows.filter(bool_column(np.isin(to_numpy(rows["index"]), from_ranges(self.record.accepted))))


def parts_of(shard: Shard) -> Iterator[Shard]:
    """A shard in pieces of a few episodes with all of their rows, which fit in memory as Python values too.

    Args:
        shard: with its episodes among its tables. When some table has its rows in another order than the
            episodes, which no writer does, it comes whole.
    """
    index = to_numpy(shard.tables["episodes"]["index"])
    starts: dict[str, NDArray[np.int64]] = {}
    for table, rows in shard.tables.items():
        mine = to_numpy(rows["index"])
        first = np.flatnonzero(np.append(True, mine[1:] != mine[:-1])) if mine.size else mine
        if index.size <= _PART_EPISODES or not np.array_equal(mine[first], index):
            yield shard
            return
        starts[table] = np.append(first[::_PART_EPISODES], mine.size)
    for i in range(starts["episodes"].size - 1):
        yield Shard(
            shard.record,
            {
                table: rows.slice(starts[table][i], starts[table][i + 1] - starts[table][i])
                for table, rows in shard.tables.items()
            },
        )


def part_with(
    run: RunDir,
    index: int,
    tables: Mapping[str, Sequence[str]],
    judged: Callable[[Shard | DamagedShard], Shard | DamagedShard] = lambda shard: shard,
) -> Shard:
    """The piece of a committed shard that has a recorded episode.

    Args:
        run: the run.
        index: the episode's place in the schedule.
        tables: the columns to read of each table, ``episodes`` among them.
        judged: gives the shard back, or says what else is wrong with it.

    Raises:
        InputError: the episode is not recorded, or its shard is damaged.
    """
    homes = [r.shard_id for r in run.records() if in_ranges(index, r.accepted)]
    if not homes:
        raise InputError(
            f"episode {index} of run {run.run_id} is not recorded; `cogeval status {call(run.place)}` says "
            "how many are"
        )
    shard = judged(*iter_shards(run, tables, shards=homes[:1]))
    if isinstance(shard, DamagedShard):
        raise InputError(shard.message(call(run.place)))
    for part in parts_of(shard):
        if index in to_numpy(part.tables["episodes"]["index"]):
            return part
    raise InputError(
        f"expected episode {index} in shard {homes[0]}, whose record lists it, got none of that index"
    )


def iter_shards(
    run: RunDir,
    tables: Mapping[str, Sequence[str]],
    *,
    shards: Collection[str] | None = None,
    verify: bool = True,
) -> Iterator[Shard | DamagedShard]:
    """Gives the committed shards one by one, so that a run larger than memory can be read.

    Args:
        run: the run.
        tables: the columns to read of each table; ``index`` comes with them in any case.
        shards: shard ids; None: all.
        verify: compare every file with its checksum.
    """
    records, damaged = run.scan()
    yield from (d for d in damaged if shards is None or d.shard_id in shards)
    for record in records:
        if shards is None or record.shard_id in shards:
            yield read_shard(run, record, tables, verify=verify)


def read_shard(
    run: RunDir, record: ShardRecord, tables: Mapping[str, Sequence[str]], *, verify: bool = True
) -> Shard | DamagedShard:
    """Reads some tables of a committed shard.

    Args:
        run: the run.
        record: the shard's record.
        tables: the columns to read of each table; ``index`` comes with them in any case.
        verify: compare every file with its checksum, those of tables that are not read too: an episode
            counts with all of its rows or not at all.
    """
    others = {table: seal for table, seal in record.files.items() if table not in tables}
    if verify and (problem := find_damage(run.shards, record, others)) is not None:
        return problem
    rows = {}
    for table, names in tables.items():
        seal, name = record.files[table], file_name(record.shard_id, table)
        found = checked_bytes(run.shards, name, seal, verify)
        if isinstance(found, bytes):
            found = _parse(found, table, names, seal.rows)
        if isinstance(found, str):
            return DamagedShard(record.shard_id, name, found, record.num_accepted)
        rows[table] = found
    return Shard(record, rows)


def _parse(data: bytes, table: str, names: Sequence[str], num_rows: int) -> Any:
    """The table, or what is wrong with it."""
    wanted = pa.schema(field for field in SCHEMAS[table] if field.name in {"index", *names})
    try:
        held = pa.ipc.open_file(pa.BufferReader(data)).schema.names  # an older version has fewer columns
        options = pa.ipc.IpcReadOptions(included_fields=[held.index(n) for n in wanted.names if n in held])
        rows = pa.ipc.open_file(pa.BufferReader(data), options=options).read_all()
    except (pa.ArrowException, OSError) as error:
        return f"cannot be read as Arrow ({str(error).splitlines()[0]})"
    if rows.num_rows != num_rows:
        return f"has {rows.num_rows} rows where {num_rows} were written"
    try:
        return conformed(rows, wanted)
    except ValueError as error:
        return str(error)
