"""What a run has recorded, and which of its shards cannot be trusted.

Invariant: a damaged shard is left out and named on stderr, never fatal. Imports no ratings, so that
`status` answers quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cogeval.cli.output import counted, warn
from cogeval.cli.program import typed
from cogeval.cli.settings import called
from cogeval.core.record import run_digest
from cogeval.schedule.log import PARDON
from cogeval.store.columns import to_numpy
from cogeval.store.lock import LockHolder
from cogeval.store.read import RunTables, read_tables
from cogeval.store.recover import open_indexes
from cogeval.store.run import RunDir
from cogeval.store.shards import DamagedShard

SUMMED: Final = (
    "num_decisions", "num_fallbacks", "num_faults", "think_s", "cost_usd", "tokens_in", "tokens_out",
)  # fmt: skip
"""Columns of the seats that summaries add up."""

_COLUMNS: Final = (
    "index", "episode_id", "seed", "digest", "clock_events", "agent", "seat", "score", "rank", "share",
    "forfeited", *SUMMED,
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class RunEpisodes:
    """One run's recorded episodes.

    Args:
        run: the run.
        digest: over its episodes' digests; None when it has none.
        num_recorded: episodes with a result.
        num_clock_events: of these, in how many time decided something.
        num_faults: faults of all seats.
        damaged: shards that were left out.
        tables: its episodes and seats.
    """

    run: RunDir
    digest: str | None
    num_recorded: int
    num_clock_events: int
    num_faults: int
    damaged: tuple[DamagedShard, ...]
    tables: RunTables


def read_run(run: RunDir) -> RunEpisodes:
    """Reads one run, damaged shards left out."""
    tables = read_tables(run, ("episodes", "seats"), _COLUMNS)
    episodes = tables.episodes
    digests = episodes["digest"].to_pylist()
    indexes = np.unique(to_numpy(episodes["index"]))
    return RunEpisodes(
        run=run,
        digest=run_digest(digests) if digests else None,
        num_recorded=len(indexes),
        num_clock_events=int(to_numpy(episodes["clock_events"]).sum()),
        num_faults=int(to_numpy(tables.seats["num_faults"]).sum()),
        damaged=tables.damaged,
        tables=tables,
    )


def scheduled(run: RunDir) -> int:
    """Episodes of the run's schedule."""
    return int(run.manifest["num_episodes"])


def num_void(episodes: RunEpisodes) -> int:
    """Episodes that were given up and have no result."""
    void = void_reasons(episodes.run)
    return len(void.keys() - set(to_numpy(episodes.tables.episodes["index"]).tolist())) if void else 0


def num_missing(episodes: RunEpisodes) -> int:
    """Scheduled episodes that are neither recorded nor void."""
    return max(0, scheduled(episodes.run) - episodes.num_recorded - num_void(episodes))


def void_reasons(run: RunDir, log: Iterable[dict[str, Any]] | None = None) -> dict[int, str]:
    """Schedule index -> why, of every episode that was given up, the latest last; a few have a result.

    Args:
        run: the run.
        log: the events of its log; None: they are read.
    """
    void: dict[int, str] = {}
    for line in run.log_lines() if log is None else log:
        if line.get("event") == "void":
            void[int(line["index"])] = str(line.get("reason", ""))
        elif line == PARDON:
            void.clear()
    return void


def num_open(episodes: RunEpisodes) -> int:
    """Episodes that are flushed, in shards that nobody has committed yet."""
    recorded = to_numpy(episodes.tables.episodes["index"])
    return len(np.setdiff1d(open_indexes(episodes.run.place), recorded))


def open_note(episodes: RunEpisodes) -> str | None:
    """What the open shards hold and how it comes to count; None when they hold nothing."""
    num = num_open(episodes)
    return open_note_of(episodes.run, num, is_driven=driver_of(episodes.run) is not None) if num else None


def open_note_of(run: RunDir, num_open: int, *, is_driven: bool, noun: str = "more episode") -> str | None:
    """The same, of a run whose open shards hold so many episodes; None when they hold nothing."""
    if not num_open:
        return None
    way = "which its driver seals in time" if is_driven else f"which `cogeval resume {called(run)}` recovers"
    return typed(f"{counted(num_open, noun)} in open shards, {way}")


def driver_of(run: RunDir) -> LockHolder | None:
    """Who drives the run now; a lock left by a dead process of this host counts for nothing."""
    return run.driver()


def warn_of_damage(runs: Sequence[RunEpisodes]) -> None:
    """Names damaged shards on stderr."""
    for episodes in runs:
        warn(shard.message(called(episodes.run)) for shard in episodes.damaged)
