"""What a plan says of seat actors; and the way on from a cluster that is gone."""

from __future__ import annotations

import pytest

from cogeval.cli.continuing import elsewhere
from cogeval.cli.seating import crowding
from cogeval.cluster.connection import check_address
from cogeval.cluster.seat_fit import Need, Node
from cogeval.errors import InputError, RunError

ACTED = "_target_: acted.Acted, placement: actor"


@pytest.fixture
def acted(tmp_path) -> None:
    (tmp_path / "acted.py").write_text("class Acted:\n    def decide(self, request):\n        return 0\n")


def planned(cogeval, actor: str, *more: str):
    agent = f"+pool.agents.big={{{ACTED}, actor: {{{actor}}}}}"
    return cogeval("run", "--plan", "agent_paths=[.]", "schedule.blocks=4", "game.rounds=3", agent, *more)


def test_a_plan_says_what_seat_actors_will_occupy(cogeval, acted) -> None:
    answer = planned(cogeval, "replicas: 2, spares: 1, cpus: 0.25, gpus: 0.5, memory_mb: 10")
    assert answer.code == 0, answer.err
    assert "big: 2 + 1 spare, in all 0.75 CPUs, 1.5 GPUs, 30 MB of memory" in answer.out
    assert "warning" not in answer.err
    answer = cogeval("run", "--plan", "schedule.blocks=4", "game.rounds=3")
    assert "seat actors" not in answer.out


def test_a_plan_warns_of_a_seat_actor_that_this_machine_cannot_hold(cogeval, acted) -> None:
    answer = planned(cogeval, "cpus: 100000")
    assert answer.code == 0
    assert "warning: pool.agents.big.actor: no node has what one replica asks for: 100,000 CPUs" in answer.err
    assert "warning" not in planned(cogeval, "cpus: 100000", "cluster.address=127.0.0.1:1").err


def test_a_plan_warns_of_seat_actors_that_this_machine_can_hold_one_by_one_only() -> None:
    needs = [Need("a", 3, 1.0, 0, 0), Need("b", 1, 0.5, 0, 0)]
    (told,) = crowding(needs, 2, Node("this machine", 2, 0, 1000))
    assert "ask for 3.5 CPUs beside 2 workers, and this machine has 2: they share them" in told
    assert crowding(needs, 2, Node("this machine", 4, 0, 1000)) == []


def test_a_plan_has_that_warning(cogeval, acted) -> None:
    answer = planned(cogeval, "replicas: 1000, cpus: 1")
    assert answer.code == 0
    assert "warning: seat actors, spares included, ask for 1001 CPUs" in answer.err
    assert "warning" not in planned(cogeval, "replicas: 1000, cpus: 1", "cluster.address=127.0.0.1:1").err


def test_a_cluster_that_is_gone_is_left_with_an_override_that_is_named(
    cogeval, make_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("cluster.address=127.0.0.1:1", done=6)
    answer = cogeval("resume", "latest", "--quiet")
    assert answer.code == 2
    assert "cluster.address=null" in answer.err

    def lost(*_: object, **__: object) -> None:
        raise RunError("the head is lost")

    monkeypatch.setattr("cogeval.cli.session._driven", lost)
    said = cogeval("resume", "latest", "--quiet").err
    assert f"cogeval resume {run.run_id} (on the cluster at 127.0.0.1:1" in said
    assert "add cluster.address=null to go on on this machine" in said
    assert "cluster.address=HOST:PORT" in said
    alone = cogeval("resume", "latest", "--quiet", "cluster.address=null").err
    assert alone.endswith("cluster.address=null\n")
    assert elsewhere(None) == ""


def test_no_cluster_at_an_address_names_the_way_onto_this_machine() -> None:
    with pytest.raises(InputError, match=r"cluster\.address=null"):
        check_address("127.0.0.1:1")
