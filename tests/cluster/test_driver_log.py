"""What the log of a driver says of a real run: its start, its end, and the seat actors that it lost."""

import contextlib
import json
import os
import signal

import psutil
import pytest
import ray
from cluster_runs import column, new_run
from faulty.seat_agents import worst_seeds

from cogeval.cluster.driver import drive
from cogeval.cluster.plan import ClusterOptions
from cogeval.cluster.seat_pool_actor import NAMESPACE, RunSeats
from cogeval.errors import RunError
from cogeval.store.read import read_tables

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("own_ray")]

ONE = ClusterOptions(workers=1)
SHORT = {"decision_s": 1.0, "retry_s": 1.0}


def acted(name, **parameters):
    """A pool of one agent in two seat actors and a spare."""
    actor = {"replicas": 2, "cpus": 0}
    target = f"seat_agents.{name}"
    return {
        "one": {"_target_": target, "placement": "actor", "actor": actor, "deterministic": False} | parameters
    }


def lines(run, *events):
    written = (run.path / "logs/driver.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, written) if line["event"] in events]


def story(run):
    return [(line["event"], line.get("how")) for line in lines(run, "driver_started", "driver_ended")]


def test_each_driver_of_a_run_writes_its_start_and_its_end(tmp_path):
    run, plan = new_run(tmp_path, schedule={"blocks": 400})

    def stop(progress):
        if progress.done and not progress.stopping:
            os.kill(os.getpid(), signal.SIGTERM)

    def no_room(progress):
        raise RunError("no room")

    assert drive(plan, run, ONE, [stop]).interrupted
    with pytest.raises(RunError, match="no room"):
        drive(plan, run, ONE, [no_room])
    assert drive(plan, run, ONE).complete
    assert drive(plan, run, ONE).complete  # finds nothing to play
    begun = ("driver_started", None)
    hows = ["interrupted", "failed", "complete", "complete"]
    assert story(run) == [pair for how in hows for pair in (begun, ("driver_ended", how))]
    starts, ends = lines(run, "driver_started"), lines(run, "driver_ended")
    total = len(plan.schedule)
    assert [start["workers"] for start in starts] == [1, 1, 1, 0]
    assert starts[0]["missing"] == total
    assert 0 < starts[1]["missing"] == total - ends[0]["recorded"] < total
    assert ends[1]["reason"] == "no room"
    assert ends[2]["recorded"] == total
    assert starts[3]["missing"] == 0
    ready = lines(run, "worker_started")
    assert len({worker["started"] for worker in ready}) == len(ready)
    assert 2 <= len(ready) <= 3  # the second driver may end before its worker is ready


def test_a_seat_actor_that_is_killed_is_told_of_once(tmp_path):
    run, plan = new_run(tmp_path, acted("Draws", seconds=0.05), schedule={"blocks": 60})
    killed, seen = [], []

    def kill_one(progress):
        seen.append(progress.num_lost_seat_actors)
        if progress.done > 10 and not killed:
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if not killed and "SeatActor" in " ".join(process.cmdline()):
                        killed.append(process.pid)
                        process.kill()

    outcome = drive(plan, run, ONE, [kill_one])
    assert killed
    assert outcome.complete
    (line,) = lines(run, "seat_actor_lost")
    assert (line["agent"], line["why"]) == ("one", "died")
    assert line["replica"].startswith("one-")
    assert outcome.progress.num_lost_seat_actors == 1
    assert (seen[0], seen[-1]) == (0, 1)
    assert outcome.progress.num_lost_workers == 0


def test_a_seat_actor_that_is_ended_for_a_decision_past_its_time_is_told_to_have_hung(tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    hangs = acted("SometimesWorst", log=str(log), one_in=100, worst="sleep")
    run, plan = new_run(tmp_path, hangs, schedule={"blocks": 8}, deadlines=SHORT)
    outcome = drive(plan, run, ONE)
    assert outcome.complete
    assert worst_seeds(log)
    lost = lines(run, "seat_actor_lost")
    assert {(line["agent"], line["why"]) for line in lost} == {("one", "hung")}
    assert len({line["replica"] for line in lost}) == len(lost) == outcome.progress.num_lost_seat_actors
    assert "timeout" in column(read_tables(run).decisions, "fault")


def test_a_run_without_losses_tells_of_none(tmp_path):
    run, plan = new_run(tmp_path, acted("Draws"), schedule={"blocks": 4})
    assert drive(plan, run, ONE).progress.num_lost_seat_actors == 0
    assert lines(run, "seat_actor_lost") == []


def test_losses_of_a_dead_pool_are_none_at_once(tmp_path):
    _, plan = new_run(tmp_path, acted("Draws"))
    seats = RunSeats(plan, "dead-pool")
    assert seats.losses() == []
    seats.wait(plan.seat_needs, lambda: False)
    ray.kill(ray.get_actor("dead-pool", namespace=NAMESPACE))
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(seats.actor.missing.remote(), timeout=30)
    for _ in range(3):
        assert seats.losses() == []
    assert seats.close() == []
