"""Merging small shards of a run into large ones.

Invariant: a merged shard takes the place of others by its record alone, which names them; whatever
happens before it is there changes nothing, and what happens afterwards only tidies. Rows of accepted
episodes stay as they are; second copies go, and what they cost stays in the record.

One source and what is written of one merged shard are in memory at a time, never the run.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from cogeval.core.ranges import from_ranges, to_ranges
from cogeval.errors import RunError
from cogeval.store.columns import number_column, text_column, to_codes
from cogeval.store.final import FinalFile
from cogeval.store.intact import Shard, read_shard
from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS
from cogeval.store.shards import (
    MERGING,
    TABLES,
    DamagedShard,
    ShardRecord,
    Sums,
    file_name,
)
from cogeval.store.sums import added, sums_of
from cogeval.store.tidy import tidy
from cogeval.store.totals import complete_entry, computed_digest, logged_digest, shard_sums

TARGET_BYTES: Final = 128_000_000
MOST_DECISIONS: Final = 4_000_000
"""Rows of decisions that no merged shard exceeds: cheap ones take 10 bytes on disk and 100 in memory."""

_PART_BYTES: Final = 32_000_000  # of rows, gathered before they are written: big batches read fast

_NAMES: Final = {
    table: tuple(field.name for field in schema if pa.types.is_dictionary(field.type))
    for table, schema in SCHEMAS.items()
}
"""The dictionary-encoded columns of each table."""

_ALL: Final = {table: tuple(schema.names) for table, schema in SCHEMAS.items()}


@dataclass(frozen=True, slots=True)
class Compacted:
    """What merging came to.

    Args:
        num_before: shards that counted, damaged merged ones set aside.
        num_merged: shards that were merged.
        num_made: shards that they became.
        num_bytes: size of these.
        damaged: shards that could not be read and stay as they are, and merged ones that were set aside;
            `resume` plays what is missing of their episodes again.
    """

    num_before: int
    num_merged: int
    num_made: int
    num_bytes: int
    damaged: tuple[DamagedShard, ...]


def plan_groups(records: Sequence[ShardRecord], target_bytes: int = TARGET_BYTES) -> list[list[ShardRecord]]:
    """Says which shards become one: those below half of both limits, in the order of their episodes.

    Args:
        records: the shards that count.
        target_bytes: size that no merged shard exceeds; see also `MOST_DECISIONS`.

    Returns:
        Groups of at least two shards with episodes that count among them.
    """
    small = [record for record in records if _share(record, target_bytes) < 0.5]
    small.sort(key=lambda record: (not record.accepted, record.accepted[:1], record.shard_id))
    groups: list[list[ShardRecord]] = [[]]
    for record in small:
        if not _fits([*groups[-1], record], target_bytes):
            groups.append([])
        groups[-1].append(record)
    return [group for group in groups if len(group) > 1 and any(record.accepted for record in group)]


def _fits(group: Sequence[ShardRecord], target_bytes: int) -> bool:
    num_decisions = sum(_num_decisions(record) for record in group)
    return num_decisions <= MOST_DECISIONS and sum(record.num_bytes for record in group) <= target_bytes


def _share(record: ShardRecord, target_bytes: int) -> float:
    """How much of a merged shard it would fill, 0 .. 1 and more."""
    return max(record.num_bytes / target_bytes, _num_decisions(record) / MOST_DECISIONS)


def _num_decisions(record: ShardRecord) -> int:
    return record.files["decisions"].rows


def compact(
    run: RunDir, target_bytes: int = TARGET_BYTES, told: Callable[[int, int], None] | None = None
) -> Compacted:
    """Merges a run's small shards; takes the run's lock.

    Args:
        run: the run.
        target_bytes: see `plan_groups`.
        told: called with the number of groups done and of all.

    Raises:
        InputError: a driver holds the run.
        StoreFull: there is no room; what was merged so far stays.
    """
    with run.lock():
        aside = tidy(run)
        records, unreadable = run.scan()
        logged = None if unreadable else logged_digest(run.log_lines(), records)
        digest = logged if logged is not None or unreadable else _lost_digest(run, records)
        groups = plan_groups(records, target_bytes)
        batch, made, damaged = secrets.token_hex(4), [], [*aside]
        for number, group in enumerate(groups):
            if told is not None:
                told(number, len(groups))
            merged, broken = _merge(run, group, f"{MERGING}-{batch}-{number:04d}")
            damaged += broken
            if merged is not None:
                made.append(merged)
                for bad in tidy(run, [merged]):
                    raise RunError(f"{bad.file} {bad.problem} right after it was written; nothing is lost")
        if digest is not None and (made or logged is None):
            run.append_log(complete_entry(digest, run.records()))
    return Compacted(
        num_before=len(records),
        num_merged=len({record.shard_id for record in records}.intersection(_merged(made))),
        num_made=len(made),
        num_bytes=sum(record.num_bytes for record in made),
        damaged=tuple(damaged),
    )


def _lost_digest(run: RunDir, records: Sequence[ShardRecord]) -> str | None:
    """The digest of a complete run whose log has that of other records, since a merger was killed."""
    if all(entry.get("event") != "complete" for entry in run.log_lines()):
        return None
    return computed_digest(run, [record.shard_id for record in records])


def _merge(
    run: RunDir, group: Sequence[ShardRecord], shard_id: str
) -> tuple[ShardRecord | None, list[DamagedShard]]:
    """Writes one shard in place of several and commits it; None when fewer than two of them are whole."""
    whole, damaged, names = [], [], _Names()
    for record in group:
        shard = read_shard(run, record, _NAMES)
        if isinstance(shard, DamagedShard):
            damaged.append(shard)
        else:
            whole.append(record)
            names.learn(shard)
    if len(whole) < 2 or not any(record.accepted for record in whole):
        return None, damaged
    files = {table: FinalFile(SCHEMAS[table]) for table in TABLES}
    sums = []
    for part in _parts(run, whole, names):
        for table in TABLES:
            files[table].write(part[table])
        sums.append(sums_of(part))
    seals = {}
    for table in TABLES:  # episodes last, as every shard is written
        data, seals[table] = files.pop(table).finish()
        run.shards.publish(file_name(shard_id, table), data, replace=False)
    record = ShardRecord(
        shard_id,
        seals,
        to_ranges(from_ranges(pair for record in whole for pair in record.accepted)),
        (),
        max(record.committed for record in whole),
        sums=added(sums),
        superseded_sums=_superseded(run, whole),
        # What was merged into them earlier too: streams of it may still turn up on another host.
        merged=tuple(dict.fromkeys([*(record.shard_id for record in whole), *_merged(whole)])),
    )
    run.add(record)
    return record, damaged


def _merged(records: Iterable[ShardRecord]) -> list[str]:
    """The shards whose place these have taken."""
    return [shard_id for record in records for shard_id in record.merged]


def _superseded(run: RunDir, records: Sequence[ShardRecord]) -> Sums | None:
    """What second copies in these shards, and those lost in earlier mergers, add up to; None: no such."""
    found = []
    for record in records:
        if record.superseded or record.superseded_sums is not None:
            sums = shard_sums(run, record)
            if isinstance(sums, DamagedShard):
                raise _changed(sums)
            found.append(sums[1])
    return added(found) if found else None


def _changed(shard: DamagedShard) -> OSError:
    return OSError(f"shard {shard.shard_id}: {shard.file} {shard.problem}, and was whole a moment ago")


def _parts(run: RunDir, records: Sequence[ShardRecord], names: _Names) -> Iterator[dict[str, Any]]:
    """The accepted rows of some shards, a few shards at a time, with common dictionaries."""
    waiting: dict[str, list[Any]] = {table: [] for table in TABLES}
    num_bytes = 0
    for record in records:
        shard = read_shard(run, record, _ALL)
        if isinstance(shard, DamagedShard):
            raise _changed(shard)
        for table in TABLES:
            rows = names.recoded(table, shard.accepted(table))
            num_bytes += rows.nbytes
            waiting[table].append(rows)
        if num_bytes >= _PART_BYTES:
            yield {table: pa.concat_tables(rows) for table, rows in waiting.items()}
            waiting, num_bytes = {table: [] for table in TABLES}, 0
    if waiting["episodes"]:
        yield {table: pa.concat_tables(rows) for table, rows in waiting.items()}


class _Names:
    """The dictionaries of a merged shard: of each column, every name of every source, once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], dict[str, int]] = {
            (table, column): {} for table, columns in _NAMES.items() for column in columns
        }
        self._columns: dict[tuple[str, str], Any] = {}

    def learn(self, shard: Shard) -> None:
        """Adds the names of a source; only before the first rows are recoded."""
        for (table, column), numbers in self._numbers.items():
            for name in to_codes(shard.tables[table][column])[1]:
                numbers.setdefault(name, len(numbers))

    def recoded(self, table: str, rows: Any) -> Any:
        """Rows of a source with the common dictionaries in place of its own."""
        columns = []
        for field in SCHEMAS[table]:
            column = rows[field.name]
            if pa.types.is_dictionary(field.type):
                column = self._recoded((table, field.name), column)
            columns.append(column)
        return pa.Table.from_arrays(columns, schema=SCHEMAS[table])

    def _recoded(self, key: tuple[str, str], column: Any) -> Any:
        numbers = self._numbers[key]
        if key not in self._columns:
            self._columns[key] = text_column(list(numbers) or [""])
        codes, names = to_codes(column)
        lookup = np.array([*(numbers[name] for name in names), -1], np.int32)
        found = lookup[codes]  # the code of null, -1, finds the last entry
        # Null cells get an index that exists: readers that unify dictionaries look every index up.
        indices = number_column(np.maximum(found, 0), pa.int32(), found < 0)
        return pa.DictionaryArray.from_arrays(indices, self._columns[key])
