"""What a shard's rows add up to, for its record.

Invariant: one function computes sums, from the tables, for writers, recovery, merging and checks alike.
Knows no runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from cogeval.core.ranges import from_ranges
from cogeval.store.columns import bool_column, to_codes, to_numpy
from cogeval.store.places import Place
from cogeval.store.shards import AgentSums, SealedShard, Sums, file_name
from cogeval.store.text import read_text

SUMMED: Final[dict[str, tuple[str, ...]]] = {
    "seats": (
        "index", "agent", "num_fallbacks", "num_faults", "tokens_in", "tokens_out", "tokens_cached",
        "cost_usd",
    ),
    "episodes": ("index", "clock_events", "finished_at"),
}  # fmt: skip
"""The columns that sums are computed from, by table."""

_RELATIVE = 1e-9  # floats are added in another order when shards are merged


Ranges: TypeAlias = tuple[tuple[int, int], ...]


def sums_of(tables: Mapping[str, Any]) -> Sums:
    """Adds up some episodes.

    Args:
        tables: pyarrow tables ``seats`` and ``episodes`` with the columns `SUMMED`, of the same episodes.
    """
    episodes, seats = tables["episodes"], tables["seats"]
    if not episodes.num_rows:
        return Sums()
    finished_us = to_numpy(episodes["finished_at"])
    totals = {name: to_numpy(seats[name]).sum() for name in SUMMED["seats"][3:]}
    return Sums(
        episodes=episodes.num_rows,
        faults=int(totals["num_faults"]),
        clock_events=int(to_numpy(episodes["clock_events"]).sum()),
        cost_usd=float(totals["cost_usd"]),
        tokens_in=int(totals["tokens_in"]),
        tokens_out=int(totals["tokens_out"]),
        tokens_cached=int(totals["tokens_cached"]),
        first_s=float(finished_us.min()) / 1e6,
        last_s=float(finished_us.max()) / 1e6,
        agents=dict(_by_agent(seats)),
    )


def sums_of_ranges(tables: Mapping[str, Any], ranges: Ranges) -> Sums:
    """Adds up the episodes of some schedule indexes.

    Args:
        tables: as in `sums_of`.
        ranges: half-open ranges of schedule indexes.
    """
    wanted = from_ranges(ranges)
    return sums_of(
        {
            table: tables[table].filter(bool_column(np.isin(to_numpy(tables[table]["index"]), wanted)))
            for table in SUMMED
        }
    )


def sums_of_sealed(
    shards: Place, sealed: SealedShard, accepted: Ranges, superseded: Ranges
) -> tuple[Sums | None, Sums | None]:
    """The sums over a sealed shard's accepted rows and over its second copies; None: no such, or not known.

    Args:
        shards: the place of its files, which are read when some of its rows are second copies.
        sealed: the shard.
        accepted: schedule indexes that count.
        superseded: the rest.
    """
    if not superseded:
        return sealed.sums, None
    tables = {}
    for table, names in SUMMED.items():
        data = pa.BufferReader(shards.read(file_name(sealed.shard_id, table)))
        tables[table] = pa.ipc.open_file(data).read_all().select(names)
    return sums_of_ranges(tables, accepted), sums_of_ranges(tables, superseded)


def added(parts: Iterable[Sums]) -> Sums:
    """The sums of several sets of episodes together."""
    parts = list(parts)
    agents: dict[str, AgentSums] = {}
    for part in parts:
        for name, one in part.agents.items():
            agents[name] = _agents_added(agents[name], one) if name in agents else one
    times = [time for part in parts for time in (part.first_s, part.last_s) if time is not None]
    return Sums(
        episodes=sum(part.episodes for part in parts),
        faults=sum(part.faults for part in parts),
        clock_events=sum(part.clock_events for part in parts),
        cost_usd=math.fsum(part.cost_usd for part in parts),
        tokens_in=sum(part.tokens_in for part in parts),
        tokens_out=sum(part.tokens_out for part in parts),
        tokens_cached=sum(part.tokens_cached for part in parts),
        first_s=min(times, default=None),
        last_s=max(times, default=None),
        agents=agents,
    )


def differences(recorded: Sums, recomputed: Sums) -> list[str]:
    """The members in which two sums differ, each in a phrase; floats by more than their rounding."""
    found = []
    for name in Sums.__struct_fields__:
        then, now = getattr(recorded, name), getattr(recomputed, name)
        same = then == now
        if isinstance(then, float) and isinstance(now, float):
            same = math.isclose(then, now, rel_tol=_RELATIVE, abs_tol=1e-9)
        if not same:
            found.append(f"{name}: recorded {_shown(then)}, recomputed {_shown(now)}")
    return found


def _shown(value: Any) -> str:
    return f"{msgspec.to_builtins(value)!r:.300}"


def _by_agent(seats: Any) -> Iterator[tuple[str, AgentSums]]:
    codes, names = to_codes(seats["agent"])
    num = len(names)
    pairs = np.unique(to_numpy(seats["index"]) * num + codes)
    episodes = np.bincount(pairs % num, minlength=num)
    num_seats = np.bincount(codes, minlength=num)
    faults = np.bincount(codes, to_numpy(seats["num_faults"]), num)
    fallbacks = np.bincount(codes, to_numpy(seats["num_fallbacks"]), num)
    for i in np.flatnonzero(num_seats).tolist():
        yield (
            read_text(names[i]),
            AgentSums(int(episodes[i]), int(num_seats[i]), int(faults[i]), int(fallbacks[i])),
        )


def _agents_added(one: AgentSums, other: AgentSums) -> AgentSums:
    return AgentSums(
        one.episodes + other.episodes,
        one.seats + other.seats,
        one.faults + other.faults,
        one.fallbacks + other.fallbacks,
    )
