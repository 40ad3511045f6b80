"""What the driver and the tracker process say to each other, over a pipe of their own.

Invariant: plain values; a summary replaces every earlier one, so that only the latest need be sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from cogeval.report import RunSummary

__all__ = ["Begin", "Failed", "Logged", "RunDescription", "Tracked", "TrackingSettings", "Update"]

_VIEW = "workflowType=machine_learning"  # MLflow's pages for runs; by default it opens those for traces


@dataclass(frozen=True, slots=True)
class TrackingSettings:
    """Where runs are tracked.

    Args:
        uri: of the tracking store: ``sqlite:///<absolute path>``, or ``http(s)://host:port``.
        experiment: its name; made when missing.
        artifact_root: directory or URI for files of an experiment that is made here; None: as the
            server decides.
        every_s: least time between two live updates, seconds.
    """

    uri: str
    experiment: str = "cogeval"
    artifact_root: str | None = None
    every_s: float = 30.0


@dataclass(frozen=True, slots=True)
class RunDescription:
    """What is fixed about a run before it starts.

    Args:
        run_id: ours; the MLflow run is named by it and found again by it.
        config: the resolved configuration, nested; keys that look like secrets are dropped.
        data_uri: where the shards are.
        tags: more to search by: game, code version, schedule digest.
        agent_parameters: per agent name, its parameters.
        created_ms: when the run was made, milliseconds since 1970; None: now.
    """

    run_id: str
    config: Mapping[str, Any]
    data_uri: str
    tags: Mapping[str, str] = field(default_factory=dict)
    agent_parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    created_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Tracked:
    """Where a run is in MLflow.

    Args:
        experiment_id: MLflow's id of the experiment.
        run_id: MLflow's id of the run.
        agent_run_ids: per agent name, MLflow's id of the nested run; the ladder's order.
    """

    experiment_id: str
    run_id: str
    agent_run_ids: Mapping[str, str]

    @property
    def compare_path(self) -> str:
        """The page that holds the agents side by side, to be put behind the address of a server."""
        runs = json.dumps(list(self.agent_run_ids.values()), separators=(",", ":"))
        experiments = json.dumps([self.experiment_id])
        return f"/#/compare-runs?runs={quote(runs)}&experiments={quote(experiments)}&{_VIEW}"


def page_of(experiment_id: str, run_id: str) -> str:
    """The page of an MLflow run, to be put behind the address of a server."""
    return f"/#/experiments/{quote(experiment_id)}/runs/{quote(run_id)}?{_VIEW}"


@dataclass(frozen=True, slots=True)
class Begin:
    """The first message: which run this process logs, and where."""

    settings: TrackingSettings
    run: RunDescription


@dataclass(frozen=True, slots=True)
class Update:
    """A state of the run; `final` adds files and ends the MLflow run."""

    summary: RunSummary
    final: bool
    ended_ms: int | None = None  # milliseconds since 1970; None: now


@dataclass(frozen=True, slots=True)
class Logged:
    """The answer to a message that was carried out."""

    tracked: Tracked


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer to one that was not."""

    reason: str
