"""What only the decisions of a run tell: faults by kind and detail, and how long single decisions took.

Invariant: one shard is in memory at a time, and a run without faults is only sampled. Imports no
pyarrow: tables of the store are only asked for their columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogeval.core.record import FAULTS
from cogeval.report import FaultReason
from cogeval.store.columns import bool_column, to_codes, to_numpy
from cogeval.store.read import read_tables
from cogeval.store.run import RunDir
from cogeval.store.shards import DamagedShard
from cogeval.store.text import read_text

_TIMED_SHARDS = 4  # of a run whose decisions are looked at for think times
_TIMED_DECISIONS = 200_000  # kept of each of them, evenly spaced
_REASONS = 2  # details that are told per agent and kind
_KNOWN_DETAILS = 4096  # counted at a time per agent and kind: agents may say something new each time


@dataclass(frozen=True, slots=True, eq=False)
class DecisionDetails:
    """What the decisions of one run tell.

    Args:
        faults: int [num_kinds, num_agents], in the order of `FAULTS`.
        reasons: the most frequent details per agent and kind, the agent's most frequent kind first.
        agent: int [num_timed], whose think time it is.
        think_s: float [num_timed], seconds of single attempts of the agents themselves, a sample.
    """

    faults: NDArray[np.int64]
    reasons: tuple[FaultReason, ...]
    agent: NDArray[np.int64]
    think_s: NDArray[np.float64]


def look_into_decisions(
    run: RunDir, numbers: Mapping[str, int], num_agents: int, left_out: Collection[str] = ()
) -> DecisionDetails:
    """Reads decisions shard by shard; the files' checksums are the caller's to have compared.

    Args:
        run: the run.
        numbers: agent's name -> its number, 0 .. num_agents - 1.
        num_agents: how many there are.
        left_out: shard ids of the damaged ones.
    """
    faults = np.zeros((len(FAULTS), num_agents), np.int64)
    details: _Details = {}
    agents, times = [np.empty(0, np.int64)], [np.empty(0)]
    shards = [record.shard_id for record in run.records() if record.shard_id not in left_out]
    timed = set(shards[:: max(1, -(-len(shards) // _TIMED_SHARDS))])
    for shard in shards:
        seats = _columns(run, shard, "seats", ("index", "seat", "agent", "num_faults"))
        if seats is None or not seats.num_rows:
            continue
        if shard not in timed and not to_numpy(seats["num_faults"]).any():
            continue
        rows = _columns(run, shard, "decisions", ("index", "seat", "source", "fault", "detail", "think_s"))
        if rows is None or not rows.num_rows:
            continue
        agent = _agents_of(rows, seats, numbers)
        kind = numbers_of(rows["fault"], {name: i for i, name in enumerate(FAULTS)})
        np.add.at(faults, (kind[kind >= 0], agent[kind >= 0]), 1)
        _count_details(details, rows["detail"], agent, kind)
        if shard in timed:
            think_s = to_numpy(rows["think_s"]).astype(np.float64)
            own = np.flatnonzero((numbers_of(rows["source"], {"agent": 0}) == 0) & np.isfinite(think_s))
            own = own[:: max(1, -(-len(own) // _TIMED_DECISIONS))]
            agents.append(agent[own])
            times.append(think_s[own])
    reasons = tuple(_most_frequent(details, faults))
    return DecisionDetails(faults, reasons, np.concatenate(agents), np.concatenate(times))


def numbers_of(column: Any, numbers: Mapping[str, int]) -> NDArray[np.int64]:
    """The number of each entry of a dictionary column; -1 for null and for a name without one."""
    codes, names = to_codes(column)
    lookup = np.array([*(numbers.get(read_text(name), -1) for name in names), -1], np.int64)
    return np.asarray(lookup[codes])  # the code of null, -1, finds the last entry


_Details = dict[tuple[int, int], Counter[str]]
"""(agent, kind) -> how often each detail was seen."""


def _count_details(details: _Details, column: Any, agent: NDArray[np.int64], kind: NDArray[np.int64]) -> None:
    """Adds one shard's details; of more than can be kept the rarest are forgotten."""
    (faulty,) = np.nonzero(kind >= 0)
    if not len(faulty):
        return
    codes, texts = to_codes(column.filter(bool_column(kind >= 0)).dictionary_encode())
    keys, counts = np.unique(np.stack([agent[faulty], kind[faulty], codes]), axis=1, return_counts=True)
    for (who, what, code), count in zip(keys.T.tolist(), counts.tolist(), strict=True):
        details.setdefault((who, what), Counter())[texts[code] if code >= 0 else ""] += count
    for key, counted in details.items():
        if len(counted) > _KNOWN_DETAILS:
            details[key] = Counter(dict(counted.most_common(_KNOWN_DETAILS // 2)))


def _most_frequent(details: _Details, faults: NDArray[np.int64]) -> Iterator[FaultReason]:
    for agent, kind in sorted(details, key=lambda key: (key[0], -int(faults[key[1], key[0]]), key[1])):
        for detail, count in details[agent, kind].most_common(_REASONS):
            yield FaultReason(agent, FAULTS[kind], detail, count)


def _columns(run: RunDir, shard: str, table: str, columns: tuple[str, ...]) -> Any:
    """One table of one shard; None when it is damaged."""
    read = read_tables(run, (table,), columns, shards=[shard], verify=False)
    damaged: tuple[DamagedShard, ...] = read.damaged
    return None if damaged else getattr(read, table)


def _agents_of(rows: Any, seats: Any, numbers: Mapping[str, int]) -> NDArray[np.int64]:
    """Who made each decision."""
    place = to_numpy(seats["seat"]).astype(np.int64)
    width = int(place.max()) + 1
    keys = to_numpy(seats["index"]) * width + place
    order = np.argsort(keys, kind="stable")
    wanted = to_numpy(rows["index"]) * width + to_numpy(rows["seat"])
    return np.asarray(numbers_of(seats["agent"], numbers)[order][np.searchsorted(keys[order], wanted)])
