"""Runs in a real S3 server over loopback: the commit protocol, recovery, and what lies where."""

from __future__ import annotations

import json
import pickle

import pytest
from store_made import add
from stored import commit_all, filled, needs_server, recorded

from cogeval.errors import InputError, RunError
from cogeval.store.checks import check_run
from cogeval.store.compact import compact
from cogeval.store.places import place_at
from cogeval.store.read import read_tables
from cogeval.store.recover import hot_shards, open_indexes, recover
from cogeval.store.roots import call
from cogeval.store.run import RunDir
from cogeval.store.shards import file_name, hot_name
from cogeval.store.spend import SpendFile, filed_usd
from cogeval.store.spool import spool_of

pytestmark = needs_server


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
