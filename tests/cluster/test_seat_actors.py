"""Seat actors on a real Ray: a seat decides the same there, and what goes wrong in one costs one seat."""

import contextlib
import os
import signal
import time

import psutil
import pytest
from cluster_runs import column, digest, new_run
from faulty.seat_agents import worst_seeds

from cogeval.cluster.driver import drive
from cogeval.cluster.plan import ClusterOptions
from cogeval.errors import InputError, RunError
from cogeval.store.read import read_tables

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("own_ray")]

ONE = ClusterOptions(workers=1)
SHORT = {"decision_s": 1.0, "retry_s": 1.0}


def pool(name, *, placement="actor", replicas=2, deterministic=True, **parameters):
    """A pool of one agent; its actors take no CPUs of the small cluster."""
    agent = {
        "_target_": f"seat_agents.{name}",
        "placement": placement,
        "deterministic": deterministic,
        **parameters,
    }
    if placement == "actor":
        agent["actor"] = {"replicas": replicas, "cpus": 0}
    return {"one": agent}


def seat_actors():
    """Processes that serve seats, or are about to."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "SeatActor" in " ".join(process.cmdline()):
                found.append(process)
    return found


def quiet_digest(root, agents, **changes):
    run, plan = new_run(root, agents, **changes)
    assert drive(plan, run, ONE).complete
    return digest(run)


def faults(run):
    return [fault for fault in column(read_tables(run).decisions, "fault") if fault is not None]


def worst_run(root, name, *, one_in, worst, blocks):
    """A run of an agent that does its worst now and then: the run, its outcome, and the seeds of that."""
    log = root / "log"
    log.mkdir()
    agents = pool(name, deterministic=False, log=str(log), one_in=one_in, worst=worst)
    run, plan = new_run(root, agents, schedule={"blocks": blocks}, deadlines=SHORT)
    outcome = drive(plan, run, ONE)
    assert outcome.complete
    return run, outcome, worst_seeds(log)


def test_an_agent_decides_the_same_in_seat_actors_and_beside_its_episodes(tmp_path):
    run, plan = new_run(tmp_path / "actor", pool("Counts"), schedule={"blocks": 20})
    outcome = drive(plan, run, ONE)
    assert outcome.complete
    assert faults(run) == []
    inline = pool("Counts", placement="inline")
    assert digest(run) == quiet_digest(tmp_path / "inline", inline, schedule={"blocks": 20})
    _, left = psutil.wait_procs(seat_actors(), timeout=10)
    assert left == []  # nothing of the run is left behind


def test_a_seat_actor_killed_in_mid_run_costs_nothing(tmp_path):
    slow = {"seconds": 0.05, "deterministic": False}
    run, plan = new_run(tmp_path / "killed", pool("Draws", **slow), schedule={"blocks": 60})
    killed = []

    def kill_one(progress):
        if progress.done > 10 and not killed:
            killed.append(seat_actors()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    outcome = drive(plan, run, ONE, [kill_one])
    assert killed
    assert outcome.complete
    assert outcome.progress.num_lost_workers == 0
    assert faults(run) == []
    inline = pool("Draws", placement="inline", deterministic=False)
    assert digest(run) == quiet_digest(tmp_path / "quiet", inline, schedule={"blocks": 60})


@pytest.mark.parametrize("worst", ["sleep", "loop", "regex", "ctypes"])
def test_a_hang_costs_its_own_seat_only_and_within_its_deadline(tmp_path, worst):
    run, _, hung = worst_run(tmp_path, "SometimesWorst", one_in=100, worst=worst, blocks=8)
    decisions = read_tables(run).decisions
    assert faults(run) == ["timeout"] * len(set(hung))
    # What hangs beside a living event loop is known at once, and not asked again. What keeps a whole process
    # is asked again beside others, and then alone; a busy loop does so on a machine that is busy itself.
    most = 1 if worst == "sleep" else 4
    assert 0 < len(hung) <= most * len(set(hung))
    assert max(map(hung.count, hung)) <= most
    late = [s for s, f in zip(column(decisions, "think_s"), column(decisions, "fault"), strict=True) if f]
    assert all(1.0 <= think_s < 2.0 for think_s in late)


@pytest.mark.parametrize("worst", ["sleep", "loop"])
def test_a_coroutine_that_keeps_the_event_loop_is_known_at_once(tmp_path, worst):
    run, _, hung = worst_run(tmp_path, "SometimesBlocks", one_in=100, worst=worst, blocks=8)
    assert faults(run) == ["timeout"] * len(set(hung))
    assert 0 < len(hung) <= len(set(hung)) + 1  # on a machine that is busy itself, one may be asked again


def test_a_decision_that_ends_its_process_is_blamed_after_two_and_the_others_lose_nothing(tmp_path):
    run, outcome, deaths = worst_run(tmp_path, "SometimesWorst", one_in=150, worst="exit", blocks=10)
    assert outcome.progress.num_lost_workers == outcome.progress.void == 0
    assert 0 < len(faults(run)) == len(set(deaths))
    assert all(deaths.count(seed) >= 2 for seed in deaths)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"cpus": 512}, "512 CPUs"),
        ({"gpus": 1}, "1 GPUs"),
        ({"memory_mb": 10_000_000}, "10,000,000 MB"),
        ({"replicas": 3}, "room for 2 of one"),
        ({"replicas": 1, "spares": 0}, "room for 1 workers"),
    ],
)
def test_what_the_cluster_cannot_hold_is_refused_at_once_with_what_it_has(tmp_path, asked, says):
    agents = pool("Draws")
    agents["one"]["actor"] = asked
    run, plan = new_run(tmp_path, agents)
    started = time.monotonic()
    with pytest.raises(InputError, match="2 CPUs, 0 GPUs") as refused:
        drive(plan, run, ClusterOptions(workers=2))
    assert says in str(refused.value)
    assert time.monotonic() - started < 5
    assert list(run.shards_path.iterdir()) == []


def test_an_agent_that_takes_long_to_make_is_waited_for_and_not_charged(tmp_path):
    agents = pool("TakesLongToMake", seconds=4.0, replicas=1, deterministic=False)
    deadlines = {"decision_s": 1.0, "retry_s": 1.0, "episode_timeout_s": 3.0}
    run, plan = new_run(tmp_path, agents, deadlines=deadlines, schedule={"blocks": 2})
    assert drive(plan, run, ONE).complete
    assert faults(run) == []


def test_an_agent_that_is_never_made_ends_the_run_with_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr("cogeval.cluster.seat_pool_actor._MADE_S", 2.0)
    agents = pool("TakesLongToMake", seconds=60.0, replicas=1, deterministic=False)
    run, plan = new_run(tmp_path, agents, schedule={"blocks": 2})
    with pytest.raises(RunError, match=r"made its agent in 2 s: one"):
        drive(plan, run, ONE)
