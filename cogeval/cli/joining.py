"""Recorded episodes of one run or several, as the arrays that ratings and summaries read.

Invariant: an episode counts once, however many runs hold it; a block is one seed of one game with one
set of parameters, across runs too; an agent is its name and fingerprint. Imports no pyarrow: tables
of the store are only asked for their columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogeval.cli.decisions import look_into_decisions, numbers_of
from cogeval.cli.recorded import SUMMED, RunEpisodes, read_run
from cogeval.core.record import FAULTS, canonical_json
from cogeval.errors import InputError
from cogeval.ratings import EMPTY_SEAT, Table
from cogeval.report import AgentIdentity, DecisionTimes, FaultReason, SeatRows
from cogeval.store.columns import to_numpy
from cogeval.store.run import RunDir

_SEAT_COLUMNS = ("seat", "score", "rank", "share", "forfeited", *SUMMED)


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """The episodes of several runs together.

    Args:
        runs: what each run gave.
        agents: every agent of the runs' pools, with the name that tells it from the others.
        table: what ratings read.
        seats: what summaries read.
        times: think times of single decisions, a sample; None without any.
        fault_kinds: per kind of fault, how many each agent had; empty when nobody looked.
        fault_reasons: the most frequent details of these faults.
        num_repeated: episodes that more than one run holds; each counts once.
    """

    runs: tuple[RunEpisodes, ...]
    agents: tuple[AgentIdentity, ...]
    table: Table
    seats: SeatRows
    times: DecisionTimes | None
    fault_kinds: Mapping[str, list[int]]
    fault_reasons: tuple[FaultReason, ...]
    num_repeated: int


def join(runs: Sequence[RunDir], *, decisions: bool = True) -> Joined:
    """Reads runs and puts their episodes together.

    Args:
        runs: at least one.
        decisions: look into the decisions of a single run too, for kinds of faults and think times.

    Raises:
        InputError: they do not play one game with one set of parameters.
    """
    _check_one_game(runs)
    read = tuple(read_run(run) for run in runs)
    numbers, agents = _identities(runs)
    parts = [_part(episodes, numbers[i], with_ids=len(read) > 1) for i, episodes in enumerate(read)]
    looked = None
    if decisions and len(runs) == 1:
        damaged = {shard.shard_id for shard in read[0].damaged}
        looked = look_into_decisions(runs[0], numbers[0], len(agents), damaged)
    num_all = sum(part.num_episodes for part in parts)
    if len(parts) > 1:
        parts = _each_once(parts)
    seats, table = _assembled(parts, [agent.name for agent in agents])
    return Joined(
        runs=read,
        agents=agents,
        table=table,
        seats=seats,
        times=None if looked is None else DecisionTimes(looked.agent, looked.think_s),
        fault_kinds={} if looked is None else dict(zip(FAULTS, looked.faults.tolist(), strict=True)),
        fault_reasons=() if looked is None else looked.reasons,
        num_repeated=num_all - table.num_episodes,
    )


def check_suffix(joined: Joined, name: str) -> None:
    """Explains a name that several agents share, where one of them must be named.

    Raises:
        InputError: they have that name and different fingerprints; the message says how to name each.
    """
    names = [agent.name for agent in joined.agents]
    versions = [agent for agent in joined.agents if agent.name.rpartition("#")[0] == name]
    if name in names or not versions:
        return
    where = {
        (agent["name"], agent["fingerprint"]): episodes.run.run_id
        for episodes in reversed(joined.runs)
        for agent in episodes.run.manifest["agents"]
    }
    listed = " or ".join(f"{agent.name} (in {where[name, agent.fingerprint]})" for agent in versions)
    raise InputError(
        f"agent {name!r} changed between these runs and stands for {len(versions)} agents, told apart by "
        f"the beginning of their fingerprint: write {listed}"
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One run's episodes and seats as arrays, its agents numbered as in the whole.

    Args:
        ids: bytes [num_episodes], the episodes' identities; empty when there is only one part.
        seeds: int [num_episodes].
        episode: int [num_seats], row of the seat's episode.
        agent: int [num_seats].
        columns: by name, [num_seats] each.
    """

    ids: NDArray[np.bytes_]
    seeds: NDArray[np.int64]
    episode: NDArray[np.int64]
    agent: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]]

    @property
    def num_episodes(self) -> int:
        return len(self.seeds)

    def only(self, kept: NDArray[np.bool_]) -> _Part:
        """The part with these episodes alone."""
        rows, number = kept[self.episode], np.cumsum(kept) - 1
        columns = {name: column[rows] for name, column in self.columns.items()}
        return _Part(self.ids[kept], self.seeds[kept], number[self.episode[rows]], self.agent[rows], columns)


def _part(run: RunEpisodes, numbers: Mapping[str, int], *, with_ids: bool) -> _Part:
    episodes, seats = run.tables.episodes, run.tables.seats
    index = to_numpy(episodes["index"])
    order = np.argsort(index, kind="stable")
    ids = np.asarray(episodes["episode_id"].to_pylist(), "S32")[order] if with_ids else np.empty(0, "S32")
    return _Part(
        ids=ids,
        seeds=to_numpy(episodes["seed"])[order],
        episode=np.searchsorted(index[order], to_numpy(seats["index"])),
        agent=numbers_of(seats["agent"], numbers),
        columns={name: to_numpy(seats[name]) for name in _SEAT_COLUMNS},
    )


def _each_once(parts: Sequence[_Part]) -> list[_Part]:
    """The parts without the episodes that an earlier one holds."""
    seen, fresh = np.empty(0, "S32"), []
    for part in parts:
        fresh.append(part.only(~np.isin(part.ids, seen)))
        seen = np.concatenate([seen, part.ids])
    return fresh


def _check_one_game(runs: Sequence[RunDir]) -> None:
    first = runs[0]
    for run in runs[1:]:
        one, other = first.manifest["game"], run.manifest["game"]
        for key in ("name", "version", "parameters"):
            if canonical_json(one[key]) != canonical_json(other[key]):
                raise InputError(
                    f"expected runs of one game with the same parameters, got {key} {_plain(one[key])} in "
                    f"{first.run_id} and {_plain(other[key])} in {run.run_id}; rate them apart"
                )


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k}={v}" for k, v in sorted(value.items())) + ")"
    return str(value)


def _identities(runs: Sequence[RunDir]) -> tuple[list[dict[str, int]], tuple[AgentIdentity, ...]]:
    """Numbers every agent of the runs: per run, name -> number; and who they are."""
    found: dict[tuple[str, str], str] = {}  # (name, fingerprint) -> version
    for run in runs:
        for agent in run.manifest["agents"]:
            found.setdefault((agent["name"], agent["fingerprint"]), agent["version"])
    numbers = {identity: i for i, identity in enumerate(found)}
    per_run = [
        {a["name"]: numbers[a["name"], a["fingerprint"]] for a in run.manifest["agents"]} for run in runs
    ]
    names = [name for name, _ in found]
    return per_run, tuple(
        AgentIdentity(name if names.count(name) == 1 else f"{name}#{print_[:6]}", version, print_)
        for (name, print_), version in found.items()
    )


def _assembled(parts: Sequence[_Part], names: Sequence[str]) -> tuple[SeatRows, Table]:
    """All parts one after the other: flat for summaries, one row an episode for ratings."""
    starts = np.cumsum([0, *(part.num_episodes for part in parts)])
    episode = np.concatenate([part.episode + starts[i] for i, part in enumerate(parts)])
    agent = np.concatenate([part.agent for part in parts])
    column = {name: np.concatenate([part.columns[name] for part in parts]) for name in _SEAT_COLUMNS}
    place = column["seat"].astype(np.int64)
    scored = ~column["forfeited"]
    shape = (int(starts[-1]), int(place.max()) + 1 if len(place) else 0)

    def laid_out(values: NDArray[Any], empty: object) -> NDArray[Any]:
        out = np.full(shape, empty, values.dtype)
        out[episode, place] = values
        return out

    seeds = np.concatenate([part.seeds for part in parts])
    table = Table(
        agents=laid_out(agent, EMPTY_SEAT),
        ranks=laid_out(column["rank"].astype(np.int64), 0),
        scores=laid_out(column["score"], 0.0),
        blocks=np.unique(seeds, return_inverse=True)[1],
        seat_scored=laid_out(scored, False),
        names=tuple(names),
    )
    summed = {name: column[name] for name in SUMMED}
    seats = SeatRows(
        agent=agent, episode=episode, score=column["score"], share=column["share"], scored=scored, **summed
    )
    return seats, table
