"""How much a run holds, from its records alone.

Invariant: no file of rows is opened but those of records without sums, which an older version wrote, and,
of a run of at most `SMALL_BYTES`, to compare checksums. So it takes the same time for a run of any size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cogeval.core.record import run_digest
from cogeval.store.damage import counting, find_damage
from cogeval.store.intact import Shard, iter_shards, read_shard
from cogeval.store.run import RunDir
from cogeval.store.shards import DamagedShard, ShardRecord, Sums, records_seal, standing
from cogeval.store.sums import SUMMED, added, sums_of_ranges

SMALL_BYTES: Final = 64_000_000
"""Up to here every file is compared with its checksum; of larger runs only with its size."""


class Ranges:
    """The union of half-open ranges of schedule indexes.

    Args:
        ranges: in any order; they may overlap.
    """

    __slots__ = ("_starts", "_stops")

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        pairs = np.array(sorted(ranges), np.int64).reshape(-1, 2)
        reach = np.maximum.accumulate(pairs[:, 1]) if len(pairs) else pairs[:, 1]
        begins = np.ones(len(pairs), np.bool_)
        begins[1:] = pairs[1:, 0] > reach[:-1]
        self._starts = pairs[begins, 0]
        self._stops = (
            reach[np.append(np.flatnonzero(begins)[1:] - 1, len(pairs) - 1)] if len(pairs) else reach
        )

    def __len__(self) -> int:
        return int((self._stops - self._starts).sum())

    def outside(self, indexes: Iterable[int]) -> NDArray[np.int64]:
        """Those of some indexes that no range covers, ascending, each once."""
        wanted = np.unique(np.fromiter(indexes, np.int64))
        place = np.searchsorted(self._starts, wanted, side="right") - 1
        covered = np.zeros(wanted.size, np.bool_)
        known = place >= 0
        covered[known] = wanted[known] < self._stops[place[known]]
        return wanted[~covered]


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """What a run holds.

    Args:
        records: of the shards that count, in the order of their ids.
        damaged: shards that are left out.
        recorded: the schedule indexes of the episodes with a result.
        sums: over these episodes.
        superseded: over second copies of episodes, which cost money and never count.
        is_small: every file was compared with its checksum; else only with its size.
    """

    records: tuple[ShardRecord, ...]
    damaged: tuple[DamagedShard, ...]
    recorded: Ranges
    sums: Sums
    superseded: Sums
    is_small: bool


@dataclass(slots=True)
class KnownShards:
    """What one command has found out about shards, so that it need not look again: they never change."""

    sums: dict[str, tuple[Sums, Sums]] = field(default_factory=dict)  # by shard id: accepted, superseded
    intact: set[str] = field(default_factory=set)


def totals_of(run: RunDir, known: KnownShards | None = None) -> Totals:
    """Adds up the records of a run.

    Args:
        run: the run.
        known: what an earlier look found out; what this one does is added.
    """
    known = known or KnownShards()
    believed, damaged = run.believed()
    is_small = sum(record.num_bytes for record in standing(believed)) <= SMALL_BYTES

    def look(record: ShardRecord) -> DamagedShard | None:
        if record.shard_id in known.intact:
            return None
        return find_damage(run.shards, record, verify=is_small)

    records, broken = counting(run.shards, believed, look)
    damaged += broken
    kept: list[ShardRecord] = []
    for record in records:
        problem = look(record)
        if problem is None and record.shard_id not in known.sums:
            sums = shard_sums(run, record)
            if isinstance(sums, DamagedShard):
                problem = sums
            else:
                known.sums[record.shard_id] = sums
        if problem is not None:
            damaged.append(problem)
        else:
            known.intact.add(record.shard_id)
            kept.append(record)
    pairs = [known.sums[record.shard_id] for record in kept]
    return Totals(
        records=tuple(kept),
        damaged=tuple(damaged),
        recorded=Ranges([pair for record in kept for pair in record.accepted]),
        sums=added(accepted for accepted, _ in pairs),
        superseded=added(copies for _, copies in pairs),
        is_small=is_small,
    )


def shard_sums(run: RunDir, record: ShardRecord) -> tuple[Sums, Sums] | DamagedShard:
    """The sums over a shard's accepted rows and over its superseded ones; reads it if it must.

    Args:
        run: the run.
        record: the shard's record.
    """
    if record.sums is not None and (record.superseded_sums is not None or not record.superseded):
        return record.sums, record.superseded_sums or Sums()
    shard = read_shard(run, record, SUMMED, verify=False)
    if isinstance(shard, DamagedShard):
        return shard
    return sums_of_ranges(shard.tables, record.accepted), sums_of_ranges(shard.tables, record.superseded)


def spend_facts(sums: Sums) -> dict[str, float]:
    """What a set of episodes cost: ``num_episodes``, ``cost_usd`` and the three tokens."""
    return {
        "num_episodes": sums.episodes,
        "cost_usd": sums.cost_usd,
        "tokens_in": sums.tokens_in,
        "tokens_out": sums.tokens_out,
        "tokens_cached": sums.tokens_cached,
    }


def complete_entry(digest: str, records: Iterable[ShardRecord]) -> dict[str, Any]:
    """The log's entry for a run that is complete.

    Args:
        digest: the run's digest.
        records: what it holds.
    """
    return {"event": "complete", "digest": digest, "records": records_seal(records)}


def logged_digest(log: Iterable[dict[str, Any]], records: Iterable[ShardRecord]) -> str | None:
    """The digest that the log has of exactly these records; None when it has none.

    Args:
        log: the events of the run's log.
        records: the shards that count, none of the run's damaged.
    """
    entries = [entry for entry in log if entry.get("event") == "complete"]
    if entries and entries[-1].get("records") == records_seal(records):
        return str(entries[-1]["digest"])
    return None


def computed_digest(run: RunDir, shards: Collection[str], *, verify: bool = False) -> str | None:
    """The run's digest from its episodes, one shard at a time; None when nothing is recorded.

    Args:
        run: the run.
        shards: ids of those that count.
        verify: compare every file with its checksum and leave out damaged shards.
    """
    digests: list[bytes] = []
    for shard in iter_shards(run, {"episodes": ("digest",)}, shards=shards, verify=verify):
        if isinstance(shard, Shard):
            digests += shard.accepted("episodes")["digest"].to_pylist()
    return run_digest(digests) if digests else None
