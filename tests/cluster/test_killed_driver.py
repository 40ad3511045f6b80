"""kill -9 of the driver: nothing finished is lost, nothing is played twice, the digest is the same."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from cluster_runs import FAULTY

pytestmark = pytest.mark.cluster


def command(root, *arguments):
    return [sys.executable, "-m", "cogeval", *arguments, f"run.root={root}"]


def cogeval(root, *arguments):
    done = subprocess.run(
        command(root, *arguments, "--json"), capture_output=True, text=True, check=True, timeout=200
    )
    return json.loads(done.stdout)


def flushed_bytes(root):
    return sum(path.stat().st_size for path in root.glob("*/shards/*.episodes.hot"))


def killed_run(root, *what, processes):
    """Begins a run and kills its driver when episodes are on disk; nobody of `processes` plays on."""
    driver = psutil.Popen(command(root, *what), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while flushed_bytes(root) < 20_000 and time.monotonic() < deadline:
        assert driver.poll() is None, "the run ended before it could be killed"
        time.sleep(0.05)
    playing = [p for p in driver.children(recursive=True) if p.name().startswith((*processes, "raylet"))]
    assert {process.name()[:9] for process in playing} >= {name[:9] for name in processes}
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    _, left = psutil.wait_procs(playing, timeout=60)
    assert left == []


def resumed_run(root, num, quiet):
    """Resumes it: what had been flushed was recovered, and nothing is lost or doubled."""
    resumed = cogeval(root, "resume", "latest")
    assert 0 < resumed["played"] < num
    status = cogeval(root, "status", "latest")
    assert (status["recorded"], status["void"], status["state"]) == (num, 0, "complete")
    assert status["digest"] == quiet["digest"]
    assert cogeval(root, "audit", "latest")["findings"] == []


def test_after_kill_9_of_the_driver_resume_plays_what_is_missing(tmp_path):
    what = ("run", "schedule.blocks=6000", "game.rounds=3", "tracking=off", "cluster.workers=2")
    quiet = cogeval(tmp_path / "quiet", *what)
    killed_run(tmp_path / "killed", *what, processes=("ray::Episode",))
    resumed_run(tmp_path / "killed", 6000, quiet)


def test_after_kill_9_of_a_driver_its_seat_actors_end_and_resume_plays_what_is_missing(tmp_path):
    pool = tmp_path / "conf" / "pool" / "seats.yaml"
    pool.parent.mkdir(parents=True)
    pool.write_text(
        "agents: {one: {_target_: seat_agents.Draws, seconds: 0.01, placement: actor, "
        "actor: {replicas: 2, cpus: 0}}}\n"
    )
    what = (
        "run", "--config-dir", str(pool.parent.parent), "pool=seats", f"agent_paths=[{FAULTY}]",
        "schedule.blocks=250", "game.rounds=3", "tracking=off", "cluster.workers=1",
    )  # fmt: skip
    quiet = cogeval(tmp_path / "quiet", *what)
    killed_run(tmp_path / "killed", *what, processes=("ray::Episode", "ray::SeatActor", "ray::SeatPool"))
    resumed_run(tmp_path / "killed", 250, quiet)
