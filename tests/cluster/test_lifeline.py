"""A cluster's head and the Ray of this machine, looked at through sockets alone."""

import contextlib
import socket
import time

import pytest

from cogeval.cluster.lifeline import Lifeline
from cogeval.cluster.workers import Patience


def listening(family, address):
    server = socket.socket(family)
    server.bind(address)
    server.listen(100)
    return contextlib.closing(server)


def wait_until(is_so):
    deadline = time.monotonic() + 20
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_so()


@pytest.fixture
def head():
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as server:
        yield server


def address_of(server):
    host, port = server.getsockname()
    return f"{host}:{port}"


def test_while_both_answer_nothing_is_lost(head, tmp_path):
    path = str(tmp_path / "raylet")
    with listening(socket.AF_UNIX, path), Lifeline(address_of(head), path, patience_s=0.1) as line:
        assert line.look()
        assert (line.is_cut, line.trouble) == (False, None)


def test_a_head_that_goes_is_named_after_a_while(head):
    with Lifeline(address_of(head), None, patience_s=0.5) as line:
        address = address_of(head)
        head.close()
        assert not line.look()
        assert not line.is_cut  # it may be back in a moment
        wait_until(lambda: line.is_head_lost)
        assert f"the head of the Ray cluster at {address} does not answer" in line.trouble


def test_when_the_ray_of_this_machine_goes_it_is_known_at_once(head, tmp_path):
    path = str(tmp_path / "raylet")
    with Lifeline(address_of(head), path) as line:  # never there: as if it had just gone
        began = time.monotonic()
        wait_until(lambda: line.is_local_lost)
        assert time.monotonic() - began < 5
        assert "Ray on this machine has ended" in line.trouble


class Busy:
    def __init__(self, *, ready):
        self.ready = ready


def test_a_run_without_any_worker_does_not_wait_for_ever(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    patience = Patience()
    now[0] = 299.0
    assert patience.trouble([Busy(ready=False)]) is None
    assert patience.trouble([Busy(ready=True)]) is None
    now[0] = 598.0
    assert patience.trouble([Busy(ready=False)]) is None
    now[0] = 600.0
    assert "each needs one CPU of the Ray cluster" in patience.trouble([Busy(ready=False)])
