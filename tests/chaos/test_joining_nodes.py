"""Nodes that join a cluster in mid-run: they play, unless they may not."""

import json
import subprocess
import sys
import time

import pytest
from chaos_cluster import Machines
from cluster_runs import FAULTY, digest, new_run

from cogeval.cluster import crew
from cogeval.cluster.driver import drive
from cogeval.cluster.nodes import alive
from cogeval.cluster.plan import ClusterOptions
from cogeval.store.checks import check_run

pytestmark = pytest.mark.cluster


def waits(seconds):
    return {"slow": {"_target_": "misbehaving_agents.Waits", "seconds": seconds}}


@pytest.fixture
def machines():
    with Machines(num_nodes=1) as started:
        yield started


class Visit:
    """Observes a run and lets a node join it."""

    def __init__(self, machines):
        self.machines = machines
        self.before = None  # ids of the nodes that were there

    def __call__(self, progress):
        if self.before is None and progress.finished > 5:
            self.before = set(alive())
            self.machines.add_node()


def players(run):
    """Ids of the workers that have recorded episodes."""
    return {record.shard_id.split("-")[1] for record in run.records() if record.accepted}


def test_a_node_that_joins_plays(machines, tmp_path):
    hellos = []
    real = crew.complaint

    def heard(hello, place, token):
        hellos.append(hello["node"])
        return real(hello, place, token)

    run, plan = new_run(tmp_path, waits(0.15), schedule={"blocks": 150})
    visit = Visit(machines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew, "complaint", heard)
        outcome = drive(plan, run, ClusterOptions(address=machines.address), [visit])
    assert outcome.complete
    assert len(set(hellos) - visit.before) == 1
    assert players(run) == {"w0", "w1"}
    assert check_run(run) == []
    plain, plan = new_run(tmp_path / "plain", waits(0.0), schedule={"blocks": 150})
    assert drive(plan, plain, ClusterOptions(workers=1)).complete
    assert digest(run) == digest(plain)
    assert [path.name for path in run.place.path.glob(".probe-*")] == []


def test_a_node_that_joins_and_may_not_play_gets_no_second_worker(machines, tmp_path, monkeypatch):
    hellos = []
    real = crew.complaint

    def finds_fault(hello, place, token):
        hellos.append(hello["node"])
        return real({**hello, "cogeval": "0.0.7"} if len(set(hellos)) > 1 else hello, place, token)

    monkeypatch.setattr(crew, "complaint", finds_fault)
    run, plan = new_run(tmp_path, waits(0.1), schedule={"blocks": 150})
    outcome = drive(plan, run, ClusterOptions(address=machines.address), [Visit(machines)])
    assert outcome.complete
    assert len(hellos) == len(set(hellos)) == 2
    assert players(run) == {"w0"}
    (why,) = outcome.refused_nodes
    assert "runs cogeval 0.0.7, the driver " in why
    assert outcome.progress.num_lost_workers == outcome.progress.void == 0


def test_a_large_node_without_this_cogeval_is_refused_once_and_ends_nothing(machines, tmp_path):
    (tmp_path / "stub" / "cogeval").mkdir(parents=True)
    (tmp_path / "stub" / "cogeval" / "__init__.py").write_text('__version__ = "0.0.7"\n')
    (tmp_path / "conf" / "pool").mkdir(parents=True)
    (tmp_path / "conf" / "pool" / "slow.yaml").write_text(
        "agents: {slow: {_target_: misbehaving_agents.Waits, seconds: 0.1}}\n"
    )
    words = [
        "run", "--json", "--config-dir", str(tmp_path / "conf"), "pool=slow", f"agent_paths=[{FAULTY}]",
        "game.rounds=3", "schedule.blocks=300", f"cluster.address={machines.address}", "tracking=off",
        f"run.root={tmp_path}/runs",
    ]  # fmt: skip
    driver = subprocess.Popen(  # not in a checkout, which the node would import from
        [sys.executable, "-m", "cogeval", *words], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not sum(path.stat().st_size for path in tmp_path.glob("runs/*/shards/*.episodes.hot")):
        assert driver.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    machines.add_node(num_cpus=4, env_vars={"PYTHONPATH": str(tmp_path / "stub")})
    said = json.loads(driver.communicate(timeout=200)[0])
    assert said["complete"]
    (why,) = said["refused_nodes"]
    assert "No module named 'cogeval.cluster'" in why
    assert (said["lost_workers"], said["void"]) == (0, 0)
