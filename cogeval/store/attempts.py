"""Recorded episodes with every attempt at every decision, as the episode loop gave them to the store.

Invariant: one shard is in memory at a time, and of it one episode as Python values; a row that cannot
be read damages its own episode, which is named, and no other. Knows no game: who reads says how an
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
from cogeval.core.ranges import in_ranges
from cogeval.core.record import Attempt
from cogeval.errors import InputError
from cogeval.store.columns import to_numpy
from cogeval.store.intact import Shard, iter_shards
from cogeval.store.roots import call
from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS
from cogeval.store.shards import DamagedShard
from cogeval.store.text import read_text

ReadAction = Callable[[Json], Any]
"""Wire JSON to the game's action: `Game.action_from_wire`."""

_COLUMNS: Final = {
    "decisions": tuple(SCHEMAS["decisions"].names),
    "seats": ("index", "seat", "agent", "score"),
    "episodes": (
        "index", "episode_id", "block", "seed", "replicate", "reason", "phases", "stopped", "digest",
    ),
}  # fmt: skip
_TEXTS: Final = ("kind", "source", "action", "fault", "detail", "model", "finish_reason", "reply")


class RecordedEpisode(msgspec.Struct, frozen=True):
    """One recorded episode, every row of it."""

    index: int  # its place in the schedule
    episode_id: str  # 32 hexadecimal digits
    block: int
    seed: int
    replicate: int
    agents: tuple[str, ...]  # names in the pool, per seat
    scores: tuple[float, ...]  # per seat
    reason: str
    phases: int  # that were resolved, as the game counts
    stopped: bool  # the episode clock ended it
    digest: str  # 64 hexadecimal digits
    attempts: tuple[Attempt, ...]  # in the order phase, seat, attempt
    damage: str | None = None  # the row that could not be read, and why; the attempts end before it

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
        if isinstance(shard, DamagedShard):
            yield shard
        else:
            yield from _episodes(shard, read_action, wanted)


def recorded_episode(run: RunDir, index: int, read_action: ReadAction) -> RecordedEpisode:
    """Gives one recorded episode.

    Args:
        run: the run.
        index: its place in the schedule.
        read_action: reads an action from its wire JSON.

    Raises:
        InputError: it is not recorded, or its shard is damaged.
    """
    homes = [r.shard_id for r in run.records() if in_ranges(index, r.accepted)]
    if not homes:
        raise InputError(
            f"episode {index} of run {run.run_id} is not recorded; `cogeval status {call(run.path)}` says "
            "how many are"
        )
    (shard,) = iter_shards(run, _COLUMNS, shards=homes[:1])
    if isinstance(shard, DamagedShard):
        raise InputError(shard.message(call(run.path)))
    return next(_episodes(shard, read_action, {index}))


def _episodes(
    shard: Shard, read_action: ReadAction, wanted: Container[int] | None
) -> Iterator[RecordedEpisode]:
    decisions = shard.accepted("decisions").combine_chunks()
    spans = _spans(to_numpy(decisions["index"]))
    lineups: dict[int, list[tuple[int, str, float]]] = {}
    for row in shard.accepted("seats").to_pylist():
        if wanted is None or row["index"] in wanted:
            seat = (row["seat"], read_text(row["agent"]), row["score"])
            lineups.setdefault(row["index"], []).append(seat)
    for row in sorted(shard.accepted("episodes").to_pylist(), key=lambda row: int(row["index"])):
        index = row["index"]
        if wanted is not None and index not in wanted:
            continue
        start, stop = spans.get(index, (0, 0))
        attempts, damage = _attempts(decisions.slice(start, stop - start).to_pylist(), index, read_action)
        seats = sorted(lineups.get(index, []))
        yield RecordedEpisode(
            index=index,
            episode_id=row["episode_id"],
            block=row["block"],
            seed=row["seed"],
            replicate=row["replicate"],
            agents=tuple(name for _, name, _ in seats),
            scores=tuple(score for _, _, score in seats),
            reason=read_text(row["reason"]),
            phases=row["phases"],
            stopped=row["stopped"],
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


def _attempts(
    rows: list[dict[str, Any]], index: int, read_action: ReadAction
) -> tuple[tuple[Attempt, ...], str | None]:
    """The attempts up to the first row that cannot be read, and what is wrong with that one."""
    attempts: list[Attempt] = []
    for row in rows:
        try:
            attempts.append(_attempt(row, read_action))
        except Exception as error:  # noqa: BLE001 - a game's reader may fail in any way on what is no action
            place = f"episode {index}, phase {row['phase']}, seat {row['seat']}, attempt {row['attempt']}"
            what = f"{type(error).__name__}: {error}"
            return tuple(attempts), f"{place}: its action {row['action']!r:.200} cannot be read ({what:.200})"
    return tuple(attempts), None


def _attempt(row: dict[str, Any], read_action: ReadAction) -> Attempt:
    for column in _TEXTS:
        if row[column] is not None:
            row[column] = read_text(row[column])
    action = row["action"]
    reported = any(row[c] is not None for c in ("tokens_in", "tokens_out", "tokens_cached", "cost_usd"))
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
    )


def _usage(row: dict[str, Any]) -> Usage:
    return Usage(
        row["tokens_in"] or 0, row["tokens_out"] or 0, row["tokens_cached"] or 0, row["cost_usd"] or 0.0
    )


def _seconds(value: float | None) -> float:
    """A recorded time; what was no number, or more than a float32 holds, is none."""
    return value if value is not None and math.isfinite(value) else 0.0
