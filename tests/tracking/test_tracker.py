"""Tracking into a real store, and without one: the run never waits and never fails."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cogeval.errors import RunError
from cogeval.report import RunSummary
from cogeval.tracking import MlflowTracker, RunDescription, Tracked, TrackingSettings, default_settings, track
from cogeval.tracking import tracker as tracker_module
from cogeval.tracking.flat import AGENT_METRICS
from cogeval.tracking.places import run_page

# MLflow's own use of SQLAlchemy, nothing that this project could mend.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

SECRET = "sk-do-not-write-me-anywhere"
LADDER = ["random", "assayer", "[red]quack[/red]"]


class Logged(NamedTuple):
    root: Path
    settings: TrackingSettings
    run: RunDescription
    summary: RunSummary
    tracked: Tracked
    client: Any


@pytest.fixture(scope="module")
def logged(tmp_path_factory, make_summary, make_description) -> Logged:
    """Two runs at once into a store that neither found there; the first is looked at."""
    root = tmp_path_factory.mktemp("tracking")
    settings = default_settings(root / "runs", every_s=3600.0)
    complaints: list[str] = []
    trackers = [MlflowTracker(settings, complaints.append) for _ in range(2)]
    for tracker, run_id in zip(trackers, ("run-a", "run-b"), strict=True):
        tracker.start(make_description(run_id))
        for recorded in range(1, 31):
            tracker.update(make_summary(run_id, recorded=recorded))
        tracker.finish(make_summary(run_id), ended_ms=1_790_000_060_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries that MLflow imports
        from mlflow import MlflowClient
    tracked = [tracker.close(timeout_s=120) for tracker in trackers]
    assert not complaints
    first, second = tracked
    assert first is not None
    assert second is not None
    assert first.experiment_id == second.experiment_id
    client = MlflowClient(tracking_uri=settings.uri)
    return Logged(root, settings, make_description("run-a"), make_summary("run-a"), first, client)


def test_a_run_has_one_mlflow_run_named_by_its_id_and_one_nested_run_per_agent(logged: Logged) -> None:
    runs = logged.client.search_runs([logged.tracked.experiment_id])
    names = [run.info.run_name for run in runs if run.data.tags["cogeval.run_id"] == "run-a"]
    assert sorted(names) == sorted(["run-a", *LADDER])
    assert len(runs) == 8
    assert [e.name for e in logged.client.search_experiments() if e.name != "Default"] == ["cogeval"]


def test_the_run_carries_configuration_counts_and_digest(logged: Logged) -> None:
    run = logged.client.get_run(logged.tracked.run_id)
    assert run.info.status == "FINISHED"
    assert run.info.start_time == 1_790_000_000_000
    assert run.info.end_time == 1_790_000_060_000
    assert run.data.params["game.rounds"] == "6"
    assert run.data.params["llm.max_tokens"] == "512"
    assert len(run.data.params["notes"]) == 6000
    assert run.data.metrics["episodes"] == 40
    assert run.data.metrics["void"] == 0
    assert run.data.tags["cogeval.digest"] == logged.summary.digest
    assert run.data.tags["game"] == "cogchemists"
    (dataset,) = run.inputs.dataset_inputs
    assert logged.summary.digest.startswith(dataset.dataset.digest)
    assert json.loads(dataset.dataset.source) == {"uri": "s3://***@bucket/runs/run-a/shards"}
    assert json.loads(dataset.dataset.profile)["digest"] == logged.summary.digest


def test_the_runs_own_page_is_found_in_the_store(logged: Logged) -> None:
    ids = f"/#/experiments/{logged.tracked.experiment_id}/runs/{logged.tracked.run_id}"
    assert run_page(logged.settings, "run-a") == f"{ids}?workflowType=machine_learning"
    assert run_page(logged.settings, "run-x") is None
    assert run_page(default_settings(logged.root / "runs", "another"), "run-a") is None


def test_each_agent_has_the_stable_metrics_and_who_it_is(logged: Logged) -> None:
    assert list(logged.tracked.agent_run_ids) == LADDER
    for name, run_id in logged.tracked.agent_run_ids.items():
        run = logged.client.get_run(run_id)
        missing = {"elo_low", "elo_high"} if name == LADDER[2] else set()
        assert set(run.data.metrics) == set(AGENT_METRICS) - missing
        assert run.data.tags["mlflow.parentRunId"] == logged.tracked.run_id
        assert run.data.tags["agent"] == run.info.run_name == name
        assert run.data.tags["version"] == "2"
        assert len(run.data.tags["fingerprint"]) == 40
    assert logged.client.get_run(logged.tracked.agent_run_ids["random"]).data.metrics["elo"] == 90.5
    assert logged.client.get_run(logged.tracked.agent_run_ids["assayer"]).data.params == {"depth": "3"}


def test_files_of_a_run_and_of_an_agent_are_where_the_settings_say(logged: Logged) -> None:
    paths = {file.path for file in logged.client.list_artifacts(logged.tracked.run_id)}
    assert paths == {"config.yaml", "ladder.txt", "ladder.json", "ladder.png", "scores.png", "seats.png"}
    for run_id in logged.tracked.agent_run_ids.values():
        assert "scores.png" in {file.path for file in logged.client.list_artifacts(run_id)}
    folder = logged.root / "mlartifacts" / logged.tracked.run_id / "artifacts"
    assert "[red]quack[/red]" in (folder / "ladder.txt").read_text(encoding="utf-8")
    assert json.loads((folder / "ladder.json").read_text(encoding="utf-8"))["recorded"] == 40
    assert {p.name for p in logged.root.iterdir()} == {"mlflow.db", "mlflow.db.lock", "mlartifacts"}


def test_the_description_shows_the_ladder_and_leads_to_the_comparison(logged: Logged) -> None:
    note = logged.client.get_run(logged.tracked.run_id).data.tags["mlflow.note.content"]
    assert logged.tracked.compare_path.removeprefix("/") in note
    assert all(f"{name}.png&run_uuid={logged.tracked.run_id}" in note for name in ("ladder", "scores"))
    assert "    1 random" in note


def test_no_secret_is_in_the_store_or_its_files(logged: Logged) -> None:
    files = [path for path in logged.root.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_of_many_updates_only_the_latest_are_logged(logged: Logged) -> None:
    history = logged.client.get_metric_history(logged.tracked.run_id, "episodes")
    steps = [metric.step for metric in history]
    assert len(steps) <= 2, "updates within every_s of each other replace each other"
    assert steps[-1] == 40


def test_logging_again_updates_and_doubles_nothing(logged: Logged) -> None:
    def everything() -> dict[str, Any]:
        state: dict[str, Any] = {}
        for run in logged.client.search_runs([logged.tracked.experiment_id]):
            run_id = run.info.run_id
            state[run_id] = (
                run.data.params,
                {key: [(m.step, m.value) for m in logged.client.get_metric_history(run_id, key)]
                 for key in run.data.metrics},
                [file.path for file in logged.client.list_artifacts(run_id)],
                [file.path for file in logged.client.list_artifacts(run_id, "images")],
                len(run.inputs.dataset_inputs),
                (run.info.status, run.info.end_time),
            )  # fmt: skip
        return state

    before = everything()
    again = track(logged.settings, logged.run, logged.summary, ended_ms=1_790_000_060_000, timeout_s=120)
    assert again == logged.tracked
    assert everything() == before


def test_a_reason_is_cut_between_words_and_holds_no_password(logged: Logged) -> None:
    from cogeval.tracking.process import _reason  # imports mlflow, which the fixture has paid for

    reason = _reason(ValueError(f"cannot reach http://me:{SECRET}@host:\n" + "because " * 99))
    assert reason.startswith("cannot reach http://***@host: because ")
    assert reason.endswith("because ...")
    assert len(reason) <= 300
    assert _reason(TimeoutError()) == "TimeoutError"


def test_a_resumed_run_goes_on_where_it_was(logged: Logged, make_summary, make_description) -> None:
    from cogeval.tracking.store import RunLog  # imports mlflow, which the fixture has paid for

    log = RunLog(logged.settings, make_description("run-c"))
    log.update(make_summary("run-c", recorded=10))
    stopped = log.finish(make_summary("run-c", recorded=20), None)
    assert logged.client.get_run(stopped.run_id).info.status == "KILLED"
    log = RunLog(logged.settings, make_description("run-c"))
    assert logged.client.get_run(stopped.run_id).info.status == "RUNNING"
    log.update(make_summary("run-c", recorded=30))
    assert log.finish(make_summary("run-c", recorded=40), None) == stopped
    for run_id in (stopped.run_id, *stopped.agent_run_ids.values()):
        assert logged.client.get_run(run_id).info.status == "FINISHED"
        history = logged.client.get_metric_history(run_id, "episodes")
        assert [(m.step, m.value) for m in history] == [(10, 10), (20, 20), (30, 30), (40, 40)]


def test_the_driver_never_imports_mlflow() -> None:
    code = "import sys, cogeval.tracking; sys.exit('mlflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_server_that_is_down_costs_one_line_that_names_the_way_out(
    make_summary, make_description, monkeypatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = TrackingSettings(f"http://me:{SECRET}@127.0.0.1:{port}")
    with pytest.raises(RunError) as raised:
        track(settings, make_description("run-d"), make_summary("run-d"), timeout_s=120)
    message = str(raised.value)
    assert "`cogeval track run-d` logs it again" in message
    assert "\n" not in message
    assert SECRET not in message


def test_a_store_that_cannot_be_opened_fails_before_anything_is_started(
    tmp_path: Path, make_summary, make_description, monkeypatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("started a process")

    monkeypatch.setattr(tracker_module, "_launch", never)
    settings = TrackingSettings(f"sqlite:///{tmp_path}")
    with pytest.raises(RunError, match=r"cannot open .*`cogeval track run-i run.root=x` logs it again"):
        track(
            settings, make_description("run-i"), make_summary("run-i"), again="cogeval track run-i run.root=x"
        )
    complaints: list[str] = []
    tracker = MlflowTracker(settings, complaints.append)
    tracker.start(make_description("run-h"))
    assert not tracker.wants_update()
    tracker.finish(make_summary("run-h"))
    assert tracker.close() is None
    assert len(complaints) == 1


@pytest.fixture
def silent_server() -> Iterator[tuple[int, threading.Event]]:
    """A port that takes connections and never answers; the event tells of the first one."""
    called = threading.Event()
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            try:
                while True:
                    kept.append(server.accept()[0])
                    called.set()
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], called
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    for connection in kept:
        connection.close()


def test_a_server_that_hangs_is_given_up_in_time_and_the_process_ended(
    silent_server, make_summary, make_description
) -> None:
    port, called = silent_server
    complaints: list[str] = []
    tracker = MlflowTracker(TrackingSettings(f"http://127.0.0.1:{port}"), complaints.append)
    tracker.start(make_description("run-e"))
    assert tracker._process is not None
    pid = tracker._process.pid
    started = time.monotonic()
    tracker.update(make_summary("run-e", recorded=10))
    assert not tracker.wants_update()
    tracker.finish(make_summary("run-e"))
    assert time.monotonic() - started < 1.0, "handing over a summary must not wait for anybody"
    assert called.wait(100)
    started = time.monotonic()
    assert tracker.close(timeout_s=0.5) is None
    assert time.monotonic() - started < 3.0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    (complaint,) = complaints
    assert "no answer" in complaint
    assert "`cogeval track run-e`" in complaint


def test_a_tracker_process_that_dies_costs_one_line(make_summary, make_description, monkeypatch) -> None:
    monkeypatch.setattr(tracker_module.sys, "executable", "/bin/false")
    complaints: list[str] = []
    tracker = MlflowTracker(TrackingSettings("http://127.0.0.1:1"), complaints.append)
    tracker.start(make_description("run-f"))
    tracker.finish(make_summary("run-f"))
    assert tracker.close(timeout_s=10) is None
    assert len(complaints) == 1


def test_a_tracker_process_that_cannot_start_costs_one_line(
    make_summary, make_description, monkeypatch
) -> None:
    monkeypatch.setattr(tracker_module.sys, "executable", "/no/such/python")
    complaints: list[str] = []
    tracker = MlflowTracker(TrackingSettings("http://127.0.0.1:1"), complaints.append)
    tracker.start(make_description("run-g"))
    assert not tracker.wants_update()
    tracker.update(make_summary("run-g", recorded=10))
    tracker.finish(make_summary("run-g"))
    assert tracker.close(timeout_s=10) is None
    (complaint,) = complaints
    assert "cannot start" in complaint
