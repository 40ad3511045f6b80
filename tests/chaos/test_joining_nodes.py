"""Nodes that join a cluster in mid-run: they play, unless they may not."""

import pytest
from chaos_cluster import Machines
from cluster_runs import digest, new_run

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
