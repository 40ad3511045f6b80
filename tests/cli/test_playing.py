"""Runs on Ray from the command line: one Ray for all, small runs."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cogeval.cli import session
from cogeval.cli.progress import SilentView
from cogeval.cli.tracking import ended_ms
from cogeval.cluster.connection import connected
from cogeval.cluster.driver import Outcome, Progress
from cogeval.cluster.plan import ClusterOptions
from cogeval.cluster.tally import Tally
from cogeval.config import Experiment
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
    assert (answer.json["lost_workers"], answer.json["lost_seat_actors"]) == (0, 0)
    again = cogeval("resume", partly.run_id)
    assert again.code == 0
    assert "is complete: all 12 episodes recorded or void, nothing to play" in again.out


@pytest.mark.parametrize("table", ["seats", "decisions"])
def test_a_damaged_shard_is_played_again_by_resume(cogeval, make_run, table: str) -> None:
    run = make_run(*SMALL)
    digest = cogeval("status", "latest", "--json").json["digest"]
    path = min(run.shards_path.glob(f"*.{table}.arrow"))
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

    monkeypatch.setattr(session, "make_view", lambda **_: Impatient())
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
    assert answer.err.startswith("cogeval: failed: no room to write x")
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
    out = cogeval("run", "-m", *SMALL, "schedule.blocks=1", "seed=3,4", "--quiet", "run.root=two").out
    assert "Sweep of 2 jobs" in out
    ids = {path.name for path in (tmp_path / "two").iterdir()}
    *before, last = out.splitlines()
    assert before[-1] == "next:"
    assert last.startswith("  cogeval rate ")
    assert last.endswith(" run.root=two")
    assert set(last.split()[2:-1]) == ids
    assert cogeval(*shlex.split(out.splitlines()[-1])[1:]).code == 0
    unlike = cogeval("run", "-m", *SMALL, "schedule.blocks=1", "game.rounds=3,4", "--quiet").out
    assert unlike.splitlines()[-3] == "next:"
    assert [line.split()[1] for line in unlike.splitlines()[-2:]] == ["show", "show"]


def test_a_run_that_wrong_input_keeps_from_starting_leaves_nothing_behind(cogeval, tmp_path: Path) -> None:
    for argv in ((), ("-m", "seed=1,2")):
        answer = cogeval("run", *SMALL, "cluster.workers=999", *argv)
        assert answer.code == 2
        assert "cluster.workers: expected at most" in answer.err
        assert "cogeval resume" not in answer.err
        assert list((tmp_path / "runs").iterdir()) == []


def test_a_run_that_wrong_input_keeps_from_going_on_stays(cogeval, make_run) -> None:
    make_run(*SMALL, done=2)
    answer = cogeval("resume", "latest", "cluster.workers=999")
    assert answer.code == 2
    assert "Lower it or add nodes" in answer.err
    assert "to go on" not in answer.err  # the command that was typed would only fail again
    assert cogeval("status", "latest", "--json").json["recorded"] == 2


def test_a_run_that_another_driver_holds_is_refused_before_anything_is_shown(cogeval, make_run) -> None:
    run = make_run(*SMALL, done=2)
    with run.lock():
        answer = cogeval("resume", "latest")
    assert answer.code == 2
    assert "is being driven by process" in answer.err
    assert answer.err.count("\n") == 1
    assert "starting workers" not in answer.err


def _gives_up_on(wanted: Callable[[Experiment], Iterable[int]]) -> Callable[..., Outcome]:
    """Stands in for the driver: every wanted episode was tried in vain, and nothing else was missing."""

    def driven(run: RunDir, experiment: Experiment, *_: object, **__: object) -> Outcome:
        for index in wanted(experiment):
            run.append_log({"event": "void", "index": index, "reason": f"episode {index}: boom\nat last"})
        run.close()
        names = tuple(agent.name for agent in experiment.agents)
        progress = Progress(
            run.run_id, len(experiment.schedule), 0, 0, 0, 0.0, 0, names, Tally.empty(len(names))
        )
        return Outcome(True, False, progress, 0.0, 0, 0.0, 0)

    return driven


def test_void_episodes_are_told_with_the_last_reason(
    cogeval, make_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(*SMALL, "schedule.blocks=6", done=4)
    monkeypatch.setattr(session, "_driven", _gives_up_on(lambda _: (4, 5)))
    answer = cogeval("resume", "latest")
    assert answer.code == 0
    assert "warning: 2 episodes void: given up after our own failures, never scored" in answer.err
    assert "the last reason: episode 5: boom at last" in answer.err
    assert "in every one of them sat" not in answer.err, "all agents did: nobody is more suspect"


def test_a_run_of_void_episodes_only_is_a_failure_that_names_the_suspects(
    cogeval, monkeypatch: pytest.MonkeyPatch
) -> None:
    def those_of_bad(experiment: Experiment) -> Iterable[int]:
        bad = [agent.name for agent in experiment.agents].index("bad")
        return [slot.index for slot in experiment.schedule if bad in slot.lineup]

    monkeypatch.setattr(session, "_driven", _gives_up_on(those_of_bad))
    more = [f"+pool.agents.{name}.kind=random" for name in ("bad", "b", "c", "d", "e")]
    for argv in ((), ("--json",), ("-m", "seed=0,1")):
        answer = cogeval("run", *SMALL, *more, "schedule.blocks=20", *argv)
        assert answer.code == 1
        assert "warning: nothing was recorded; " in answer.err
        assert "; in every one of them sat bad; the last reason: episode " in answer.err


def test_a_sweep_with_an_impossible_job_starts_nothing(cogeval, tmp_path: Path) -> None:
    answer = cogeval("run", "-m", *SMALL, "game.rounds=3,2")
    assert answer.code == 2
    assert "got 2; in job 2 of 2" in answer.err
    assert "nothing was started" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_tracking_store_that_fails_costs_one_warning(cogeval, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    uri = f"sqlite:///{tmp_path}/file/mlflow.db"
    answer = cogeval("run", *SMALL, "tracking=mlflow", f"tracking.uri={uri}", "--quiet")
    assert answer.code == 0
    warnings = [line for line in answer.err.splitlines() if "warning" in line]
    assert len(warnings) == 1
    assert "`cogeval track " in warnings[0]


def _end_times(database: Path) -> dict[str, int]:
    with closing(sqlite3.connect(database)) as opened:
        return dict(opened.execute("SELECT run_uuid, end_time FROM runs"))


def test_track_logs_a_run_again(cogeval, make_run, tmp_path: Path) -> None:
    run = make_run(*SMALL)
    said = cogeval("track", "latest", "--json").json
    assert said["uri"] == f"sqlite:///{tmp_path}/mlflow.db"
    assert set(said["agent_run_ids"]) == {"assayer", "quack", "random"}
    ended = _end_times(tmp_path / "mlflow.db")
    assert set(ended.values()) == {ended_ms(run)}
    assert cogeval("track", run.run_id, "--json").json == said
    assert _end_times(tmp_path / "mlflow.db") == ended
    shutil.rmtree(tmp_path / "mlartifacts")
