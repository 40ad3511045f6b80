"""A run in an MLflow store. The one module that imports mlflow: it runs in the tracker process only.

Invariant: logging the same state of a run twice leaves the store as logging it once does; runs are
found again by the tag ``cogeval.run_id``. Everything may raise: the caller answers for it.
"""

from __future__ import annotations

import fcntl
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import PIL.Image
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from cogeval.report import AgentSummary, RunSummary
from cogeval.report.files import write_agent_files, write_run_files
from cogeval.tracking.flat import agent_metrics, flattened, run_metrics, without_secrets
from cogeval.tracking.messages import RunDescription, Tracked, TrackingSettings
from cogeval.tracking.places import sqlite_path, without_password

__all__ = ["RunLog"]

_BATCH = 100  # parameters that MLflow takes in one batch
_PAGE = 1000  # runs that it gives at once
_TAG_CHARS = 8000
_DPI = 100  # MLflow shows a figure in a description pixel by pixel, about 700 of them wide
_DATASET_DIGEST_CHARS = 36
_EXPERIMENT_TAGS = {
    "mlflow.experimentKind": "custom_model_development",  # opens on runs, not on traces
    "mlflow.note.content": "One run per cogeval run; unfold it to see its agents, one nested run each. "
    "The description of a run holds its ladder and a link that compares its agents.",
}
_RUN = ""  # the run itself among its agents: no agent has an empty name


@dataclass(slots=True)
class _Logged:
    """What the store holds of one MLflow run already."""

    mlflow_id: str
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    step: int | None = None


class RunLog:
    """One run and its agents in the store.

    Args:
        settings: which store and experiment.
        run: what is fixed about the run.
    """

    def __init__(self, settings: TrackingSettings, run: RunDescription) -> None:
        self._run = run
        with _first_use(settings.uri):
            self._client = MlflowClient(tracking_uri=settings.uri)
            self._experiment_id = self._experiment(settings)
        self._logged = self._found()
        if _RUN in self._logged:
            self._client.update_run(self._logged[_RUN].mlflow_id, status="RUNNING")
        else:
            self._logged[_RUN] = self._create(run.run_id, {"cogeval.kind": "run", **run.tags})

    def update(self, summary: RunSummary) -> Tracked:
        """Logs the metrics of a state, at the step that is its number of recorded episodes."""
        whole = self._logged[_RUN]
        self._log_params(whole, flattened(self._run.config))
        self._log_metrics(whole, run_metrics(summary), summary.recorded)
        agents: dict[str, str] = {}
        for agent in summary.ranked():
            if agent.name not in self._logged:
                self._logged[agent.name] = self._create_agent(agent)
            logged = self._logged[agent.name]
            self._log_params(logged, flattened(self._run.agent_parameters.get(agent.name, {})))
            self._log_metrics(logged, agent_metrics(agent), summary.recorded)
            agents[agent.name] = logged.mlflow_id
        return Tracked(self._experiment_id, whole.mlflow_id, agents)

    def finish(self, summary: RunSummary, ended_ms: int | None) -> Tracked:
        """Logs the last state with its files, and ends the runs."""
        tracked = self.update(summary)
        self._client.log_dict(tracked.run_id, without_secrets(self._run.config), "config.yaml")
        with tempfile.TemporaryDirectory(prefix="cogeval-") as folder:
            write_run_files(summary, Path(folder), _DPI)
            ladder = (Path(folder) / "ladder.txt").read_text(encoding="utf-8")
            self._client.log_artifacts(tracked.run_id, folder)
        self._log_data(tracked.run_id, summary)
        self._tag(
            tracked.run_id, {"cogeval.digest": summary.digest, "mlflow.note.content": _note(ladder, tracked)}
        )
        for name, mlflow_id in tracked.agent_run_ids.items():
            with tempfile.TemporaryDirectory(prefix="cogeval-") as folder:
                write_agent_files(summary, name, Path(folder), _DPI)
                self._client.log_artifacts(mlflow_id, folder)
                self._show_scores(mlflow_id, Path(folder) / "scores.png", summary.recorded)
            self._tag(mlflow_id, {"mlflow.note.content": _figure("scores", mlflow_id)})
        complete = summary.recorded + summary.void >= summary.scheduled
        for mlflow_id in (*tracked.agent_run_ids.values(), tracked.run_id):
            self._client.set_terminated(mlflow_id, "FINISHED" if complete else "KILLED", ended_ms)
        return tracked

    def _experiment(self, settings: TrackingSettings) -> str:
        """The experiment's id; its files go where the settings say, never into the current directory."""
        found = self._client.get_experiment_by_name(settings.experiment)
        if found is None:
            try:
                return str(
                    self._client.create_experiment(
                        settings.experiment, settings.artifact_root, _EXPERIMENT_TAGS
                    )
                )
            except MlflowException:  # another run may have made it between the two calls
                found = self._client.get_experiment_by_name(settings.experiment)
                if found is None:
                    raise
        return str(found.experiment_id)

    def _found(self) -> dict[str, _Logged]:
        """What an earlier logging of this run left, by agent name."""
        found: dict[str, _Logged] = {}
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment_id],
                f"tags.`cogeval.run_id` = '{self._run.run_id}'",
                max_results=_PAGE,
                page_token=token,
            )
            for run in page:
                name = run.data.tags.get("agent", _RUN)
                history = self._client.get_metric_history(run.info.run_id, "episodes")
                step = max((metric.step for metric in history), default=None)
                found[name] = _Logged(run.info.run_id, dict(run.data.params), dict(run.data.metrics), step)
            token = page.token
            if not token:
                return found

    def _create(self, name: str, tags: Mapping[str, str]) -> _Logged:
        source = {"mlflow.source.name": "cogeval", "mlflow.source.type": "LOCAL"}
        given = {"cogeval.run_id": self._run.run_id, **source, **tags}
        run = self._client.create_run(
            self._experiment_id,
            start_time=self._run.created_ms,
            tags={key: without_password(str(value))[:_TAG_CHARS] for key, value in given.items()},
            run_name=name,
        )
        return _Logged(run.info.run_id)

    def _create_agent(self, agent: AgentSummary) -> _Logged:
        tags = {
            **self._run.tags,
            "mlflow.parentRunId": self._logged[_RUN].mlflow_id,
            "cogeval.kind": "agent",
            "agent": agent.name,
            "version": agent.version,
            "fingerprint": agent.fingerprint,
        }
        return self._create(agent.name, tags)

    def _tag(self, mlflow_id: str, tags: Mapping[str, str]) -> None:
        given = [RunTag(key, value[:_TAG_CHARS]) for key, value in tags.items()]
        self._client.log_batch(mlflow_id, tags=given)

    def _log_params(self, logged: _Logged, params: Mapping[str, str]) -> None:
        """Logs those that the store lacks: MLflow refuses to change one, and a run's never change."""
        given = [Param(key, value) for key, value in params.items() if key not in logged.params]
        for i in range(0, len(given), _BATCH):
            self._client.log_batch(logged.mlflow_id, params=given[i : i + _BATCH])
        logged.params.update(params)

    def _log_metrics(self, logged: _Logged, metrics: Mapping[str, float], step: int) -> None:
        """Logs a step; of one that is there already, only what differs, so that no point is doubled."""
        now_ms = time.time_ns() // 1_000_000
        given = [
            Metric(key, value, now_ms, step)
            for key, value in metrics.items()
            if step != logged.step or logged.metrics.get(key) != value
        ]
        if given:
            self._client.log_batch(logged.mlflow_id, metrics=given)
        logged.step = step
        logged.metrics.update(metrics)

    def _show_scores(self, mlflow_id: str, figure: Path, step: int) -> None:
        """Puts a figure among the charts of the experiment, where those of many runs stand in a grid."""
        shown = [file.path for file in self._client.list_artifacts(mlflow_id, "images")]
        if not any(f"+step+{step}+" in path for path in shown):
            with PIL.Image.open(figure) as image:
                self._client.log_image(mlflow_id, image, key="scores", step=step)

    def _log_data(self, mlflow_id: str, summary: RunSummary) -> None:
        """Logs the shards as the run's dataset: where they are and the digest over their episodes."""
        dataset = Dataset(
            name=self._run.run_id,  # not a fixed name: a run played again has the digest of the first
            digest=summary.digest[:_DATASET_DIGEST_CHARS],
            source_type="local",
            source=json.dumps({"uri": without_password(self._run.data_uri)}),
            profile=json.dumps(
                {"episodes": summary.recorded, "void": summary.void, "digest": summary.digest}
            ),
        )
        tag = InputTag("mlflow.data.context", "evaluation")
        self._client.log_inputs(mlflow_id, [DatasetInput(dataset, [tag])])


@contextmanager
def _first_use(uri: str) -> Iterator[None]:
    """Holds off other processes while an SQLite file is made and migrated: two at once corrupt it."""
    path = sqlite_path(uri)
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _note(ladder: str, tracked: Tracked) -> str:
    """The run's description on its MLflow page: the ladder, its figures, the agents side by side.

    The ladder is indented, which makes Markdown show it literally, agents' names included.
    """
    link = f"[Compare the agents]({tracked.compare_path.removeprefix('/')})\n\n"
    figures = "".join(_figure(name, tracked.run_id) for name in ("ladder", "scores"))
    room = _TAG_CHARS - len(link) - len(figures)
    lines = "".join(f"    {line}\n" for line in ladder.split("\n\n\n")[0].splitlines())
    if len(lines) > room:  # whole lines only
        lines = lines[: lines.rindex("\n", 0, room - 20) + 1] + "    (and so on)\n"
    return link + lines + figures


def _figure(name: str, mlflow_id: str) -> str:
    """Markdown that shows a figure of a run, from whatever address the page was opened at."""
    return f"\n![{name}](get-artifact?path={name}.png&run_uuid={mlflow_id})\n"
