"""Limits and the spending cap hold for all workers of a run together, whatever becomes of them."""

import itertools
import math
import os
import signal
import sys

import msgspec
import pytest
from cluster_runs import FAULTY, column, new_run
from ray import get_actor, kill
from ray.util import list_named_actors

from cogeval.cluster.connection import connected
from cogeval.cluster.driver import drive
from cogeval.cluster.plan import ClusterOptions
from cogeval.cluster.quota_actor import NAMESPACE
from cogeval.errors import RunError
from cogeval.store.read import read_tables
from cogeval.store.spend import spend_of

sys.path.insert(0, FAULTY)
from paying_agents import paying_agent, requests

pytestmark = pytest.mark.cluster

TWO = ClusterOptions(workers=2)
EPISODE_REQUESTS = 24  # of a game of 3 rounds with 4 seats


@pytest.fixture(scope="module", autouse=True)
def own_ray():
    with connected(ClusterOptions(workers=2)):
        yield


@pytest.fixture
def payers(tmp_path, monkeypatch):
    """Makes runs of agents that pay, and says which requests they made."""
    monkeypatch.setitem(sys.modules["cogeval.agents"].AGENTS, "paying", paying_agent)
    log = tmp_path / "requests"

    def make(episodes, limits, in_flight=4, **agent):
        agents = {"payer": {"kind": "paying", "log": str(log), **agent}}
        return new_run(
            tmp_path,
            agents,
            schedule={"blocks": episodes},
            cluster={"episodes_in_flight": in_flight},
            limits=limits,
        )

    return make, lambda: requests(log)


def recorded(run):
    return sorted(column(read_tables(run, ("episodes",)).episodes, "index"))


def test_a_rate_is_kept_by_all_workers_together(payers):
    make, made = payers
    run, plan = make(40, {"accounts": {"main": {"requests_per_minute": 90}}})
    looks, sent = [], []

    def stop_when_the_minute_is_used(progress):
        looks.append(len([step for _, step in made() if step == 1]))
        if looks[-1] >= 90 and looks[-3:].count(looks[-1]) == 3 and not sent:
            sent.append(looks[-1])
            os.kill(os.getpid(), signal.SIGINT)

    outcome = drive(plan, run, TWO, [stop_when_the_minute_is_used])
    assert outcome.interrupted
    assert looks[-1] == 90  # each worker by itself would have made as many

    seen = []

    def stop_after_some_looks(progress):
        seen.append(progress)
        if len(seen) == 8:
            os.kill(os.getpid(), signal.SIGINT)

    assert drive(plan, run, TWO, [stop_after_some_looks]).interrupted
    starts = [at for at, step in made() if step == 1]
    assert sum(at <= starts[0] + 60 for at in starts) == 90  # the minute is that of both drivers


def test_concurrency_is_that_of_all_workers_together_and_the_books_end_with_the_run(payers):
    make, made = payers
    run, plan = make(6, {"accounts": {"main": {"concurrency": 3}}}, answer_s=0.02)
    outcome = drive(plan, run, TWO)
    assert outcome.complete
    steps = [step for _, step in made()]
    assert len(steps) == 2 * 6 * EPISODE_REQUESTS
    assert max(itertools.accumulate(steps)) == 3
    named = [actor["name"] for actor in list_named_actors(all_namespaces=True)]
    assert not [name for name in named if run.run_id in name]


def test_a_run_pauses_at_its_cap_and_goes_on_with_a_higher_one(payers):
    make, made = payers
    run, plan = make(20, {"spend_usd": 2.0}, in_flight=2, cost_usd=0.01, answer_s=0.01)
    first = drive(plan, run, TWO)
    assert (first.paused, first.complete, first.interrupted) == (True, False, False)
    before = recorded(run)
    assert 0 < len(before) < 20
    spent = 0.01 * len([step for _, step in made() if step == 1])
    assert math.isclose(first.spent_usd, spent, abs_tol=1e-6)
    # An episode costs $0.24: the cap pays for eight whole ones, and no other is begun.
    assert len(before) == 8
    assert math.isclose(spent, 8 * EPISODE_REQUESTS * 0.01, abs_tol=1e-6)
    found = spend_of(run)
    assert found.is_paused
    assert math.isclose(found.spent_usd, spent, abs_tol=1e-6)

    again = drive(plan, run, TWO)  # with the same cap: nothing is played, and nothing is started for it
    assert again.paused
    assert again.num_played == 0

    last = drive(msgspec.structs.replace(plan, cap_usd=10.0), run, TWO)
    assert last.complete
    assert not last.paused
    assert last.num_played == 20 - len(before)
    assert recorded(run) == list(range(20))
    assert not spend_of(run).is_paused
    spent = 0.01 * len([step for _, step in made() if step == 1])
    assert math.isclose(last.spent_usd, spent, abs_tol=1e-6)
    assert math.isclose(spend_of(run).spent_usd, spent, abs_tol=1e-6)
    void = [line for line in run.log_lines() if line["event"] == "void"]
    assert void == []


def test_a_cap_that_pays_for_one_episode_pays_for_one_however_many_are_under_way(payers):
    make, made = payers
    run, plan = make(20, {"spend_usd": 0.6}, in_flight=8, cost_usd=0.01, answer_s=0.01)
    outcome = drive(plan, run, TWO)
    assert outcome.paused
    assert len(recorded(run)) >= 1
    spent = 0.01 * len([step for _, step in made() if step == 1])
    assert math.isclose(outcome.spent_usd, spent, abs_tol=1e-6)  # unfinished episodes included
    assert len(recorded(run)) * EPISODE_REQUESTS * 0.01 < spent <= 0.6 + 1e-6


def test_a_driver_that_is_gone_has_left_what_was_spent_to_the_last_reply(payers):
    """What the log would have had some seconds later is in the file that the books write themselves."""
    make, made = payers
    run, plan = make(6, {}, in_flight=2, cost_usd=0.01, answer_s=0.05)
    seen, shown = [], []

    def compare(progress):
        shown.append(progress.spent_usd)
        answered = sum(step == -1 for _, step in made())
        if answered >= 40 and not seen:
            seen.append((answered, spend_of(run).spent_usd))
            os.kill(os.getpid(), signal.SIGINT)

    outcome = drive(plan, run, TWO, [compare])
    ((answered, spent),) = seen
    assert spent >= 0.01 * (answered - 16)  # but for one reply of each of the 16 seats under way
    assert math.isclose(spend_of(run).spent_usd, outcome.spent_usd, abs_tol=1e-6)
    assert math.isclose(shown[-1], outcome.spent_usd, abs_tol=1e-6)  # the progress line's dollars are these
    again = []
    last = drive(plan, run, TWO, [lambda progress: again.append(progress.spent_usd)])
    assert again[0] >= outcome.spent_usd - 1e-6  # earlier drivers' included
    assert math.isclose(again[-1], last.spent_usd, abs_tol=1e-6)
    assert math.isclose(spend_of(run).spent_usd, last.spent_usd, abs_tol=1e-6)


def test_the_slots_of_a_killed_worker_come_back(payers, tmp_path):
    make, made = payers
    mark = tmp_path / "killed"
    run, plan = make(4, {"accounts": {"main": {"concurrency": 1}}}, deadly_mark=str(mark))
    outcome = drive(plan, run, TWO)
    assert mark.exists()
    assert outcome.progress.num_lost_workers == 1
    assert outcome.complete
    assert recorded(run) == [0, 1, 2, 3]
    assert max(itertools.accumulate(step for _, step in made())) == 1


def test_without_its_books_a_run_stops_and_blames_no_seat(payers):
    make, made = payers
    run, plan = make(30, {"accounts": {"main": {"concurrency": 2}}}, answer_s=0.01, cost_usd=0.01)
    killed = []

    def kill_the_books(progress):
        if progress.done and not killed:
            (name,) = [a["name"] for a in list_named_actors(all_namespaces=True) if run.run_id in a["name"]]
            kill(get_actor(name, namespace=NAMESPACE))
            killed.append(name)

    with pytest.raises(RunError, match="quota cannot be reached"):
        drive(plan, run, TWO, [kill_the_books])
    answered = sum(step == -1 for _, step in made())
    assert answered > EPISODE_REQUESTS
    booked = [line["usd"] for line in run.log_lines() if line["event"] == "spent"]
    for spent in (booked[-1], spend_of(run).spent_usd):  # to the last reply, by the file that is left of them
        assert 0.01 * answered - 1e-6 <= spent <= 0.01 * (answered + 2) + 1e-6
    outcome = drive(plan, run, TWO)  # what was finished is recovered
    assert 0 < outcome.num_played < 30
    assert recorded(run) == list(range(30))
    assert not any(column(read_tables(run, ("decisions",)).decisions, "fault"))
