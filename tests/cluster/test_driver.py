"""Runs on a real Ray: workers, deaths, stops, and one digest whatever happened."""

import os
import signal
import threading

import psutil
import pytest
import ray
from cluster_runs import column, digest, new_run

from cogeval.cluster.connection import check_address
from cogeval.cluster.driver import drive
from cogeval.cluster.plan import ClusterOptions
from cogeval.core.seat import agent_stream
from cogeval.errors import InputError, RunError
from cogeval.store.checks import check_run
from cogeval.store.read import read_tables

pytestmark = pytest.mark.cluster

TWO = ClusterOptions(workers=2)


@pytest.fixture(scope="module", autouse=True)
def own_ray():
    """One Ray for the whole module: starting it takes seconds."""
    from cogeval.cluster.connection import connected

    with connected(ClusterOptions(workers=3)):
        yield


def children_named(text):
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if text in " ".join(process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_the_digest_does_not_depend_on_the_number_of_workers(tmp_path):
    digests = set()
    for num_workers in (1, 2, 3):
        run, plan = new_run(tmp_path, schedule={"blocks": 30})
        outcome = drive(plan, run, ClusterOptions(workers=num_workers))
        assert outcome.complete
        assert outcome.progress.recorded == len(plan.schedule)
        digests.add(digest(run))
    assert len(digests) == 1


def test_what_is_recorded_is_each_scheduled_episode_once(tmp_path):
    run, plan = new_run(tmp_path, schedule={"blocks": 30})
    drive(plan, run, TWO)
    tables = read_tables(run)
    assert sorted(column(tables.episodes, "index")) == list(range(len(plan.schedule)))
    assert column(tables.episodes, "episode_id") == [
        plan.episode_id(plan.schedule[i]) for i in column(tables.episodes, "index")
    ]
    assert tables.seats.num_rows == 4 * len(plan.schedule)


def test_a_complete_run_is_left_as_it_is(tmp_path):
    run, plan = new_run(tmp_path)
    drive(plan, run, TWO)
    files = sorted(p.name for p in run.shards_path.iterdir())
    outcome = drive(plan, run, TWO)
    assert outcome.complete
    assert outcome.num_played == 0
    assert sorted(p.name for p in run.shards_path.iterdir()) == files


def test_a_killed_worker_costs_no_episode(tmp_path):
    agents = {"slow": {"_target_": "misbehaving_agents.Waits", "seconds": 0.01, "deterministic": True}}
    run, plan = new_run(tmp_path / "killed", agents, schedule={"blocks": 150})
    killed = []

    def kill_one(progress):
        if progress.done > 20 and not killed:
            victims = children_named("EpisodeActor")
            os.kill(victims[0], signal.SIGKILL)
            killed.append(victims[0])

    outcome = drive(plan, run, TWO, [kill_one])
    assert killed
    assert outcome.complete
    assert outcome.progress.num_lost_workers == 1
    assert outcome.progress.void == 0
    quiet, same_plan = new_run(tmp_path / "quiet", agents, schedule={"blocks": 150})
    drive(same_plan, quiet, TWO)
    assert digest(run) == digest(quiet)


def deadly(plan):
    """The episodes in which one agent in 25 does its worst."""
    found = {
        slot.index
        for slot in plan.schedule
        if any(agent_stream(slot.seed, seat).below(25) == 0 for seat in range(4))
    }
    assert 0 < len(found) < 6
    return found


def test_an_episode_that_kills_workers_is_void_and_the_others_are_not(tmp_path):
    agents = {
        "killer": {"_target_": "misbehaving_agents.KillsItsProcess", "one_in": 25, "deterministic": True},
    }
    run, plan = new_run(tmp_path, agents, schedule={"blocks": 20})
    outcome = drive(plan, run, ClusterOptions(workers=2, max_attempts=2))
    assert outcome.complete
    assert set(range(20)) - set(column(read_tables(run).episodes, "index")) == deadly(plan)
    assert outcome.progress.void == len(deadly(plan))
    again = drive(plan, run, TWO)  # what is void stays void
    assert again.complete
    assert again.num_played == 0


def test_a_worker_that_an_agent_blocks_is_given_up_and_the_others_are_played(tmp_path, monkeypatch):
    monkeypatch.setattr("cogeval.cluster.plan._SILENCE_S", 2.0)
    agents = {"blocker": {"_target_": "misbehaving_agents.Blocks", "one_in": 25}}
    run, plan = new_run(
        tmp_path, agents, schedule={"blocks": 20}, deadlines={"decision_s": 0.5, "retry_s": 0.5}
    )
    outcome = drive(plan, run, ClusterOptions(workers=2, max_attempts=1))
    assert outcome.complete
    assert outcome.progress.void == len(deadly(plan))
    assert set(column(read_tables(run).episodes, "index")) == set(range(20)) - deadly(plan)


def test_a_signal_stops_cleanly_and_the_rest_is_played_later(tmp_path):
    agents = {"slow": {"_target_": "misbehaving_agents.Waits", "seconds": 0.02, "deterministic": True}}
    run, plan = new_run(tmp_path, agents, schedule={"blocks": 200})

    sent = []

    def interrupt(progress):
        if progress.done > 20 and not sent:
            sent.append(progress.done)
            os.kill(os.getpid(), signal.SIGINT)

    first = drive(plan, run, TWO, [interrupt])
    assert first.interrupted
    assert not first.complete
    recorded = set(column(read_tables(run).episodes, "index"))
    assert 20 < len(recorded) < 200
    second = drive(plan, run, TWO)
    assert second.complete
    assert second.num_played == 200 - len(recorded)


def test_a_full_disk_stops_the_run_with_what_is_committed_intact(tmp_path):
    mark = tmp_path / "full"
    agents = {"greedy": {"_target_": "misbehaving_agents.FillsTheDisk", "mark": str(mark)}}
    run, plan = new_run(tmp_path, agents, schedule={"blocks": 1000}, store={"shard_mb": 0.05})

    def fill(progress):
        if progress.recorded and not mark.exists():
            mark.touch()

    with pytest.raises(RunError, match="no room"):
        drive(plan, run, TWO, [fill])
    kept = set(column(read_tables(run).episodes, "index"))
    assert kept
    assert check_run(run) == []
    mark.unlink()
    outcome = drive(plan, run, TWO)
    assert outcome.complete
    assert outcome.progress.recorded == 1000
    assert check_run(run) == []


def test_two_drivers_on_one_run_are_refused(tmp_path):
    run, plan = new_run(tmp_path)
    with run.lock(), pytest.raises(InputError, match=str(os.getpid())):
        drive(plan, run, TWO)


def test_more_workers_than_cpus_of_the_cluster_is_said_at_once(tmp_path):
    run, plan = new_run(tmp_path)
    with pytest.raises(InputError, match=r"cluster\.workers"):
        drive(plan, run, ClusterOptions(workers=64))


def test_workers_that_cannot_start_end_the_run(tmp_path):
    run, plan = new_run(tmp_path, {"gone": {"_target_": "misbehaving_agents.Passes"}})
    import msgspec

    nowhere = msgspec.structs.replace(plan, schedule=_Unpicklable())
    with pytest.raises(RunError, match="workers die as they start"):
        drive(nowhere, run, TWO)


class _Unpicklable(list):
    """A schedule that breaks where it is read."""

    def __init__(self):
        super().__init__([0])

    def __reduce__(self):
        return (_explode, ())


def _explode():
    raise RuntimeError("cannot be read here")


def test_a_driver_outside_the_main_thread_works(tmp_path):
    run, plan = new_run(tmp_path)
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(drive(plan, run, TWO)))
    thread.start()
    thread.join(60)
    assert outcomes[0].complete
    assert ray.is_initialized()  # the connection that was there before is still there


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "ray://127.0.0.1:1", "127.0.0.1:x", ":70000"])
def test_an_address_where_no_cluster_answers_is_said_in_seconds(address):
    with pytest.raises(InputError, match=r"cluster\.address"):
        check_address(address)


def test_what_ray_says_of_dead_workers_stays_off_stdout(tmp_path, capfd):
    agents = {"once": {"_target_": "misbehaving_agents.KillsItsProcessOnce", "mark": str(tmp_path / "m")}}
    run, plan = new_run(tmp_path, agents, schedule={"blocks": 4})
    outcome = drive(plan, run, TWO)
    assert outcome.complete
    assert outcome.progress.num_lost_workers == 1
    assert capfd.readouterr().out == ""
