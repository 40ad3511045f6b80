"""Finished episodes, buffered by column, as one record batch per table.

Invariant: the totals in seats and episodes are sums of the decisions rows of the same batch. Pure:
must not know files.

Episodes wait as they are until the flush. A tuple kept per row would make the garbage collector walk
all of them, which costs more than the rest together; attempts are not walked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cogeval.core.record import Attempt, Episode
from cogeval.store.columns import (
    bool_column,
    bytes_column,
    coded_column,
    counts,
    encoded,
    flags,
    floats,
    map_column,
    name_column,
    nullable_counts,
    nullable_floats,
    number_column,
    text_column,
)
from cogeval.store.schema import DECISIONS, EPISODES, SEATS, STATISTICS

_TIME: Final = pa.timestamp("us", tz="UTC")
_EPISODE_FIELDS: Final = (
    "index", "episode_id", "block", "seed", "replicate", "reason", "phases", "stopped", "wall_s", "digest",
    "finished_us", "num_attempts", "num_seats",
)  # fmt: skip
_COUNTS: Final = ("tokens_in", "tokens_out", "tokens_cached")
_SEAT_FIELDS: Final = ("agent", "score", "rank", "share", "forfeited", "num_statistics")

_Pending: TypeAlias = tuple[int, str, int, Sequence[int], Episode, bytes, int]
"""Index, id, block, lineup, episode, digest and time of the end of an episode."""


class EpisodeBuffer:
    """Episodes that wait for their flush.

    Args:
        agent_names: names that the lineups' indexes stand for.
        worker: name of the worker.
    """

    __slots__ = ("_agent_names", "_pending", "_worker")

    def __init__(self, agent_names: Sequence[str], worker: str) -> None:
        self._agent_names = tuple(agent_names)
        self._worker = worker
        self.clear()

    def __len__(self) -> int:
        return len(self._pending)

    def clear(self) -> None:
        """Forgets everything."""
        self._pending: list[_Pending] = []

    def add(
        self,
        *,
        index: int,
        episode_id: str,
        block: int,
        lineup: Sequence[int],
        episode: Episode,
        finished_us: int,
    ) -> None:
        """Takes one episode, whole or, when it raises, not at all.

        Args:
            index: its place in the schedule.
            episode_id: its identity.
            block: its block.
            lineup: per seat, index into the agent names.
            episode: what happened.
            finished_us: unix time in microseconds.

        Raises:
            ValueError: the lineup does not fit the episode.
        """
        num_seats, names = len(episode.results.seats), self._agent_names
        if len(lineup) != num_seats or not all(0 <= a < len(names) for a in lineup):
            raise ValueError(
                f"expected {num_seats} indexes of {len(names)} agents as the lineup, got {lineup!r}"
            )
        digest = bytes.fromhex(episode.digest)
        self._pending.append((index, episode_id, block, lineup, episode, digest, finished_us))

    def batches(self) -> dict[str, Any]:
        """One record batch by table name, in the order decisions, seats, episodes; at least one row."""
        return _Columns(self._pending, self._agent_names, self._worker).batches()


class _Columns:
    """The waiting episodes as columns, made all at once: one by one costs twice as much."""

    def __init__(self, pending: Sequence[_Pending], agent_names: tuple[str, ...], worker: str) -> None:
        self._agent_names = agent_names
        self._worker = worker
        self._attempts: dict[str, list[Any]] = {name: [] for name in Attempt.__struct_fields__}
        self._episodes: dict[str, list[Any]] = {name: [] for name in _EPISODE_FIELDS}
        self._seats: dict[str, list[Any]] = {name: [] for name in _SEAT_FIELDS}
        self._keys: list[str] = []  # of the statistics of every seat, one after the other
        self._values: list[float] = []
        for index, episode_id, block, lineup, episode, digest, finished_us in pending:
            results = episode.results
            row = (
                index, episode_id, block, episode.seed, episode.replicate, results.reason, results.phases,
                episode.stopped, episode.wall_s, digest, finished_us, len(episode.attempts), len(lineup),
            )  # fmt: skip
            for column, value in zip(self._episodes.values(), row, strict=True):
                column.append(value)
            fields = zip(*map(msgspec.structs.astuple, episode.attempts), strict=True)
            for column, values in zip(self._attempts.values(), fields, strict=bool(episode.attempts)):
                column += values
            seats = self._seats
            seats["agent"] += lineup
            seats["rank"] += episode.ranks
            seats["share"] += episode.shares
            seats["forfeited"] += episode.forfeited
            for seat in results.seats:
                seats["score"].append(seat.score)
                seats["num_statistics"].append(len(seat.statistics))
                self._keys += seat.statistics
                self._values += seat.statistics.values()

    def batches(self) -> dict[str, Any]:
        """One record batch by table name."""
        attempts = _Attempts(self._attempts, self._episodes["num_attempts"])
        return {
            "decisions": self._decisions_batch(attempts),
            "seats": self._seats_batch(attempts),
            "episodes": self._episodes_batch(attempts),
        }

    def _decisions_batch(self, attempts: _Attempts) -> Any:
        fields, usage = self._attempts, attempts.usage
        indexes = np.array(self._episodes["index"], np.int64)
        arrays = [
            number_column(np.repeat(indexes, attempts.per_episode), pa.int64()),
            number_column(np.array(fields["phase"], np.int32), pa.int32()),
            number_column(attempts.seat, pa.int8()),
            number_column(np.array(fields["attempt"], np.int8), pa.int8()),
            name_column(fields["kind"]),
            coded_column(attempts.source, attempts.sources),
            bool_column(attempts.accepted),
            name_column(fields["action_text"]),
            coded_column(attempts.fault, attempts.faults),
            text_column(fields["detail"]),
            nullable_floats(attempts.think_s, pa.float32()),
            nullable_floats(attempts.queue_s, pa.float32()),
            *(nullable_counts(usage[name]) for name in _COUNTS),
            nullable_floats(usage["cost_usd"], pa.float64()),
            name_column(fields["model"]),
            name_column(fields["finish_reason"]),
            text_column(fields["text"]),
            text_column(fields["stderr"]),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=DECISIONS)

    def _seats_batch(self, attempts: _Attempts) -> Any:
        fields, episodes = self._seats, self._episodes
        per_episode = np.array(episodes["num_seats"], np.int64)
        first = np.concatenate(([0], np.cumsum(per_episode)))
        num = int(first[-1])
        row = np.repeat(first[:-1], attempts.per_episode) + attempts.seat  # seats row of every attempt

        def total(weights: NDArray[Any], kind: Any) -> Any:
            return number_column(np.bincount(row, weights, num), kind)

        decided = attempts.accepted.astype(np.float64)
        fallbacks = attempts.source != _code_of("agent", attempts.sources)
        usage = attempts.usage
        arrays = [
            number_column(np.repeat(np.array(episodes["index"], np.int64), per_episode), pa.int64()),
            number_column(np.repeat(np.array(episodes["block"], np.int32), per_episode), pa.int32()),
            number_column(np.arange(num) - np.repeat(first[:-1], per_episode), pa.int8()),
            coded_column(np.array(fields["agent"], np.int32), self._agent_names),
            number_column(np.array(fields["score"], np.float64), pa.float64()),
            number_column(np.array(fields["rank"], np.int8), pa.int8()),
            number_column(np.array(fields["share"], np.float64), pa.float64()),
            bool_column(flags(fields["forfeited"])),
            total(decided, pa.int32()),
            total(decided * fallbacks, pa.int32()),
            total(attempts.fault >= 0, pa.int32()),
            *(total(np.maximum(usage[name], 0), pa.int64()) for name in _COUNTS),
            total(_or_zero(usage["cost_usd"]), pa.float64()),
            total(_or_zero(attempts.think_s), pa.float64()),
            total(_or_zero(attempts.queue_s), pa.float64()),
            map_column(fields["num_statistics"], self._keys, self._values, STATISTICS),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SEATS)

    def _episodes_batch(self, attempts: _Attempts) -> Any:
        fields, num = self._episodes, len(self._episodes["index"])
        of_attempt = np.repeat(np.arange(num), attempts.per_episode)
        late = np.bincount(of_attempt, attempts.fault == _code_of("timeout", attempts.faults), num) > 0
        stopped = flags(fields["stopped"])
        arrays = [
            number_column(np.array(fields["index"], np.int64), pa.int64()),
            text_column(fields["episode_id"]),
            number_column(np.array(fields["block"], np.int32), pa.int32()),
            number_column(np.array(fields["seed"], np.int64), pa.int64()),
            number_column(np.array(fields["replicate"], np.int32), pa.int32()),
            name_column(fields["reason"]),
            number_column(np.array(fields["phases"], np.int32), pa.int32()),
            bool_column(stopped),
            bool_column(stopped | late),
            number_column(np.bincount(of_attempt, attempts.fault >= 0, num), pa.int32()),
            number_column(np.array(fields["wall_s"], np.float64), pa.float64()),
            bytes_column(fields["digest"]),
            name_column([self._worker] * num),
            number_column(np.array(fields["finished_us"], np.int64), _TIME),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=EPISODES)


class _Attempts:
    """What more than one table needs of the attempts, as arrays with one entry per attempt."""

    def __init__(self, fields: dict[str, list[Any]], per_episode: Sequence[int]) -> None:
        self.per_episode = np.array(per_episode, np.int64)
        self.seat = np.array(fields["seat"], np.int8)
        self.accepted = flags(fields["accepted"])
        self.think_s = floats(fields["think_s"])
        self.queue_s = floats(fields["queue_s"])
        self.source, self.sources = encoded(fields["source"])
        self.fault, self.faults = encoded(fields["fault"])
        self.usage = _usage(fields["usage"])


def _usage(usages: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """Usage by field, -1 and NaN where none was reported."""
    num = len(usages)
    if usages.count(None) == num:
        return {**dict.fromkeys(_COUNTS, np.full(num, -1, np.int64)), "cost_usd": np.full(num, np.nan)}
    columns: dict[str, NDArray[Any]] = {
        name: counts([None if u is None else getattr(u, name) for u in usages]) for name in _COUNTS
    }
    return {**columns, "cost_usd": floats([None if u is None else u.cost_usd for u in usages])}


def _or_zero(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isnan(numbers), 0.0, numbers)


def _code_of(name: str, names: Sequence[Any]) -> int:
    """Code of a value; -2, which no row has, when it does not occur."""
    return names.index(name) if name in names else -2
