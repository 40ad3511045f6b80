"""The ways onto a cluster that can be walked on one machine, walked to the end of a run."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from job_fakes import JOBS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

WHAT = ("pool=random", "game.rounds=3", "schedule.blocks=8", "tracking=off")
START_S = 100.0  # longest wait for a head
NUM_STARTS = 2


def environment(**variables):
    """As a user's with the project's commands first, and none of another Ray's variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return {**kept, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **variables}


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return str(server.getsockname()[1])


def status(root):
    command = [sys.executable, "-m", "cogeval", "status", "latest", f"run.root={root}", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def assert_complete(root):
    said = status(root)
    assert (said["state"], said["recorded"], said["void"]) == ("complete", 8, 0)


@pytest.fixture
def head():
    """The environment of a client of a started head with its job server; ended by its process group."""
    home = Path(tempfile.mkdtemp(prefix="cogeval-head-", dir="/tmp"))  # socket paths must be short
    started = None
    try:
        # Ray gives its own start half a minute, which is too little on a machine that is very busy.
        for attempt in range(NUM_STARTS):
            started, client = start_head(home / str(attempt))
            if started is not None:
                break
        assert started is not None, (home / str(attempt) / "head.log").read_text()
        yield client
    finally:
        if started is not None:
            end(started)
        shutil.rmtree(home, ignore_errors=True)


def start_head(home):
    """A head whose node and job server are up, or None when Ray has given up; and how to reach it."""
    home.mkdir()
    port = free_port()
    client = environment(
        RAY_API_SERVER_ADDRESS=f"http://127.0.0.1:{port}",
        RAY_AUTH_MODE="token",
        RAY_AUTH_TOKEN=os.urandom(32).hex(),
        RAY_USAGE_STATS_ENABLED="0",
    )
    command = [
        "ray", "start", "--head", "--block", "--node-ip-address=127.0.0.1", "--port=0", "--num-cpus=2",
        f"--dashboard-port={port}", "--dashboard-agent-listen-port=0", f"--temp-dir={home}",
        f"--ray-client-server-port={free_port()}", "--object-store-memory=100000000",
    ]  # fmt: skip
    log = home / "head.log"
    with log.open("w") as out:
        started = subprocess.Popen(
            command, env=client, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and started.poll() is None:
        if "Ray runtime started" in log.read_text() and answers(client["RAY_API_SERVER_ADDRESS"]):
            return started, client
        time.sleep(0.2)
    end(started)
    return None, client


def end(started):
    """Ends a head: it ends its own; what is left of its session after that is killed."""
    started.terminate()
    try:
        started.wait(40)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def answers(server):
    try:
        urllib.request.urlopen(f"{server}/api/version", timeout=2.0).close()
    except urllib.error.HTTPError:  # it wants the token: it is there
        return True
    except OSError:
        return False
    return True


def test_a_submitted_run_is_played_on_the_cluster_with_what_travels_along(head, tmp_path: Path) -> None:
    mine = tmp_path / "work"
    (mine / "conf" / "pool").mkdir(parents=True)
    (mine / "conf" / "pool" / "ours.yaml").write_text("agents: {ours: {_target_: our_agents.Default}}\n")
    (mine / "our_agents.py").write_text(
        "from cogeval.core.agent import Reply\n\n\nclass Default:\n"
        "    def decide(self, request):\n        return Reply(request.decision.default)\n"
    )
    root = tmp_path / "runs"
    command = [str(JOBS / "ray_job.sh"), "--config-dir", "conf", *WHAT, "pool=ours"]
    done = subprocess.run(
        command, env={**head, "RUN_ROOT": str(root)}, cwd=mine, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert_complete(root)


def test_three_local_nodes_play_a_run_and_are_gone_afterwards(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    command = [str(JOBS / "local_nodes.sh"), *WHAT, f"run.root={root}", "--quiet"]
    mine = Path(tempfile.mkdtemp(prefix="cogeval-", dir="/tmp"))  # of this test alone, and short
    with subprocess.Popen(
        command, env=environment(TMPDIR=str(mine)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    ) as started:  # fmt: skip
        said, _ = started.communicate(timeout=380)
        assert started.returncode == 0, said
    assert_complete(root)
    assert not [*mine.glob("cogeval-nodes-*")]
    shutil.rmtree(mine)
    with pytest.raises(ProcessLookupError):  # nobody of its group is left
        os.killpg(started.pid, 0)
