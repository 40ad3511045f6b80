"""Recomputes every derived number of a run from the rows beneath it and compares.

Invariant: what is wrong is reported, all of it, and nothing is mended. Needs no game: what only the
rules can tell (scores, digests) is for a replay to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from cogeval.core.ranges import from_ranges
from cogeval.errors import InputError
from cogeval.store.columns import missing, to_codes, to_numpy
from cogeval.store.intact import Shard, iter_shards, read_shard
from cogeval.store.roots import call
from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS
from cogeval.store.shards import DamagedShard, ShardRecord
from cogeval.store.sums import SUMMED, differences, sums_of, sums_of_ranges

_NUM_EXAMPLES = 3
_RELATIVE = 1e-5  # decisions keep times in float32

_COLUMNS: Final = {
    "decisions": (
        "index", "phase", "seat", "source", "accepted", "fault", "think_s", "queue_s", "tokens_in",
        "tokens_out", "tokens_cached", "cost_usd",
    ),
    "seats": tuple(name for name in SCHEMAS["seats"].names if name != "statistics"),
    "episodes": ("index", "block", "seed", "stopped", "clock_events", "faults", "finished_at"),
}  # fmt: skip


class Finding(msgspec.Struct, frozen=True):
    """One kind of difference in one place."""

    shard_id: str | None  # None: the run as a whole
    rule: str  # what should hold, a short name
    message: str  # what was found, with counts and examples

    def __str__(self) -> str:
        return f"{self.shard_id or 'run'}: {self.rule}: {self.message}"


def check_run(run: RunDir, called: str | None = None) -> list[Finding]:
    """Checks every committed shard, the shards against each other, and what the run began with.

    Args:
        run: the run.
        called: how to name the run on the command line; None: as seen from the default root.

    Returns:
        Every difference; empty when all is well.
    """
    findings = list(_beginnings(run))
    homes: dict[str, NDArray[np.int64]] = {}
    seeds: dict[int, int] = {}
    for shard in iter_shards(run, _COLUMNS):
        if isinstance(shard, DamagedShard):
            findings.append(Finding(shard.shard_id, "intact", shard.message(called or call(run.place))))
            continue
        homes[shard.record.shard_id] = from_ranges(shard.record.accepted)
        findings += check_shard(shard)
        findings += _seed_findings(shard, seeds)
    findings += _exactly_once(homes)
    findings += _held_by_mergers(run)
    findings += _never_scheduled(run, homes)
    num_damaged = run.read_log()[1]
    if num_damaged:
        findings.append(Finding(None, "log", f"{num_damaged} lines of ledger.log are damaged and left out"))
    return findings


def _beginnings(run: RunDir) -> Iterator[Finding]:
    """Looks for what was there before the first episode: manifest, configuration, the shards' directory."""
    try:
        _ = run.manifest
        _ = run.config_yaml
    except InputError as error:
        yield Finding(None, "beginnings", str(error))
    if run.place.path is not None and not run.shards.exists():
        yield Finding(
            None, "beginnings", f"{run.shards.where()} is missing, and every shard of the run with it"
        )


def check_shard(shard: Shard) -> list[Finding]:
    """Checks one shard against its record and its tables against each other.

    Args:
        shard: with the columns that its tables have in `_COLUMNS`, every row.
    """
    shard_id = shard.record.shard_id
    findings = [Finding(shard_id, rule, message) for rule, message in _index_findings(shard)]
    if not findings:  # the rest would only repeat that rows are missing
        view = _View(shard)
        for check in (_check_ranks, _check_seat_totals, _check_episodes):
            findings += [Finding(shard_id, rule, message) for rule, message in check(view)]
    if not findings:  # changed rows change their sums too
        findings += [Finding(shard_id, rule, message) for rule, message in _check_sums(shard)]
    return findings


def _check_sums(shard: Shard) -> Iterator[tuple[str, str]]:
    """Compares the sums in the record with the rows; those of copies that merging left behind have none."""
    record = shard.record
    if record.sums is not None:
        found = differences(record.sums, sums_of({table: shard.accepted(table) for table in SUMMED}))
        if found:
            yield "record.sums", "; ".join(found)
    if record.superseded_sums is not None and not record.merged:
        found = differences(record.superseded_sums, sums_of_ranges(shard.tables, record.superseded))
        if found:
            yield "record.superseded_sums", "; ".join(found)


class _View:
    """A shard's tables as numpy, episodes in ascending order of their indexes."""

    def __init__(self, shard: Shard) -> None:
        episodes, self.seats, self.decisions = (shard.tables[t] for t in ("episodes", "seats", "decisions"))
        index = to_numpy(episodes["index"])
        self.order = np.argsort(index)
        self.index = index[self.order]
        self.episodes = episodes
        self.num = self.index.size
        self.seat_row = np.searchsorted(self.index, to_numpy(self.seats["index"]))  # episode of a seats row
        self.decision_row = np.searchsorted(self.index, to_numpy(self.decisions["index"]))
        self.seat = to_numpy(self.seats["seat"]).astype(np.int64)
        self.width = int(self.seat.max()) + 1
        self.cell = self.seat_row * self.width + self.seat  # (episode, seat) of a seats row
        self.decision_cell = self.decision_row * self.width + to_numpy(self.decisions["seat"])

    def episode_column(self, name: str) -> NDArray[Any]:
        """A column of the episodes, in ascending order."""
        return to_numpy(self.episodes[name])[self.order]

    def decision_sum(self, name: str, where: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Sums a column of the decisions per (episode, seat), nulls left out."""
        values = to_numpy(self.decisions[name]).astype(np.float64)
        values = np.where(missing(self.decisions[name]), 0.0, values)
        return self.decision_count(values if where is None else values * where)

    def decision_count(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Sums weights of the decisions per (episode, seat)."""
        return np.asarray(np.bincount(self.decision_cell, weights, self.num * self.width), np.float64)

    def named(self, row: int) -> str:
        """How to name a seats row."""
        return f"episode {self.index[self.seat_row[row]]} seat {self.seat[row]}"


def _index_findings(shard: Shard) -> Iterator[tuple[str, str]]:
    record = shard.record
    recorded = np.concatenate([from_ranges(record.accepted), from_ranges(record.superseded)])
    index = to_numpy(shard.tables["episodes"]["index"])
    if np.unique(index).size != index.size:
        yield "one row per episode", f"{index.size - np.unique(index).size} indexes occur twice in episodes"
    if np.unique(recorded).size != recorded.size:
        yield "accepted or superseded", "some indexes are both in the record"
    if not np.array_equal(np.unique(index), np.unique(recorded)):
        yield "record", f"it lists {recorded.size} episodes, the file holds {index.size}, or others"
    if index.size and shard.tables["seats"].num_rows == 0:
        yield "seats", "the table is empty"
    for table in ("seats", "decisions"):
        strangers = np.setdiff1d(to_numpy(shard.tables[table]["index"]), index)
        if strangers.size:
            yield table, f"rows of {strangers.size} episodes that are not in episodes: {_some(strangers)}"


def _check_ranks(view: _View) -> Iterator[tuple[str, str]]:
    num_seats = np.bincount(view.seat_row, minlength=view.num)
    taken = np.bincount(view.cell, minlength=view.num * view.width).reshape(view.num, view.width)
    expected = np.arange(view.width) < num_seats[:, None]
    broken = np.flatnonzero((taken != expected).any(axis=1))
    if broken.size:
        yield "seats 0, 1, 2, ...", f"not so in {broken.size} episodes: {_some(view.index[broken])}"
        return
    ranks = np.full(view.num * view.width, np.iinfo(np.int64).max, np.int64)
    ranks[view.cell] = to_numpy(view.seats["rank"])
    grid = ranks.reshape(view.num, view.width)
    better = (grid[:, None, :] < grid[:, :, None]).sum(axis=2).ravel()[view.cell]
    ties = (grid[:, None, :] == grid[:, :, None]).sum(axis=2).ravel()[view.cell] - 1
    others = num_seats[view.seat_row] - 1
    share = np.where(others == 0, 0.5, (others - better - ties / 2) / np.maximum(others, 1))
    forfeited = to_numpy(view.seats["forfeited"])
    stayed = np.bincount(view.seat_row, ~forfeited, view.num)[view.seat_row]
    yield from _seat_differences(view, "rank", better)
    yield from _seat_differences(view, "share", share)
    yield from _seat_differences(view, "rank", np.where(forfeited, stayed, better), "forfeits are last: rank")


def _check_seat_totals(view: _View) -> Iterator[tuple[str, str]]:
    decisions = view.decisions
    accepted = to_numpy(decisions["accepted"])
    by_agent = _equals(decisions["source"], "agent")
    faulty = ~missing(decisions["fault"])
    totals: dict[str, NDArray[np.float64]] = {
        "num_decisions": view.decision_count(accepted),
        "num_fallbacks": view.decision_count(accepted & ~by_agent),
        "num_faults": view.decision_count(faulty),
    }
    for name in ("tokens_in", "tokens_out", "tokens_cached", "cost_usd", "think_s", "queue_s"):
        totals[name] = view.decision_sum(name)
    for name, total in totals.items():
        yield from _seat_differences(view, name, total[view.cell])


def _check_episodes(view: _View) -> Iterator[tuple[str, str]]:
    decisions = view.decisions
    accepted = to_numpy(decisions["accepted"])
    phase = to_numpy(decisions["phase"]).astype(np.int64)
    late = np.bincount(view.decision_row, _equals(decisions["fault"], "timeout"), view.num) > 0
    faults = np.bincount(view.decision_row, ~missing(decisions["fault"]), view.num)
    clock_events = view.episode_column("stopped") | late
    for name, recomputed in (("faults", faults), ("clock_events", clock_events)):
        yield from _differences(
            f"episodes.{name}",
            view.episode_column(name),
            recomputed,
            lambda row: f"episode {view.index[row]}",
        )
    # The phases of the rules are not compared: a game may count its own way (`Results.phases`).
    width = int(phase.max(initial=0)) + 1
    happened = np.unique((view.decision_row * width + phase)[accepted])
    num_phases = np.bincount(happened // width, minlength=view.num)
    last = np.full(view.num, -1, np.int64)
    np.maximum.at(last, view.decision_row, phase)
    gaps = view.index[num_phases != last + 1]
    if gaps.size:
        yield "phases 0, 1, 2, ...", f"not so in {gaps.size} episodes: {_some(gaps)}"
    _, decision, counts = np.unique(
        view.decision_cell * width + phase, return_inverse=True, return_counts=True
    )
    played = np.bincount(decision, accepted, counts.size)
    wrong = np.unique(view.index[view.decision_row[played[decision] != 1]])
    if wrong.size:
        yield "one action per decision", f"not so in {wrong.size} episodes: {_some(wrong)}"
    blocks = view.episode_column("block")[view.seat_row]
    yield from _seat_differences(view, "block", blocks)


def _seed_findings(shard: Shard, seeds: dict[int, int]) -> list[Finding]:
    """Compares the seed of every block with what other episodes of that block said."""
    episodes = shard.tables["episodes"]
    pairs = zip(to_numpy(episodes["block"]).tolist(), to_numpy(episodes["seed"]).tolist(), strict=True)
    wrong = {block for block, seed in pairs if seeds.setdefault(block, seed) != seed}
    if not wrong:
        return []
    message = f"not so in {len(wrong)} blocks: {_some(np.array(sorted(wrong)))}"
    return [Finding(shard.record.shard_id, "one seed per block", message)]


def _exactly_once(homes: dict[str, NDArray[np.int64]]) -> Iterator[Finding]:
    """Looks for indexes that two records accept."""
    if not homes:
        return
    indexes = np.concatenate(list(homes.values()))
    values, counts = np.unique(indexes, return_counts=True)
    twice = values[counts > 1]
    if twice.size:
        where = [shard_id for shard_id, mine in homes.items() if np.isin(twice, mine).any()]
        message = f"{twice.size} indexes are accepted twice: {_some(twice)}, in {', '.join(where)}"
        yield Finding(None, "exactly once", message)


def _held_by_mergers(run: RunDir) -> Iterator[Finding]:
    """Compares the episodes of shards that are still there with those of the shard that replaces them."""
    for old, merged in run.replaced():
        theirs, ours = _digests(run, old), _digests(run, merged)
        if ours is None or theirs is None:  # told already, or a shard that may go
            continue
        lost = np.array(sorted(i for i, digest in theirs.items() if ours.get(i) != digest), np.int64)
        if lost.size:
            message = f"{lost.size} episodes of {old.shard_id} are not the same in it: {_some(lost)}"
            yield Finding(merged.shard_id, "merged shards are held", message)


def _digests(run: RunDir, record: ShardRecord) -> dict[int, bytes] | None:
    """The digests of a shard's accepted episodes by index; None when it is damaged."""
    shard = read_shard(run, record, {"episodes": ("digest",)})
    if isinstance(shard, DamagedShard):
        return None
    episodes = shard.accepted("episodes")
    return dict(zip(to_numpy(episodes["index"]).tolist(), episodes["digest"].to_pylist(), strict=True))


def _never_scheduled(run: RunDir, homes: dict[str, NDArray[np.int64]]) -> Iterator[Finding]:
    """Looks for indexes beyond the schedule."""
    try:
        num_episodes = run.manifest.get("num_episodes")
    except InputError:  # told already
        return
    for shard_id, indexes in homes.items():
        beyond = indexes[indexes >= num_episodes] if isinstance(num_episodes, int) else indexes[:0]
        if beyond.size:
            message = f"{beyond.size} indexes are not among the {num_episodes:,} scheduled: {_some(beyond)}"
            yield Finding(shard_id, "scheduled", message)


def _equals(column: Any, name: str) -> NDArray[np.bool_]:
    """Where a text column has a value."""
    codes, names = to_codes(column)
    return np.equal(codes, names.index(name) if name in names else -2)


def _seat_differences(
    view: _View, name: str, recomputed: NDArray[Any], rule: str = ""
) -> Iterator[tuple[str, str]]:
    recorded = to_numpy(view.seats[name])
    yield from _differences(rule or f"seats.{name}", recorded, recomputed, view.named)


def _differences(
    rule: str, recorded: NDArray[Any], recomputed: NDArray[Any], named: Callable[[int], str]
) -> Iterator[tuple[str, str]]:
    """Says where two columns differ, floats by more than the rounding of their parts."""
    if recorded.dtype.kind == "f":
        same = np.isclose(recorded, recomputed, rtol=_RELATIVE, atol=1e-9, equal_nan=True)
    else:
        same = recorded == recomputed
    rows = np.flatnonzero(~same)
    if rows.size:
        examples = "; ".join(
            f"{named(row)}: recorded {recorded[row].item()!r}, recomputed {recomputed[row].item()!r}"
            for row in rows[:_NUM_EXAMPLES].tolist()
        )
        yield rule, f"{rows.size} of {recorded.size} rows differ; {examples}"


def _some(values: NDArray[Any]) -> str:
    shown = ", ".join(map(str, values[:_NUM_EXAMPLES].tolist()))
    return shown + (", ..." if values.size > _NUM_EXAMPLES else "")
