"""kill -9 of the driver: nothing finished is lost, nothing is played twice, the digest is the same."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

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


def test_after_kill_9_of_the_driver_resume_plays_what_is_missing(tmp_path):
    what = ("run", "schedule.blocks=6000", "game.rounds=3", "tracking=off", "cluster.workers=2")
    quiet = cogeval(tmp_path / "quiet", *what)
    root = tmp_path / "killed"
    driver = psutil.Popen(command(root, *what), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while flushed_bytes(root) < 20_000 and time.monotonic() < deadline:
        assert driver.poll() is None, "the run ended before it could be killed"
        time.sleep(0.05)
    playing = [p for p in driver.children(recursive=True) if p.name().startswith(("ray::Episode", "raylet"))]
    assert playing
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    _, left = psutil.wait_procs(playing, timeout=60)
    assert left == []  # nobody plays on without a driver

    resumed = cogeval(root, "resume", "latest")
    assert 0 < resumed["played"] < 6000  # what had been flushed was recovered
    status = cogeval(root, "status", "latest")
    assert (status["recorded"], status["void"], status["state"]) == (6000, 0, "complete")
    assert status["digest"] == quiet["digest"]
    assert cogeval(root, "audit", "latest")["findings"] == []
