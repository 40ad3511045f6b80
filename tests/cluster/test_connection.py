"""Starting a Ray of our own, without starting one."""

import pytest

from cogeval.cluster import connection
from cogeval.cluster.plan import ClusterOptions
from cogeval.cluster.seat_fit import Node
from cogeval.errors import RunError


@pytest.fixture
def starts(monkeypatch):
    """What each start of Ray does, in order: an error or nothing; and the directories that it was given."""
    outcomes, homes = [], []

    def start(home, cpus):
        homes.append(home)
        if (error := outcomes.pop(0)) is not None:
            raise error

    monkeypatch.setattr(connection, "_start", start)
    monkeypatch.setattr(connection, "_leave", lambda: None)
    monkeypatch.setattr(connection, "_nodes", lambda: [Node("n", 4.0, 0.0, 1e4)])
    monkeypatch.setattr(connection.ray, "shutdown", lambda: None)
    monkeypatch.setattr(connection.ray, "is_initialized", lambda: False)
    return outcomes, homes


def test_a_start_that_takes_too_long_on_a_busy_machine_is_tried_again(starts) -> None:
    outcomes, homes = starts
    outcomes += [Exception("The current node timed out during startup."), None]
    with connection.connected(ClusterOptions(workers=1)) as num_workers:
        assert num_workers == 1
    assert len(set(homes)) == 2


def test_a_ray_that_never_starts_says_why(starts) -> None:
    outcomes, _ = starts
    outcomes += [Exception("the first"), Exception("no room for a socket")]
    with pytest.raises(RunError, match="did not start on this machine: no room"):
        connection.connected(ClusterOptions(workers=1)).__enter__()
    assert not outcomes


def test_an_interrupted_start_is_not_tried_again(starts) -> None:
    outcomes, homes = starts
    outcomes += [SystemExit(1), None]
    with pytest.raises(KeyboardInterrupt):
        connection.connected(ClusterOptions(workers=1)).__enter__()
    assert len(homes) == 1
