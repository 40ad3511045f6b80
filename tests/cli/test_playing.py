"""Runs on Ray from the command line: one Ray for all, small runs."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cogeval.cli import session
from cogeval.cli.progress import SilentView
from cogeval.cluster.connection import connected
from cogeval.cluster.plan import ClusterOptions
from cogeval.errors import RunError
from cogeval.store.run import RunDir

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SMALL = ("schedule.blocks=12", "game.rounds=3", "tracking=off", "cluster.workers=1")


@pytest.fixture(scope="module", autouse=True)
def ray() -> Iterator[None]:
    with connected(ClusterOptions(workers=2)):
        yield


def test_a_run_prints_its_ladder_where_it_is_and_what_to_do_next(cogeval, tmp_path: Path) -> None:
    answer = cogeval("run", *SMALL)
    assert answer.code == 0, answer.err
    (path,) = (tmp_path / "runs").iterdir()
    for said in ("Ladder of", f"run directory  runs/{path.name}", f"  cogeval show {path.name}\n"):
        assert said in answer.out
    assert "12 of 12 episodes" in answer.err
    assert {p.name for p in tmp_path.iterdir()} == {"runs"}
    status = cogeval("status", "latest", "--json").json
    assert (status["recorded"], status["state"], status["open_shards"]) == (12, "complete", [])
    assert status["digest"] in answer.out


def test_the_digest_is_the_same_for_any_number_of_workers_and_after_a_resume(cogeval, make_run) -> None:
    whole = cogeval("run", *SMALL, "cluster.workers=2", "--json", "--quiet")
    assert whole.code == 0, whole.err
    assert whole.err == ""
    partly = make_run(*SMALL, done=5)
    answer = cogeval("resume", partly.run_id, "--json", "--quiet", "cluster.workers=2")
    assert answer.code == 0, answer.err
    assert (answer.json["played"], answer.json["complete"]) == (7, True)
    assert answer.json["digest"] == whole.json["digest"]
    again = cogeval("resume", partly.run_id)
    assert again.code == 0
    assert "is complete: all 12 episodes recorded or void, nothing to play" in again.out


def test_a_damaged_shard_is_played_again_by_resume(cogeval, make_run) -> None:
    run = make_run(*SMALL)
    digest = cogeval("status", "latest", "--json").json["digest"]
    path = min(run.shards_path.glob("*.seats.arrow"))
    path.write_bytes(path.read_bytes()[:-9])
    answer = cogeval("resume", "latest", "--json", "--quiet")
    assert answer.code == 0, answer.err
    assert path.name in answer.err
    assert answer.json["played"] == 6
    after = cogeval("status", "latest", "--json")
    assert (after.json["digest"], after.json["damaged"], after.err) == (digest, [], "")


def test_resume_refuses_what_changed_by_name(cogeval, make_run, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(*SMALL, done=2)
    manifest = run.manifest
    quack = next(a for a in manifest["agents"] if a["name"] == "quack")
    now = quack["fingerprint"]
    changes: list[tuple[dict[str, Any], str]] = [
        ({"agents": [{**quack, "fingerprint": "0" * 16} if a is quack else a for a in manifest["agents"]]},
         f"agent quack changed since the run began: fingerprint {'0' * 16}, now {now}"),
        ({"game": {**manifest["game"], "version": "0"}}, "game version changed since the run began: '0'"),
        ({"rules_of_play": {**manifest["rules_of_play"], "deadlines": {"decision_s": 1.0}}},
         "deadlines.decision_s changed since the run began: 1.0, now 60.0"),
        ({"schedule_digest": "0"}, "the schedule changed since the run began"),
    ]  # fmt: skip
    for change, said in changes:
        monkeypatch.setattr(RunDir, "manifest", {**manifest, **change})
        answer = cogeval("resume", "latest")
        assert answer.code == 2
        assert said in answer.err
        assert "what changed is a new run, start it with cogeval run" in answer.err


def test_ctrl_c_keeps_what_is_finished_and_names_the_command_that_goes_on(
    cogeval, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(SilentView):
        def __call__(self, progress: object) -> None:
            if not self.asked and progress.finished + progress.recorded:  # type: ignore[attr-defined]
                self.asked = True
                os.kill(os.getpid(), signal.SIGINT)

        asked = False

    monkeypatch.setattr(session, "make_view", lambda quiet: Impatient())
    answer = cogeval("run", *SMALL, "schedule.blocks=20000", "run.root=elsewhere")
    assert answer.code == 130
    run_id = cogeval("status", "latest", "run.root=elsewhere", "--json").json["run_id"]
    assert answer.err.count("\n") == 1
    assert answer.err.startswith("cogeval: interrupted: ")
    assert (
        f"of 20,000 episodes are kept; go on with: cogeval resume {run_id} run.root=elsewhere" in answer.err
    )
    said = cogeval("status", run_id, "run.root=elsewhere", "--json").json
    assert 0 < said["recorded"] < 20_000
    assert (said["state"], said["open_shards"]) == ("interrupted", [])


def test_a_full_disk_stops_the_run_with_what_is_committed_intact(
    cogeval, make_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(*SMALL, done=6)

    def full(self: RunDir, *_: object) -> None:
        raise RunError("no room to write x: No space left on device; what is committed is intact")

    with monkeypatch.context() as patched:
        patched.setattr(RunDir, "commit", full)
        answer = cogeval("resume", "latest", "--quiet")
    assert answer.code == 1
    assert answer.err.startswith("cogeval: no room to write x")
    assert f"to go on: cogeval resume {run.run_id}" in answer.err
    assert cogeval("status", "latest", "--json").json["recorded"] == 6
    assert cogeval("resume", "latest", "--json", "--quiet").json["recorded"] == 12


def test_a_sweep_makes_one_run_a_job_and_a_failed_job_costs_only_itself(
    cogeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = session._driven

    def failing(run: RunDir, experiment: Any, *rest: Any, **more: Any) -> Any:
        if experiment.config.seed == 2:
            raise RunError("the second one fails")
        return real(run, experiment, *rest, **more)

    monkeypatch.setattr(session, "_driven", failing)
    answer = cogeval("run", "-m", *SMALL, "schedule.blocks=2", "seed=1,2,3", "--json", "--quiet")
    assert answer.code == 1
    assert "job 2 failed: the second one fails" in answer.err
    jobs = answer.json["jobs"]
    assert [job["overrides"] for job in jobs] == [["seed=1"], ["seed=2"], ["seed=3"]]
    assert [job.get("recorded") for job in jobs] == [2, None, 2]
    assert len(list((tmp_path / "runs").iterdir())) == 3
    assert "Sweep of 2 jobs" in cogeval("run", "-m", *SMALL, "schedule.blocks=1", "seed=3,4", "--quiet").out


def test_a_sweep_with_an_impossible_job_starts_nothing(cogeval, tmp_path: Path) -> None:
    answer = cogeval("run", "-m", *SMALL, "game.rounds=3,2")
    assert answer.code == 2
    assert "got 2; in job 2 of 2" in answer.err
    assert "nothing was started" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_tracking_store_that_fails_costs_one_warning(cogeval) -> None:
    answer = cogeval("run", *SMALL, "tracking=mlflow", "tracking.uri=nothing://nowhere", "--quiet")
    assert answer.code == 0
    warnings = [line for line in answer.err.splitlines() if "warning" in line]
    assert len(warnings) == 1
    assert "`cogeval track " in warnings[0]


def test_track_logs_a_run_again(cogeval, make_run, tmp_path: Path) -> None:
    run = make_run(*SMALL)
    said = cogeval("track", "latest", "--json").json
    assert said["uri"] == f"sqlite:///{tmp_path}/mlflow.db"
    assert set(said["agent_run_ids"]) == {"assayer", "quack", "random"}
    assert cogeval("track", run.run_id, "--json").json == said
    shutil.rmtree(tmp_path / "mlartifacts")
