"""Tracking as the command line drives it: live while a run is played, again on demand.

Invariant: a tracking store that fails costs one warning line; the run and the exit code of `run` and
`resume` do not depend on it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from cogeval.cli.arguments import Arguments
from cogeval.cli.output import print_json, show, warn
from cogeval.cli.progress import live_elo
from cogeval.cli.settings import called, config_of
from cogeval.cli.status import one_run
from cogeval.cli.summing import sum_up
from cogeval.config import Config
from cogeval.report import AgentSummary, RunSummary
from cogeval.store.roots import DEFAULT_ROOT
from cogeval.store.run import RunDir
from cogeval.tracking import (
    MlflowTracker,
    RunDescription,
    Tracked,
    TrackingSettings,
    default_settings,
)
from cogeval.tracking import (
    track as log_again,
)
from cogeval.tracking.places import without_password

if TYPE_CHECKING:  # it would import ray
    from cogeval.cluster.driver import Progress


def settings_of(run: RunDir, config: Config) -> TrackingSettings:
    """Where a run is tracked."""
    tracking = config.tracking
    root = run.place.parent.path  # a database file does not lie in an object store
    root = Path(DEFAULT_ROOT) if root is None else root
    beside = default_settings(root.absolute(), tracking.experiment, tracking.every_s)
    if tracking.uri is None:
        return beside
    return TrackingSettings(tracking.uri, tracking.experiment, None, tracking.every_s)


def data_uri(run: RunDir) -> str:
    """Where a run's data is, as a URI."""
    return run.uri if run.place.path is None else run.place.path.absolute().as_uri()


def described(run: RunDir, config: Config) -> RunDescription:
    """What tracking says of a run."""
    manifest = run.manifest
    return RunDescription(
        run_id=run.run_id,
        config=msgspec.to_builtins(config),
        data_uri=data_uri(run),
        tags={
            "game": str(manifest["game"]["name"]),
            "game_version": str(manifest["game"]["version"]),
            "cogeval": str(manifest["cogeval"]),
            "schedule_digest": str(manifest["schedule_digest"]),
            "config_digest": str(manifest["config_digest"]),
        },
        agent_parameters={agent["name"]: agent["parameters"] for agent in manifest["agents"]},
        created_ms=int(datetime.fromisoformat(manifest["created"]).timestamp() * 1000),
    )


def ended_ms(run: RunDir) -> int | None:
    """When the newest record was committed, milliseconds since 1970; None before there is one."""
    committed = max((record.committed for record in run.records()), default=None)
    return None if committed is None else int(datetime.fromisoformat(committed).timestamp() * 1000)


class LiveTracking:
    """An observer that keeps a run's page in MLflow up to date, and ends it.

    Args:
        run: the run.
        config: its configuration.
    """

    def __init__(self, run: RunDir, config: Config) -> None:
        self._agents: list[Mapping[str, Any]] = run.manifest["agents"]
        again = f"cogeval track {called(run)}"
        self._has_warned = self._is_abandoned = False
        self._tracker = MlflowTracker(settings_of(run, config), self._warn, again)
        self._tracker.start(described(run, config))

    def __call__(self, progress: Progress) -> None:
        """Sends the state when the last one is old enough."""
        if progress.done and self._tracker.wants_update():
            self._tracker.update(so_far(progress, self._agents))

    def finish(self, summary: RunSummary, ended_ms: int | None, timeout_s: float = 60.0) -> Tracked | None:
        """Logs the last state and ends the tracker; None when that failed, which has been said.

        Args:
            summary: the last state.
            ended_ms: when the run ended, milliseconds since 1970; None: now.
            timeout_s: how long to wait at most, seconds.
        """
        self._tracker.finish(summary, ended_ms)
        return self._tracker.close(timeout_s)

    def abandon(self) -> None:
        """Ends the tracker without a last state; of what ended the run, not of it, people shall read."""
        self._is_abandoned = True
        self._tracker.close(timeout_s=1.0)

    def _warn(self, line: str) -> None:
        if not (self._is_abandoned and self._has_warned):
            self._has_warned = True
            warn([line])


def so_far(progress: Progress, agents: list[Mapping[str, Any]]) -> RunSummary:
    """A summary of the sums that the driver keeps: no intervals, no score distributions.

    Args:
        progress: the driver's state.
        agents: of the manifest, in the order of the pool.
    """
    tally = progress.tally
    unknown: dict[str, Any] = dict.fromkeys(_NOT_SUMMED)
    elo = live_elo(tally.wins)
    return RunSummary(
        run_id=progress.run_id,
        digest="",
        scheduled=progress.total,
        recorded=progress.recorded + progress.finished,
        void=progress.void,
        ladder=None,
        agents=tuple(
            AgentSummary(
                name=agent["name"],
                version=agent["version"],
                fingerprint=agent["fingerprint"],
                elo=elo[i],
                win_share=float(tally.share_sum[i] / tally.num_seats[i]) if tally.num_seats[i] else None,
                num_episodes=int(tally.num_episodes[i]),
                num_seats=int(tally.num_seats[i]),
                num_decisions=0,
                num_faults=int(tally.faults[i]),
                cost_usd=0.0,
                tokens_in=0,
                tokens_out=0,
                **unknown,
            )
            for i, agent in enumerate(agents)
        ),
        scores=tuple(np.empty(0) for _ in agents),
    )


_NOT_SUMMED = (
    "elo_low", "elo_high", "score_mean", "score_sd", "score_q05", "score_q25", "score_q50", "score_q75",
    "score_q95", "fault_rate", "fallback_share", "latency_p50", "latency_p95",
)  # fmt: skip


def track(arguments: Arguments) -> int:
    """Logs a run to MLflow again."""
    run = one_run(arguments)
    config = config_of(run, arguments.overrides)
    settings = settings_of(run, config)
    began = time.monotonic()
    tracked = log_again(
        settings,
        described(run, config),
        sum_up(run, config.rating),
        ended_ms=ended_ms(run),
        again=f"cogeval track {called(run)}",
    )
    if arguments.switch("--json"):
        print_json(
            {
                "run_id": run.run_id,
                "uri": without_password(settings.uri),
                "experiment": settings.experiment,
                "experiment_id": tracked.experiment_id,
                "mlflow_run_id": tracked.run_id,
                "agent_run_ids": dict(tracked.agent_run_ids),
            }
        )
    else:
        took = time.monotonic() - began
        where = without_password(settings.uri)
        show(f"{run.run_id} is logged in {where}, experiment {settings.experiment} ({took:.1f} s)")
    return 0
