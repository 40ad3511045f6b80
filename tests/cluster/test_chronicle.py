"""What a driver's log says of the driver itself, without any cluster."""

import json
import os
import socket
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.exceptions import ActorDiedError

from cogeval import __version__
from cogeval.cluster import chronicle as chronicle_module
from cogeval.cluster import ray_meters
from cogeval.cluster.chronicle import Chronicle
from cogeval.cluster.driver import _Driver
from cogeval.cluster.logs import RunLog, brief
from cogeval.cluster.meters import NoSink
from cogeval.cluster.progress import Outcome, Progress
from cogeval.cluster.ray_meters import RaySink
from cogeval.cluster.seat_pool import Loss
from cogeval.cluster.tally import Tally
from cogeval.errors import InputError, RunError
from cogeval.store.places import LocalPlace

PROGRESS = Progress("run-1", 12, 4, 2, 1, 0.0, 0, ("a",), Tally.empty(1))
OUTCOME = Outcome(False, False, PROGRESS, 0.0, 0, 0.0, 0)


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run-1").mkdir()
    return LocalPlace(tmp_path / "run-1")


@pytest.fixture
def chronicle(run):
    return Chronicle(run, NoSink())


def lines(tmp_path):
    text = (tmp_path / "run-1/logs/driver.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def ended(tmp_path):
    last = lines(tmp_path)[-1]
    assert last["event"] == "driver_ended"
    assert (last["recorded"], last["finished"]) == (4, 2)
    assert last["seconds"] >= 0
    return last


def test_a_driver_says_where_it_starts_and_how_much_is_missing(tmp_path, chronicle):
    chronicle.started(PROGRESS, 2)
    chronicle.close()
    (line,) = lines(tmp_path)
    assert (line["event"], line["run"], line["by"]) == ("driver_started", "run-1", "driver")
    assert (line["host"], line["pid"]) == (socket.gethostname(), os.getpid())
    assert (line["cogeval"], line["missing"], line["workers"]) == (__version__, 5, 2)


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
        (SystemExit(15), "interrupted", None),  # what Ray makes of SIGTERM
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
    assert (start["event"], start["missing"], start["workers"]) == ("driver_started", 5, 0)
    assert (end["how"], end["reason"]) == ("failed", "Ray did not start")


def test_wrong_input_that_keeps_a_driver_from_starting_leaves_no_line(tmp_path, chronicle):
    with pytest.raises(InputError), chronicle.until_the_end(lambda: OUTCOME):
        raise InputError("cluster.workers: expected fewer")
    assert not (tmp_path / "run-1/logs").exists()


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


def test_a_lost_seat_actor_is_a_line_and_counts_for_its_agent(tmp_path, run):
    counted = []
    sink = SimpleNamespace(add=lambda *what: counted.append(what))
    chronicle = Chronicle(run, sink)
    chronicle.lost_seat_actor(Loss("big", "big-3", "node lost", "its node has died"))
    chronicle.close()
    (line,) = lines(tmp_path)
    assert (line["event"], line["agent"], line["replica"]) == ("seat_actor_lost", "big", "big-3")
    assert (line["why"], line["detail"]) == ("node lost", "its node has died")
    assert counted == [("cogeval_lost_seat_actors", 1, {"agent": "big"})]


def test_of_a_seat_actor_that_hung_there_is_no_detail(tmp_path, chronicle):
    chronicle.lost_seat_actor(Loss("big", "big-3", "hung"))
    chronicle.close()
    (line,) = lines(tmp_path)
    assert line["why"] == "hung"
    assert "detail" not in line


RAY_SAYS = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit "
    "detail: Worker unexpectedly exits with a connection error code 2. End of file. There are some potential "
    "root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop "
    "--force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors."
)


def test_what_ray_says_of_a_loss_is_cut_behind_a_sentence(tmp_path, chronicle):
    chronicle.lost("w0", 3, RAY_SAYS)
    chronicle.lost_seat_actor(Loss("big", "big-3", "died", RAY_SAYS))
    chronicle.close()
    lost, lost_actor = lines(tmp_path)
    assert lost["reason"] == lost_actor["detail"]
    assert lost["reason"].endswith("connection error code 2. End of file. ...")
    assert len(lost["reason"]) <= 200


@given(st.text(alphabet="ab. \n", max_size=300), st.integers(20, 250))
def test_a_brief_text_is_a_beginning_in_one_line_of_whole_words_where_it_has_any(text, most):
    line = " ".join(text.split())
    said = brief(text, most)
    assert len(said) <= most
    assert "\n" not in said
    if len(line) <= most:
        assert said == line
        return
    kept = said.removesuffix(" ...")
    assert kept != said
    assert line.startswith(kept)
    assert line[len(kept)] == " " or " " not in line[most // 4 + 1 : most - 3]


def fifo(path):
    os.mkfifo(path)


def link(path):
    path.symlink_to(path.parent.parent.parent / "elsewhere")


def socket_file(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [fifo, link, socket_file, os.mkdir])
def test_what_is_no_regular_file_is_neither_waited_for_nor_followed(
    tmp_path, monkeypatch, run, chronicle, make
):
    (run.path / "logs").mkdir()
    monkeypatch.chdir(run.path / "logs")  # paths of sockets must be short
    make(Path("driver.jsonl") if make is socket_file else run.path / "logs/driver.jsonl")
    with chronicle.until_the_end(lambda: OUTCOME):
        chronicle.started(PROGRESS, 1)
        chronicle.lost("w0", 3, "gone")
    assert not (tmp_path / "elsewhere").exists()
    assert sorted(p.name for p in run.path.rglob("*")) == ["driver.jsonl", "logs"]


@pytest.mark.timeout(20)
def test_a_pipe_that_somebody_reads_is_no_log_either(run, chronicle):
    (run.path / "logs").mkdir()
    os.mkfifo(run.path / "logs/driver.jsonl")
    reader = os.open(run.path / "logs/driver.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with chronicle.until_the_end(lambda: OUTCOME):
            pass
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)


def test_a_folder_of_logs_that_is_a_link_is_not_followed(tmp_path, run, chronicle):
    (tmp_path / "elsewhere").mkdir()
    (run.path / "logs").symlink_to(tmp_path / "elsewhere")
    with chronicle.until_the_end(lambda: OUTCOME):
        pass
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_log_goes_on_behind_what_is_there(tmp_path, run):
    for _ in range(2):
        with Chronicle(run, NoSink()).until_the_end(lambda: OUTCOME):
            pass
    assert [line["event"] for line in lines(tmp_path)] == ["driver_started", "driver_ended"] * 2


def test_a_run_that_was_removed_is_not_made_anew_by_its_log(run, chronicle):
    run.path.rmdir()
    with chronicle.until_the_end(lambda: OUTCOME):
        pass
    assert not run.path.exists()


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
