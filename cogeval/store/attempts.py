"""Recorded episodes with every attempt at every decision, as the episode loop gave them to the store.

Invariant: one shard is in memory at a time, and a few of its episodes as Python values; a row that cannot
be used damages its own episode, which is named, and no other. Knows no game: who reads says how an
action is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Container, Iterator
from typing import Any, Final

import msgspec
import numpy as np

from cogeval.core.agent import Usage
from cogeval.core.game import Json
from cogeval.core.record import Attempt
from cogeval.store.columns import to_numpy
from cogeval.store.intact import Shard, iter_shards, part_with, parts_of
from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS
from cogeval.store.shards import DamagedShard, file_name
from cogeval.store.text import read_text

ReadAction = Callable[[Json], Any]
"""Wire JSON to the game's action: `Game.action_from_wire`."""

_COLUMNS: Final = {
    "decisions": tuple(SCHEMAS["decisions"].names),
    "seats": ("index", "block", "seat", "agent", "score", "rank", "share", "forfeited", "statistics"),
    "episodes": (
        "index", "episode_id", "block", "seed", "replicate", "reason", "phases", "stopped", "clock_events",
        "digest",
    ),
}  # fmt: skip
_COUNTS: Final = ("tokens_in", "tokens_out", "tokens_cached")
_TEXTS: Final = ("kind", "source", "action", "fault", "detail", "model", "finish_reason", "reply", "stderr")


class RecordedSeat(msgspec.Struct, frozen=True):
    """One row of the seats, without what the decisions add up to."""

    seat: int
    block: int
    agent: str  # name in the pool
    score: float
    rank: int
    share: float
    forfeited: bool
    statistics: dict[str, float]


class RecordedEpisode(msgspec.Struct, frozen=True):
    """One recorded episode, every row of it."""

    index: int  # its place in the schedule
    episode_id: str  # 32 hexadecimal digits
    block: int
    seed: int
    replicate: int
    seats: tuple[RecordedSeat, ...]  # in their order
    reason: str
    phases: int  # that were resolved, as the game counts
    stopped: bool  # the episode clock ended it
    clock_events: bool  # time decided something
    digest: str  # 64 hexadecimal digits
    attempts: tuple[Attempt, ...]  # in the order phase, seat, attempt
    damage: str | None = None  # the row that cannot be used, and why; the attempts end before it

    @property
    def agents(self) -> tuple[str, ...]:
        """Names in the pool, per seat."""
        return tuple(seat.agent for seat in self.seats)

    @property
    def scores(self) -> tuple[float, ...]:
        """Per seat."""
        return tuple(seat.score for seat in self.seats)

    @property
    def num_phases(self) -> int:
        """Phases in which somebody decided."""
        return self.attempts[-1].phase + 1 if self.attempts else 0


def iter_recorded(
    run: RunDir, read_action: ReadAction, wanted: Container[int] | None = None
) -> Iterator[RecordedEpisode | DamagedShard]:
    """Gives the recorded episodes shard by shard, in the order of the schedule within each.

    Args:
        run: the run.
        read_action: reads an action from its wire JSON.
        wanted: schedule indexes; None: all.

    Yields:
        Episodes, and every shard that cannot be trusted.
    """
    for shard in iter_shards(run, _COLUMNS):
        shard = _without_holes(shard)
        if isinstance(shard, DamagedShard):
            yield shard
        else:
            for part in parts_of(shard):
                yield from _episodes(part, read_action, wanted)


def recorded_episode(run: RunDir, index: int, read_action: ReadAction) -> RecordedEpisode:
    """Gives one recorded episode.

    Args:
        run: the run.
        index: its place in the schedule.
        read_action: reads an action from its wire JSON.

    Raises:
        InputError: it is not recorded, or its shard is damaged.
    """
    part = part_with(run, index, _COLUMNS, _without_holes)
    return next(_episodes(part, read_action, {index}))


def _without_holes(shard: Shard | DamagedShard) -> Shard | DamagedShard:
    """The shard, if no value is missing where there must be one."""
    if isinstance(shard, Shard):
        for table, rows in shard.tables.items():
            for field in SCHEMAS[table]:
                if not field.nullable and field.name in rows.column_names and rows[field.name].null_count:
                    record, what = shard.record, f"has null in {field.name}, where there must be a value"
                    return DamagedShard(
                        record.shard_id, file_name(record.shard_id, table), what, record.num_accepted
                    )
    return shard


def _episodes(
    shard: Shard, read_action: ReadAction, wanted: Container[int] | None
) -> Iterator[RecordedEpisode]:
    decisions = shard.accepted("decisions").combine_chunks()
    spans = _spans(to_numpy(decisions["index"]))
    lineups: dict[int, list[RecordedSeat]] = {}
    for row in shard.accepted("seats").to_pylist():
        if wanted is None or row["index"] in wanted:
            lineups.setdefault(row["index"], []).append(_seat(row))
    for row in sorted(shard.accepted("episodes").to_pylist(), key=lambda row: int(row["index"])):
        index = row["index"]
        if wanted is not None and index not in wanted:
            continue
        start, stop = spans.get(index, (0, 0))
        seats = tuple(sorted(lineups.get(index, ()), key=lambda seat: seat.seat))
        rows = decisions.slice(start, stop - start).to_pylist()
        attempts, damage = _attempts(rows, index, len(seats), read_action)
        numbers = [seat.seat for seat in seats]
        if numbers != [*range(len(numbers))]:
            damage = f"episode {index}: expected seats 0, 1, 2, ..., got {numbers}"
        yield RecordedEpisode(
            index=index,
            episode_id=row["episode_id"],
            block=row["block"],
            seed=row["seed"],
            replicate=row["replicate"],
            seats=seats,
            reason=read_text(row["reason"]),
            phases=row["phases"],
            stopped=row["stopped"],
            clock_events=row["clock_events"],
            digest=row["digest"].hex(),
            attempts=attempts,
            damage=damage,
        )


def _spans(indexes: Any) -> dict[int, tuple[int, int]]:
    """The rows of each episode; a writer keeps them together."""
    edges = np.flatnonzero(np.diff(indexes)) + 1
    starts = [0, *edges.tolist()] if len(indexes) else []
    stops = [*edges.tolist(), len(indexes)]
    return {int(indexes[a]): (a, b) for a, b in zip(starts, stops, strict=bool(starts))}


def _seat(row: dict[str, Any]) -> RecordedSeat:
    return RecordedSeat(
        seat=row["seat"],
        block=row["block"],
        agent=read_text(row["agent"]),
        score=row["score"],
        rank=row["rank"],
        share=row["share"],
        forfeited=row["forfeited"],
        statistics={read_text(name): value for name, value in row["statistics"]},
    )


def _attempts(
    rows: list[dict[str, Any]], index: int, num_seats: int, read_action: ReadAction
) -> tuple[tuple[Attempt, ...], str | None]:
    """The attempts up to the first row that cannot be used, and what is wrong with that one."""
    attempts: list[Attempt] = []
    before = (-1, num_seats, 0)
    for row in rows:
        at = (row["phase"], row["seat"], row["attempt"])
        place = f"episode {index}, phase {at[0]}, seat {at[1]}, attempt {at[2]}"
        if not (_follows(before, at) and 0 <= at[1] < num_seats):
            return tuple(attempts), f"{place}: expected a row in the order phase, seat, attempt, without gaps"
        before = at
        if len({row[name] is None for name in _COUNTS}) > 1:
            return tuple(attempts), f"{place}: expected {', '.join(_COUNTS)} together, got only some of them"
        try:
            attempts.append(_attempt(row, read_action))
        except Exception as error:  # noqa: BLE001 - a game's reader may fail in any way on what is no action
            what = f"{type(error).__name__}: {error}"
            return tuple(attempts), f"{place}: its action {row['action']!r:.200} cannot be read ({what:.200})"
    return tuple(attempts), None


def _follows(before: tuple[int, int, int], at: tuple[int, int, int]) -> bool:
    """True when an attempt may come next: another try, the next seat's first, or the next phase's first."""
    if at[:2] == before[:2]:
        return at[2] == before[2] + 1
    is_next = at[0] == before[0] + 1 or (at[0] == before[0] and at[1] > before[1])
    return is_next and at[2] == 0


def _attempt(row: dict[str, Any], read_action: ReadAction) -> Attempt:
    for column in _TEXTS:
        if row[column] is not None:
            row[column] = read_text(row[column])
    action = row["action"]
    reported = any(row[name] is not None for name in (*_COUNTS, "cost_usd"))
    return Attempt(
        phase=row["phase"],
        seat=row["seat"],
        attempt=row["attempt"],
        kind=row["kind"],
        source=row["source"],
        accepted=row["accepted"],
        action=None if action is None else read_action(json.loads(action)),
        fault=row["fault"],
        detail=row["detail"],
        think_s=_seconds(row["think_s"]),
        queue_s=_seconds(row["queue_s"]),
        usage=_usage(row) if reported else None,
        text=row["reply"],
        model=row["model"],
        finish_reason=row["finish_reason"],
        action_text=action,
        stderr=row["stderr"],
    )


def _usage(row: dict[str, Any]) -> Usage:
    return Usage(
        row["tokens_in"] or 0, row["tokens_out"] or 0, row["tokens_cached"] or 0, row["cost_usd"] or 0.0
    )


def _seconds(value: float | None) -> float:
    """A recorded time; what was no number, or more than a float32 holds, is none."""
    return value if value is not None and math.isfinite(value) else 0.0
