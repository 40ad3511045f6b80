"""Nodes that join while a run is played: who gets workers, and who does not."""

import time

import pytest

from cogeval.cluster import grounds
from cogeval.cluster.grounds import Grounds
from cogeval.cluster.seat_fit import Need, Node


def node(cpus):
    return Node(f"10.0.0.{cpus}", cpus, 0, 1000)


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch):
    monkeypatch.setattr(grounds, "_LOOK_S", 0.001)


def until(true):
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def looked(asked, number=2):
    """Waits for whole looks from now on."""
    seen = asked[0]
    until(lambda: asked[0] >= seen + number)


class Cluster:
    """Says which nodes there are, and how often it was asked."""

    def __init__(self, **nodes):
        self.nodes = nodes
        self.asked = [0]

    def __call__(self):
        self.asked[0] += 1
        if self.nodes is None:
            raise ConnectionError("the head does not answer")
        return self.nodes


def watched(cluster, num_workers, **options):
    return Grounds(num_workers, trusted=["a"], nodes=cluster, **options)


def test_a_node_that_joins_gets_a_worker_for_each_cpu():
    cluster = Cluster(a=node(2))
    with watched(cluster, 2, grows=True) as place:
        looked(cluster.asked)
        assert place.lacking(2) == 0
        cluster.nodes = {"a": node(2), "b": node(3)}
        until(lambda: place.lacking(2) == 3)


def test_a_run_with_a_number_of_workers_keeps_it():
    cluster = Cluster(a=node(2), b=node(8))
    with watched(cluster, 2, grows=False) as place:
        assert (place.lacking(2), place.lacking(1)) == (0, 1)
    assert cluster.asked == [0]


def test_nobody_waits_twice_for_a_node_that_is_lost():
    cluster = Cluster(a=node(2), b=node(2))
    with watched(cluster, 4, grows=True) as place:
        cluster.nodes = {"a": node(2)}
        looked(cluster.asked)
        assert place.lacking(4) == 0  # those whose node is gone have successors that wait for room


def test_seat_actors_keep_their_room():
    cluster = Cluster(a=node(2), b=node(4))
    need = Need("one", 2, 1.0, 0.0, 0.0)
    with Grounds(1, [need], ["a"], grows=True, nodes=cluster) as place:
        until(lambda: place.lacking(1) == 3)
        cluster.nodes = {"a": node(1)}  # less than the seat actors need
        looked(cluster.asked)
        assert place.lacking(4) == 0


def test_a_node_that_is_refused_counts_for_nothing_and_gets_no_worker():
    cluster = Cluster(a=node(2), b=node(8))
    with watched(cluster, 2, grows=True) as place:
        assert place.label_selector() == {}
        place.refuse("b")
        looked(cluster.asked)
        assert place.lacking(2) == 0
        assert place.label_selector() == {"ray.io/node-id": "!in(b)"}


def test_a_node_is_doubtful_until_a_worker_has_played_there():
    place = watched(Cluster(), 1)
    assert (place.is_doubtful("a"), place.is_doubtful("b")) == (False, True)
    place.trust("b")
    assert not place.is_doubtful("b")
    assert (place.has_joined("a"), place.has_joined("b")) == (False, True)


def test_a_node_is_refused_once():
    place = watched(Cluster(), 1)
    assert [place.refuse("c"), place.refuse("b"), place.refuse("c")] == [True, True, False]
    assert place.label_selector() == {"ray.io/node-id": "!in(b,c)"}


def test_a_cluster_that_does_not_answer_changes_nothing():
    cluster = Cluster(a=node(2), b=node(2))
    with watched(cluster, 2, grows=True) as place:
        until(lambda: place.lacking(2) == 2)
        cluster.nodes = None
        looked(cluster.asked)
        assert place.lacking(2) == 2
