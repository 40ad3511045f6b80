"""Drivers of a run in an object store: killed ones, two at once, their lock and their log."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import msgspec
import pytest
from stored import STORE_TESTS, commit_all, needs_server, recorded

from cogeval.errors import InputError, RunError
from cogeval.store import claims
from cogeval.store.checks import check_run
from cogeval.store.claims import Claim, Pace, claim
from cogeval.store.recover import recover
from cogeval.store.run import RunDir

pytestmark = needs_server


KILLED = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
from store_made import NAMES, add
from cogeval.store.run import RunDir
from cogeval.store.write import ShardWriter
run = RunDir(sys.argv[2])
with run.lock():
    run.append_log({"event": "void", "index": 7, "reason": "given up"})
    writer = ShardWriter(run.place, "w0-0000", agent_names=NAMES, worker="w0")
    for index in range(6):
        add(writer, index)
    writer.flush()
    sealed = writer.seal() if sys.argv[3] == "sealed" else None
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["flushed", "sealed"])
def test_after_a_killed_driver_a_resume_on_the_same_host_loses_nothing(run, when):
    killed = subprocess.run([sys.executable, "-c", KILLED, STORE_TESTS, run.uri, when], timeout=60)
    assert killed.returncode == -9
    assert run.driver() is None  # its process has ended
    with run.lock():  # at once: nothing to wait for
        commit_all(run, recover(run.place))
    assert recorded(run) == list(range(6))
    assert run.log_lines() == [{"event": "void", "index": 7, "reason": "given up"}]
    assert check_run(run) == []


def test_two_drivers_of_one_run_are_refused(run):
    with run.lock() as held:
        assert run.driver() == held.holder
        with (
            pytest.raises(InputError, match=rf"process {os.getpid()} on .* since 0 min"),
            RunDir(run.uri).lock(),
        ):
            pass
        held.check()
    assert run.driver() is None
    with run.lock():
        pass
    assert run.place.sub("lock").names("*.json") == []


TAKER = """
import sys
from cogeval.errors import InputError
from cogeval.store.run import RunDir
run = RunDir(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    held = run.acquire_lock()
except InputError:
    print("refused", flush=True)
else:
    print("took", flush=True)
    sys.stdin.readline()
    held.release()
"""


def test_of_drivers_that_start_together_one_gets_the_lock(run):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    takers = [subprocess.Popen([sys.executable, "-c", TAKER, run.uri], **pipes) for _ in range(3)]
    assert [taker.stdout.readline().strip() for taker in takers] == ["ready"] * 3
    for taker in takers:
        taker.stdin.write("go\n")
        taker.stdin.flush()
    said = sorted(taker.stdout.readline().strip() for taker in takers)
    for taker in takers:
        taker.communicate("end\n", timeout=30)
    assert said == ["refused", "refused", "took"]


QUICK = Pace(beat_s=0.2, stale_s=1.0, look_s=0.1)


def of_another_host(held):
    return msgspec.structs.replace(held, host="elsewhere", token="0" * 16)


def test_a_claim_of_another_host_that_is_silent_is_stale(run):
    place = run.place.sub("lock")
    other = of_another_host(claims.this_process())
    place.publish(f"{other.token}.json", msgspec.json.encode(Claim(other, 3)), replace=True)
    held = claim(place, run.run_id, QUICK)
    assert place.names() == [f"{held.holder.token}.json"]
    held.release()


def test_a_claim_of_another_host_that_is_heard_is_respected(run):
    place, ended = run.place.sub("lock"), threading.Event()
    other = of_another_host(claims.this_process())

    def beat():
        number = 1
        while not ended.wait(0.1):
            place.publish(f"{other.token}.json", msgspec.json.encode(Claim(other, number)), replace=True)
            number += 1

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        while not place.names():
            time.sleep(0.01)
        with pytest.raises(InputError, match=r"on elsewhere.*half a minute later"):
            claim(place, run.run_id, QUICK)
    finally:
        ended.set()
        beating.join()
    assert place.names() == [f"{other.token}.json"]


def test_a_driver_that_was_taken_over_writes_nothing_more(run):
    place = run.place.sub("lock")
    held = claim(place, run.run_id, QUICK)
    place.remove(f"{held.holder.token}.json")  # another found it stale
    held._thread.join(10)  # its next beat finds out
    with pytest.raises(RunError, match="another driver"):
        held.check()
    held.release()
    assert place.names() == []


def test_the_log_keeps_its_order_over_drivers(run):
    for driver in range(3):
        with run.lock():
            for number in range(4):
                run.append_log({"event": "dispatch", "driver": driver, "number": number})
    events = [(line["driver"], line["number"]) for line in run.log_lines()]
    assert events == [(driver, number) for driver in range(3) for number in range(4)]
    assert len(run.place.sub("log").names()) == 3


def test_what_ends_something_is_in_the_log_at_once_and_the_rest_within_a_second(run):
    with run.lock():
        run.append_log({"event": "dispatch", "number": 0})
        run.append_log({"event": "dispatch", "number": 1})
        run.append_log({"event": "paused", "usd": 1.0, "cap_usd": 1.0})
        assert len(RunDir(run.uri).log_lines()) == 3
        run.append_log({"event": "dispatch", "number": 2})
        deadline = time.monotonic() + 10
        while len(RunDir(run.uri).log_lines()) < 4:
            assert time.monotonic() < deadline


def test_a_damaged_line_of_the_log_is_left_out_and_counted(run):
    with run.lock():
        run.append_log({"event": "dispatch", "number": 0})
        run.append_log({"event": "paused", "usd": 1.0, "cap_usd": 1.0})
    log = run.place.sub("log")
    (name,) = log.names()
    log.publish(name, log.read(name).replace(b'"number":0', b'"number":1'), replace=True)
    assert run.log_lines() == [{"event": "paused", "usd": 1.0, "cap_usd": 1.0}]
    assert [finding.rule for finding in check_run(run)] == ["log"]
