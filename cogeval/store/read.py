"""Reading a run: its tables, what is recorded, what replays need.

Invariant: only accepted rows of undamaged shards come out; a damaged shard is left out and named,
never fatal. Every file is compared with its checksum before a row of it is believed. That no two
records accept the same episode is the driver's doing, and `checks` looks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cogeval.core.game import Json
from cogeval.core.ranges import from_ranges
from cogeval.errors import unknown_name
from cogeval.store.columns import to_codes, to_numpy
from cogeval.store.damage import find_damage
from cogeval.store.intact import Shard, iter_shards, part_with, parts_of
from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS
from cogeval.store.shards import TABLES, DamagedShard, Indexes
from cogeval.store.text import read_text

_JOURNAL = {
    "decisions": ("index", "phase", "seat", "accepted", "action"),
    "seats": ("index", "seat", "agent"),
    "episodes": (
        "index",
        "episode_id",
        "block",
        "seed",
        "replicate",
        "reason",
        "phases",
        "stopped",
        "digest",
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class RunTables:
    """Tables of a run; one that was not asked for has no rows and no columns."""

    episodes: Any  # pyarrow.Table
    seats: Any  # pyarrow.Table
    decisions: Any  # pyarrow.Table
    damaged: tuple[DamagedShard, ...]  # left out


@dataclass(frozen=True, slots=True)
class Journal:
    """One recorded episode: what it takes to play it again and to compare. Treat it as read-only."""

    index: int
    episode_id: str  # 32 hexadecimal digits
    block: int
    seed: int
    replicate: int
    agents: tuple[str, ...]  # names, per seat
    actions: tuple[dict[int, Json], ...]  # per phase: seat -> the action that was played, as wire JSON
    reason: str
    stopped: bool  # the episode clock ended it after the last phase
    digest: str  # 64 hexadecimal digits


def read_tables(
    run: RunDir,
    tables: Sequence[str] = TABLES,
    columns: Collection[str] | None = None,
    *,
    shards: Collection[str] | None = None,
    verify: bool = True,
) -> RunTables:
    """Reads the recorded episodes of a run.

    Args:
        run: the run.
        tables: which tables.
        columns: names to keep, in the tables that have them; None: all.
        shards: shard ids to read; None: all that are committed.
        verify: compare every file with its checksum; size and format are looked at in any case.

    Returns:
        The tables, in the order of shard ids, and the damaged shards that were left out.

    Raises:
        InputError: there is no such table or column.
    """
    keep = {table: _columns_of(table, columns) for table in tables}
    parts: dict[str, list[Any]] = {t: [pa.Table.from_batches([], SCHEMAS[t]).select(keep[t])] for t in keep}
    damaged = []
    for shard in iter_shards(run, keep, shards=shards, verify=verify):
        if isinstance(shard, DamagedShard):
            damaged.append(shard)
            continue
        for table, names in keep.items():
            parts[table].append(shard.accepted(table).select(names))
    whole = {t: pa.concat_tables(rows).unify_dictionaries() for t, rows in parts.items()}
    nothing = pa.Table.from_batches([], pa.schema([]))
    return RunTables(**{table: whole.get(table, nothing) for table in TABLES}, damaged=tuple(damaged))


def recorded_indexes(run: RunDir, *, verify: bool = True) -> tuple[Indexes, tuple[DamagedShard, ...]]:
    """What need not be played any more.

    Args:
        run: the run.
        verify: compare every file with its checksum.

    Returns:
        Schedule indexes recorded in intact shards (int64, ascending), and the damaged shards, whose
        episodes are not among them.
    """
    records, damaged = run.scan()
    kept = []
    for record in records:
        problem = find_damage(run.shards, record, verify=verify)
        if problem is None:
            kept.append(from_ranges(record.accepted))
        else:
            damaged.append(problem)
    indexes = np.unique(np.concatenate(kept)) if kept else np.empty(0, np.int64)
    return indexes, tuple(damaged)


def iter_journals(run: RunDir, *, verify: bool = True) -> Iterator[Journal]:
    """Gives every recorded episode for replay, shard by shard; damaged shards are left out.

    Args:
        run: the run.
        verify: compare every file with its checksum.
    """
    for shard in iter_shards(run, _JOURNAL, verify=verify):
        if isinstance(shard, Shard):
            for part in parts_of(shard):
                yield from _journals(part)


def episode_journal(run: RunDir, index: int) -> Journal:
    """Gives one recorded episode for replay.

    Args:
        run: the run.
        index: its place in the schedule.

    Raises:
        InputError: it is not recorded, or its shard is damaged.
    """
    part = part_with(run, index, _JOURNAL)
    return next(journal for journal in _journals(part) if journal.index == index)


def _journals(shard: Shard) -> Iterator[Journal]:
    decisions, seats = shard.accepted("decisions"), shard.accepted("seats")
    decisions = decisions.filter(decisions["accepted"].combine_chunks())
    codes, texts = to_codes(decisions["action"])
    actions = {code: json.loads(read_text(texts[code])) for code in np.unique(codes).tolist()}
    moves = zip(
        to_numpy(decisions["index"]).tolist(),
        to_numpy(decisions["phase"]).tolist(),
        to_numpy(decisions["seat"]).tolist(),
        codes.tolist(),
        strict=True,
    )
    played: dict[int, dict[int, dict[int, Json]]] = {}
    for index, phase, seat, code in moves:
        played.setdefault(index, {}).setdefault(phase, {})[seat] = actions[code]
    lineups: dict[int, dict[int, str]] = {}
    for row in seats.select(["index", "seat", "agent"]).to_pylist():
        lineups.setdefault(row["index"], {})[row["seat"]] = read_text(row["agent"])
    for row in shard.accepted("episodes").to_pylist():
        phases, lineup = played.get(row["index"], {}), lineups[row["index"]]
        yield Journal(
            index=row["index"],
            episode_id=row["episode_id"],
            block=row["block"],
            seed=row["seed"],
            replicate=row["replicate"],
            agents=tuple(lineup[seat] for seat in sorted(lineup)),
            actions=tuple(phases.get(phase, {}) for phase in range(max(phases, default=-1) + 1)),
            reason=read_text(row["reason"]),
            stopped=row["stopped"],
            digest=row["digest"].hex(),
        )


def _columns_of(table: str, columns: Collection[str] | None) -> list[str]:
    if table not in SCHEMAS:
        raise unknown_name("table", table, TABLES)
    names = SCHEMAS[table].names
    if columns is None:
        return list(names)
    known = {name for schema in SCHEMAS.values() for name in schema.names}
    for column in columns:
        if column not in known:
            raise unknown_name("column", column, known)
    return [name for name in names if name in columns]
