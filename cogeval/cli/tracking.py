"""Tracking as the command line drives it: live while a run is played, again on demand, and its pages.

Invariant: a tracking store that fails costs one warning line; the run and the exit code of `run` and
`resume` do not depend on it.
"""

from __future__ import annotations

import os
import subprocess
import sys
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
from cogeval.cli.settings import called, config_of, find_runs
from cogeval.cli.status import one_run
from cogeval.cli.summing import sum_up
from cogeval.config import Config
from cogeval.errors import InputError
from cogeval.report import AgentSummary, RunSummary
from cogeval.store.run import RunDir
from cogeval.tracking import (
    MlflowTracker,
    RunDescription,
    Tracked,
    TrackingSettings,
    default_settings,
    ui_command,
)
from cogeval.tracking import (
    track as log_again,
)

if TYPE_CHECKING:  # it would import ray
    from cogeval.cluster.driver import Progress


def settings_of(run: RunDir, config: Config) -> TrackingSettings:
    """Where a run is tracked."""
    tracking = config.tracking
    beside = default_settings(run.path.absolute().parent, tracking.experiment, tracking.every_s)
    if tracking.uri is None:
        return beside
    return TrackingSettings(tracking.uri, tracking.experiment, None, tracking.every_s)


def described(run: RunDir, config: Config) -> RunDescription:
    """What tracking says of a run."""
    manifest = run.manifest
    return RunDescription(
        run_id=run.run_id,
        config=msgspec.to_builtins(config),
        data_uri=run.path.absolute().as_uri(),
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


class LiveTracking:
    """An observer that keeps a run's page in MLflow up to date, and ends it.

    Args:
        run: the run.
        config: its configuration.
    """

    def __init__(self, run: RunDir, config: Config) -> None:
        self._agents: list[Mapping[str, Any]] = run.manifest["agents"]
        short, whole = f"cogeval track {run.run_id}", f"cogeval track {called(run)}"
        self._tracker = MlflowTracker(
            settings_of(run, config), lambda line: warn([line.replace(short, whole)])
        )
        self._tracker.start(described(run, config))

    def __call__(self, progress: Progress) -> None:
        """Sends the state when the last one is old enough."""
        if progress.done and self._tracker.wants_update():
            self._tracker.update(so_far(progress, self._agents))

    def finish(self, summary: RunSummary, timeout_s: float = 60.0) -> Tracked | None:
        """Logs the last state and ends the tracker; None when that failed, which has been said.

        Args:
            summary: the last state.
            timeout_s: how long to wait at most, seconds.
        """
        self._tracker.finish(summary)
        return self._tracker.close(timeout_s)

    def abandon(self) -> None:
        """Ends the tracker without a last state."""
        self._tracker.close(timeout_s=1.0)


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


def ui(arguments: Arguments) -> int:
    """Opens MLflow's pages on a run's tracking store."""
    run = find_runs(arguments, arguments.words or ["latest"])[0]
    settings = settings_of(run, config_of(run, arguments.overrides))
    command = ui_command(settings, port=_port(arguments))
    if command is None:
        show(f"the pages are at {settings.uri}")
        return 0
    if arguments.switch("--print"):
        show(command.line())
        return 0
    database = Path(settings.uri.removeprefix("sqlite:///"))
    if settings.uri.startswith("sqlite:///") and not database.exists():
        raise InputError(
            f"nothing is tracked in {database} yet; log the run first: cogeval track {called(run)}"
        )
    sys.stderr.write(f"{command.line()}\nthe pages will be at {command.address}; Ctrl-C ends them\n")
    return subprocess.run(  # noqa: S603 - our own command line
        command.argv, env={**os.environ, **command.environment}, check=False
    ).returncode


def track(arguments: Arguments) -> int:
    """Logs a run to MLflow again."""
    run = one_run(arguments)
    config = config_of(run, arguments.overrides)
    settings = settings_of(run, config)
    began = time.monotonic()
    tracked = log_again(settings, described(run, config), sum_up(run, config.rating))
    if arguments.switch("--json"):
        print_json(
            {
                "run_id": run.run_id,
                "uri": settings.uri,
                "experiment": settings.experiment,
                "experiment_id": tracked.experiment_id,
                "mlflow_run_id": tracked.run_id,
                "agent_run_ids": dict(tracked.agent_run_ids),
            }
        )
    else:
        took = time.monotonic() - began
        show(f"{run.run_id} is logged in {settings.uri}, experiment {settings.experiment} ({took:.1f} s)")
    return 0


def _port(arguments: Arguments) -> int:
    written = arguments.value("--port") or "5000"
    if not written.isdecimal() or not 0 < int(written) < 65536:
        raise InputError(f"--port: expected a number from 1 to 65535, got {written!r}")
    return int(written)
