"""`compact` on a real S3 server: killed between any two of its steps, and with a network that fails."""

from __future__ import annotations

import subprocess
import sys

import pytest
from store_made import add
from stored import STORE_TESTS, needs_server, recorded, writer

from cogeval.core.ranges import from_ranges
from cogeval.store.checks import check_run
from cogeval.store.compact import compact
from cogeval.store.recover import hot_shards, recover
from cogeval.store.run import RunDir
from cogeval.store.shards import TABLES, file_name, is_merged_id, record_name
from cogeval.store.spend import spend_of
from cogeval.store.totals import complete_entry, computed_digest, logged_digest, spend_facts, totals_of

pytestmark = needs_server

NUM_EPISODES = 12
NUM_COPIES = 2


def fill(run):
    """Three shards, two episodes of the last one second copies, and the digest in the log."""
    with run.lock():
        for number, indexes in enumerate((range(5), range(5, 8), range(6, 12))):
            made = writer(run, f"w{number}-0000")
            for index in indexes:
                add(made, index, usage=True)
            sealed = made.seal()
            copies = {6, 7} if number == 2 else set()
            run.commit(sealed, set(indexes) - copies, copies)
        run.append_log(complete_entry(digest(run), run.records()))


def digest(run):
    return computed_digest(run, [record.shard_id for record in run.records()], verify=True)


def ids(run):
    return {name.split(".")[0] for name in run.shards.names()}


def check_merged(run, before, spent_usd):
    """Everything is there once, in one merged shard; nothing of its sources is."""
    (record,) = run.records()
    assert is_merged_id(record.shard_id)
    assert run.shards.names() == sorted(
        [record_name(record.shard_id), *(file_name(record.shard_id, table) for table in TABLES)]
    )
    assert from_ranges(record.accepted).tolist() == recorded(run) == list(range(NUM_EPISODES))
    assert check_run(run) == []
    assert digest(run) == before
    assert spend_facts(totals_of(run).superseded)["num_episodes"] == NUM_COPIES
    assert spend_of(run).spent_usd == pytest.approx(spent_usd)
    assert (hot_shards(run.place), recover(run.place), compact(run).num_made) == ([], [], 0)


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from cogeval.store.compact import compact
from cogeval.store.objects import ObjectPlace
from cogeval.store.run import RunDir
run, method, part, left = RunDir(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
done = getattr(ObjectPlace, method)
def dying(self, name, *args, **kwargs):
    global left
    done(self, name, *args, **kwargs)
    left -= part in name
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
setattr(ObjectPlace, method, dying)
compact(run)
"""


@pytest.mark.parametrize(
    ("method", "part", "number", "num_ids", "is_resumed"),
    [
        pytest.param("publish", ".arrow", 3, 4, False, id="between the merged files and the record"),
        pytest.param("publish", ".arrow", 1, 4, True, id="amid the merged files, then resumed"),
        pytest.param("publish", "compact-", 4, 4, False, id="between the record and the end of the sources"),
        pytest.param("remove", ".arrow", 2, 4, True, id="amid the end of the sources, then resumed"),
        pytest.param("remove", ".json", 2, 2, False, id="before the end of the last source's record"),
    ],
)
def test_a_killed_compact_is_ended_by_the_next_and_nothing_is_lost_or_doubled(
    run, method, part, number, num_ids, is_resumed
):
    fill(run)
    before, spent_usd = digest(run), spend_of(run).spent_usd
    command = [sys.executable, "-c", KILLED, STORE_TESTS, run.uri, method, part, str(number)]
    killed = subprocess.run(command, timeout=60, capture_output=True)
    assert killed.returncode == -9, killed.stderr
    assert len(ids(run)) == num_ids
    again = RunDir(run.uri)
    assert recorded(again) == list(range(NUM_EPISODES))  # before anybody has tidied
    assert digest(again) == before
    assert check_run(again) == []
    assert spend_of(again).spent_usd == pytest.approx(spent_usd)
    if is_resumed:
        assert recover(again.place) == []
        assert recorded(again) == list(range(NUM_EPISODES))
    compact(again)
    check_merged(again, before, spent_usd)


@pytest.mark.parametrize(
    ("fault", "times", "methods", "path"),
    [
        ("503", 4, "PUT HEAD DELETE", ""),
        ("drop", 1, "PUT", "decisions.arrow"),
        ("drop", 1, "GET", "episodes.arrow"),
        ("lose", 1, "DELETE", "w1-0000"),
    ],
)
def test_a_network_that_fails_costs_compact_further_tries_and_nothing_else(
    proxy, port, run, fault, times, methods, path
):
    fill(run)
    before, spent_usd = digest(run), spend_of(run).spent_usd
    proxy.fail(fault, times, methods=methods, path=path)
    done = compact(RunDir(run.uri.replace(str(port), str(proxy.port))))
    assert (done.num_merged, done.num_made, done.damaged) == (3, 1, ())
    assert [fault for _, _, fault in proxy.seen] == [fault] * times
    assert logged_digest(run.log_lines(), run.records()) == before
    check_merged(run, before, spent_usd)
