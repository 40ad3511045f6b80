"""The sink of a cluster's metrics: `ray.util.metrics`, which Prometheus reads from every node.

Invariant: nothing that goes wrong with a metric reaches a run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from ray.util import metrics

from cogeval.cluster.meters import METRICS, SECONDS

_COMMON = ("run_id", "game")


class RaySink:
    """Ray's metrics, made when they are first used.

    Args:
        run_id: of the run, a label of every metric.
        game: its name, another.
    """

    def __init__(self, run_id: str, game: str) -> None:
        self._common = {"run_id": run_id, "game": game}
        self._made: dict[str, Any] = {}

    def add(self, metric: str, amount: float, labels: Mapping[str, str]) -> None:
        """Adds to a counter."""
        if amount <= 0:
            return
        with contextlib.suppress(Exception):  # Ray may be lost just now, which is said elsewhere
            self._of(metric).inc(amount, {**self._common, **labels})

    def observe(self, metric: str, values: Sequence[float], labels: Mapping[str, str]) -> None:
        """Adds values to a histogram."""
        with contextlib.suppress(Exception):
            histogram, tags = self._of(metric), {**self._common, **labels}
            for value in values:
                histogram.observe(max(value, 1e-9), tags)  # Ray refuses 0

    def set(self, metric: str, value: float, labels: Mapping[str, str]) -> None:
        """Sets a gauge."""
        with contextlib.suppress(Exception):
            self._of(metric).set(value, {**self._common, **labels})

    def _of(self, name: str) -> Any:
        if name not in self._made:
            kind, what, labels = METRICS[name]
            keys = (*_COMMON, *labels)
            if kind == "histogram":
                made = metrics.Histogram(name, description=what, boundaries=list(SECONDS), tag_keys=keys)
            elif kind == "counter":
                made = metrics.Counter(name, description=what, tag_keys=keys)
            else:
                made = metrics.Gauge(name, description=what, tag_keys=keys)
            self._made[name] = made
        return self._made[name]
