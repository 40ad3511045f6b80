"""What a process of a run counts for whoever watches a cluster: episodes, faults, think and queue time.

Invariant: an episode costs a few additions; what a metric costs is paid once a receipt, however many episodes
are in it. Imports no ray: the sink is a thin shell around its metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from cogeval.core.agent import Seated
from cogeval.core.record import Attempt, Episode

SECONDS: Final = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0)
"""Boundaries of the histograms of think and queue time."""

METRICS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = MappingProxyType(
    {
        "cogeval_episodes": ("counter", "Episodes finished by workers", ()),
        "cogeval_faults": ("counter", "Faults of an agent by kind", ("agent", "fault")),
        "cogeval_think_s": ("histogram", "Think time of an attempt, seconds", ("agent",)),
        "cogeval_queue_s": ("histogram", "Waits of an attempt that are not thinking, seconds", ("agent",)),
        "cogeval_in_flight": ("gauge", "Episodes that a worker has begun and not ended", ("worker",)),
        "cogeval_retries": ("counter", "Episodes sent again after our own failures", ()),
        "cogeval_void": ("counter", "Episodes given up after our own failures", ()),
        "cogeval_lost_workers": ("counter", "Workers that died or were given up", ()),
        "cogeval_lost_seat_actors": ("counter", "Seat actors that died or were ended", ("agent",)),
        "cogeval_recorded": ("gauge", "Episodes of the run in committed shards", ()),
        "cogeval_spent_usd": ("gauge", "What the run has spent, dollars", ()),
    }
)
"""Name -> (kind, what it is, labels); every one has the labels ``run_id`` and ``game`` too."""


class Sink(Protocol):
    """Where the numbers go."""

    def add(self, metric: str, amount: float, labels: Mapping[str, str]) -> None:
        """Adds to a counter."""

    def observe(self, metric: str, values: Sequence[float], labels: Mapping[str, str]) -> None:
        """Adds values to a histogram."""

    def set(self, metric: str, value: float, labels: Mapping[str, str]) -> None:
        """Sets a gauge."""


class NoSink:
    """Nobody watches."""

    def add(self, metric: str, amount: float, labels: Mapping[str, str]) -> None:
        """Nothing."""

    def observe(self, metric: str, values: Sequence[float], labels: Mapping[str, str]) -> None:
        """Nothing."""

    def set(self, metric: str, value: float, labels: Mapping[str, str]) -> None:
        """Nothing."""


class Meter:
    """Counts the episodes of one worker between two receipts.

    Agents that think at once (deterministic ones, which may decide fifty thousand times a second) are not
    timed: their latency is in the shards.

    Args:
        seated: the pool, in the order of the lineups' numbers.
        sink: where the numbers go.
        worker: this worker's id.
    """

    def __init__(self, seated: Sequence[Seated], sink: Sink, worker: str) -> None:
        self._names = [one.name for one in seated]
        self._timed = [not one.deterministic for one in seated]
        self._is_timing = any(self._timed)
        self._sink = sink
        self._worker = worker
        self._clear()

    def _clear(self) -> None:
        self._num_episodes = 0
        self._faults: Counter[tuple[int, str]] = Counter()
        self._think_s: dict[int, list[float]] = {}
        self._queue_s: dict[int, list[float]] = {}

    def add(self, lineup: Sequence[int], episode: Episode, faulty: Sequence[Attempt]) -> None:
        """Counts one finished episode.

        Args:
            lineup: agent index per seat.
            episode: what happened.
            faulty: its attempts with a fault.
        """
        self._num_episodes += 1
        for attempt in faulty:
            if attempt.fault is not None:
                self._faults[lineup[attempt.seat], attempt.fault] += 1
        for attempt in episode.attempts if self._is_timing else ():
            agent = lineup[attempt.seat]
            if self._timed[agent] and attempt.source == "agent":
                self._think_s.setdefault(agent, []).append(attempt.think_s)
                self._queue_s.setdefault(agent, []).append(attempt.queue_s)

    def publish(self, in_flight: int) -> None:
        """Hands over what was counted since the last time.

        Args:
            in_flight: episodes that the worker has begun and not ended.
        """
        self._sink.set("cogeval_in_flight", in_flight, {"worker": self._worker})
        if not self._num_episodes:
            return
        self._sink.add("cogeval_episodes", self._num_episodes, {})
        for (agent, fault), num in self._faults.items():
            self._sink.add("cogeval_faults", num, {"agent": self._names[agent], "fault": fault})
        for metric, timed in (("cogeval_think_s", self._think_s), ("cogeval_queue_s", self._queue_s)):
            for agent, values in timed.items():
                self._sink.observe(metric, values, {"agent": self._names[agent]})
        self._clear()
