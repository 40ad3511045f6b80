"""What a driver's log says of the driver itself, without any cluster."""

import json
import os
import socket
from types import SimpleNamespace

import msgspec
import pytest
from ray.exceptions import ActorDiedError

from cogeval import __version__
from cogeval.cluster import chronicle as chronicle_module
from cogeval.cluster import ray_meters
from cogeval.cluster.chronicle import Chronicle
from cogeval.cluster.driver import _Driver
from cogeval.cluster.logs import RunLog
from cogeval.cluster.meters import NoSink
from cogeval.cluster.progress import Outcome, Progress
from cogeval.cluster.ray_meters import RaySink
from cogeval.cluster.seat_pool import Loss
from cogeval.cluster.tally import Tally
from cogeval.errors import InputError, RunError
from cogeval.store.places import LocalPlace

PROGRESS = Progress("run-1", 12, 4, 0, 1, 0.0, 0, ("a",), Tally.empty(1))
OUTCOME = Outcome(False, False, PROGRESS, 0.0, 0, 0.0, 0)


@pytest.fixture
def chronicle(tmp_path):
    return Chronicle(LocalPlace(tmp_path / "run-1"), NoSink())


def lines(tmp_path):
    text = (tmp_path / "run-1/logs/driver.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def ended(tmp_path):
    last = lines(tmp_path)[-1]
    assert last["event"] == "driver_ended"
    assert last["recorded"] == 4
    assert last["seconds"] >= 0
    return last


def test_a_driver_says_where_it_starts_and_how_much_is_missing(tmp_path, chronicle):
    chronicle.started(PROGRESS, 2)
    chronicle.close()
    (line,) = lines(tmp_path)
    assert (line["event"], line["run"], line["by"]) == ("driver_started", "run-1", "driver")
    assert (line["host"], line["pid"]) == (socket.gethostname(), os.getpid())
    assert (line["cogeval"], line["missing"], line["workers"]) == (__version__, 7, 2)


@pytest.mark.parametrize("how", ["complete", "interrupted", "paused"])
def test_a_driver_says_how_it_ended(tmp_path, chronicle, how):
    with chronicle.until_the_end(lambda: msgspec.structs.replace(OUTCOME, **{how: True})):
        chronicle.started(PROGRESS, 1)
    assert ended(tmp_path)["how"] == how
    assert "reason" not in ended(tmp_path)


@pytest.mark.parametrize(
    ("failure", "how", "reason"),
    [
        (RunError("the head\nis lost"), "failed", "the head is lost"),
        (KeyError("x"), "failed", "KeyError: 'x'"),
        (KeyboardInterrupt(), "interrupted", None),
    ],
)
def test_what_ends_a_driver_is_in_its_last_line_and_goes_on_to_the_caller(
    tmp_path, chronicle, failure, how, reason
):
    with pytest.raises(type(failure)), chronicle.until_the_end(lambda: OUTCOME):
        raise failure
    assert (ended(tmp_path)["how"], ended(tmp_path).get("reason")) == (how, reason)


def test_a_driver_that_stops_for_no_reason_of_these_has_failed(tmp_path, chronicle):
    with chronicle.until_the_end(lambda: OUTCOME):
        pass
    assert ended(tmp_path)["how"] == "failed"
    assert ended(tmp_path)["reason"]


def test_a_driver_that_found_nowhere_to_play_has_started_and_failed(tmp_path, chronicle):
    with pytest.raises(RunError), chronicle.until_the_end(lambda: OUTCOME):
        raise RunError("Ray did not start")
    start, end = lines(tmp_path)
    assert (start["event"], start["missing"], start["workers"]) == ("driver_started", 7, 0)
    assert (end["how"], end["reason"]) == ("failed", "Ray did not start")


def test_wrong_input_that_keeps_a_driver_from_starting_leaves_no_line(tmp_path, chronicle):
    with pytest.raises(InputError), chronicle.until_the_end(lambda: OUTCOME):
        raise InputError("cluster.workers: expected fewer")
    assert not (tmp_path / "run-1").exists()


def test_wrong_input_that_is_found_while_it_plays_is_the_reason_of_its_end(tmp_path, chronicle):
    chronicle.started(PROGRESS, 1)
    with pytest.raises(InputError), chronicle.until_the_end(lambda: OUTCOME):
        raise InputError("no such agent")
    assert ended(tmp_path)["reason"] == "no such agent"


class Remote(SimpleNamespace):
    """A run in an object store, as far as its log goes."""

    name, path = "run-1", None


@pytest.mark.parametrize("umask", [0o022, 0o002, 0])
def test_the_log_of_a_run_in_an_object_store_lies_in_a_directory_of_ours_alone(tmp_path, monkeypatch, umask):
    spool = tmp_path / "spools" / "run-1"
    monkeypatch.setattr(chronicle_module, "spool_of", lambda _: spool)
    monkeypatch.setattr(chronicle_module, "place_at", lambda run: run)
    before = os.umask(umask)
    try:
        with Chronicle(Remote(), NoSink()).until_the_end(lambda: OUTCOME):
            pass
    finally:
        os.umask(before)
    assert spool.stat().st_mode & 0o777 == 0o700
    assert len((spool / "logs/driver.jsonl").read_text().splitlines()) == 2


def test_a_log_is_not_written_where_its_directory_is_not_ours_alone(tmp_path, monkeypatch):
    spool = tmp_path / "spool"
    spool.symlink_to(tmp_path / "of_another")
    (tmp_path / "of_another").mkdir()
    monkeypatch.setattr(chronicle_module, "spool_of", lambda _: spool)
    monkeypatch.setattr(chronicle_module, "place_at", lambda run: run)
    with Chronicle(Remote(), NoSink()).until_the_end(lambda: OUTCOME):
        pass
    assert list((tmp_path / "of_another").iterdir()) == []


def test_the_end_is_written_into_a_full_log_too(tmp_path):
    path = tmp_path / "driver.jsonl"
    log = RunLog(path, "run-1", "driver")
    for number in range(10_100):
        log.event("void", episode=number)
    log.end("driver_ended", how="complete")
    written = path.read_text().splitlines()
    assert len(written) == 10_001
    assert [json.loads(line)["event"] for line in written[-2:]] == ["log_full", "driver_ended"]
    RunLog(None, "run-1", "driver").end("driver_ended")


def test_a_lost_seat_actor_is_a_line_and_counts_for_its_agent(tmp_path):
    counted = []
    sink = SimpleNamespace(add=lambda *what: counted.append(what))
    chronicle = Chronicle(LocalPlace(tmp_path / "run-1"), sink)
    chronicle.lost_seat_actor(Loss("big", "big-3", "node lost", "its node has died"))
    chronicle.close()
    (line,) = lines(tmp_path)
    assert (line["event"], line["agent"], line["replica"]) == ("seat_actor_lost", "big", "big-3")
    assert (line["why"], line["detail"]) == ("node lost", "its node has died")
    assert counted == [("cogeval_lost_seat_actors", 1, {"agent": "big"})]


def test_a_metric_that_cannot_be_told_hurts_nobody(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("Ray is gone")

    monkeypatch.setattr(
        ray_meters, "metrics", SimpleNamespace(Counter=broken, Gauge=broken, Histogram=broken)
    )
    sink = RaySink("run-1", "cogz")
    sink.add("cogeval_void", 1, {})
    sink.set("cogeval_recorded", 1, {})
    sink.observe("cogeval_think_s", [1.0], {"agent": "a"})


def test_what_cannot_be_closed_with_a_lost_cluster_does_not_hide_what_ended_the_run():
    closed = []

    class Gone:
        def close(self):
            closed.append(self)
            raise ActorDiedError

    line = SimpleNamespace(is_local_lost=False)
    driver = SimpleNamespace(line=line, seats=Gone(), purse=Gone(), note_losses=list)
    _Driver.close(driver)
    assert closed == [driver.seats, driver.purse]
