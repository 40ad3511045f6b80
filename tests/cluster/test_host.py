"""The inside of a worker, without Ray."""

import asyncio
import itertools

import pytest
from cluster_runs import new_run

from cogeval.cluster.host import EpisodeHost
from cogeval.errors import RunError
from cogeval.store.recover import recover


def play_all(plan, indexes, **report):
    async def session():
        host = EpisodeHost(plan, "w0")
        host.give(indexes)
        receipts = []
        while sum(len(r.finished) + len(r.failed) for r in receipts) < len(indexes):
            receipts.append(await host.report(0.2))
        await host.seal()
        receipts.append(await host.drain())
        return receipts

    return asyncio.run(session())


def test_every_episode_is_reported_once_and_sealed_once(tmp_path):
    _, plan = new_run(tmp_path)
    num = len(plan.schedule)
    receipts = play_all(plan, range(num))
    finished = [i for r in receipts for i in r.finished]
    sealed = [i for r in receipts for s in r.sealed for i in s.indexes]
    assert sorted(finished) == sorted(sealed) == list(range(num))
    assert sum(int(r.tally.num_seats.sum()) for r in receipts) == 4 * num


def test_tally_counts_pairs_and_shares(tmp_path):
    _, plan = new_run(tmp_path)
    receipts = play_all(plan, range(len(plan.schedule)))
    wins = sum(r.tally.wins for r in receipts)
    shares = sum(r.tally.share_sum for r in receipts)
    assert wins.diagonal().sum() == 0
    assert shares.sum() == pytest.approx(2.0 * len(plan.schedule))  # four seats share two points


def test_small_shards_roll(tmp_path):
    _, plan = new_run(tmp_path, store={"shard_mb": 0.02}, schedule={"blocks": 200})
    receipts = play_all(plan, range(len(plan.schedule)))
    shards = [s for r in receipts for s in r.sealed]
    assert len(shards) > 1
    assert len({s.shard_id for s in shards}) == len(shards)


def test_drain_gives_back_what_is_unfinished_and_loses_nothing_finished(tmp_path):
    agents = {"slow": {"_target_": "misbehaving_agents.Waits", "seconds": 0.02}}
    _, plan = new_run(tmp_path, agents, schedule={"blocks": 40})

    async def session():
        host = EpisodeHost(plan, "w0")
        host.give(range(40))
        first = await host.report(0.3)
        last = await host.drain()
        return first, last

    first, last = asyncio.run(session())
    finished = {*first.finished, *last.finished}
    assert last.returned
    assert finished | {*last.returned} == set(range(40))
    assert not finished & {*last.returned}
    assert {i for r in (first, last) for s in r.sealed for i in s.indexes} == finished


def test_what_arrives_after_a_drain_is_not_begun(tmp_path):
    _, plan = new_run(tmp_path)

    async def session():
        host = EpisodeHost(plan, "w0")
        host.give(range(4))
        await host.report(0.2)
        await host.drain()
        host.give(range(4, 8))
        return await host.report(0.2)

    late = asyncio.run(session())
    assert late.returned == (4, 5, 6, 7)
    assert not late.finished


def test_finished_is_recoverable_without_a_seal(tmp_path):
    run, plan = new_run(tmp_path)

    async def session():
        host = EpisodeHost(plan, "w0")
        host.give(range(10))
        finished = []
        while len(finished) < 10:
            finished += (await host.report(0.2)).finished
        return finished  # and the worker is gone

    finished = asyncio.run(session())
    recovered = [i for shard in recover(run.path) for i in shard.indexes]
    assert sorted(recovered) == sorted(finished)


def test_our_own_failure_names_the_episode(tmp_path, monkeypatch):
    _, plan = new_run(tmp_path)

    def broken(state, actions):
        raise ZeroDivisionError("a rule is wrong")

    monkeypatch.setattr(type(plan.game), "step", lambda self, state, actions: broken(state, actions))
    receipts = play_all(plan, [3])
    ((index, what),) = [f for r in receipts for f in r.failed]
    assert index == 3
    assert "episode 3" in what
    assert f"seed {plan.schedule[3].seed}" in what
    assert "a rule is wrong" in what


@pytest.mark.parametrize(
    ("agent", "fault"),
    [
        ({"_target_": "misbehaving_agents.Raises"}, "exception"),
        ({"_target_": "misbehaving_agents.Hangs"}, "timeout"),
        ({"_target_": "misbehaving_agents.LeaksItsThread", "seconds": 0.4}, "timeout"),
    ],
)
def test_a_faulty_agent_costs_its_own_seat_only(tmp_path, agent, fault):
    agents = {"bad": agent, "good": {"_target_": "misbehaving_agents.Passes"}}
    _, plan = new_run(tmp_path, agents, deadlines={"decision_s": 0.1, "retry_s": 0.1}, schedule={"blocks": 1})
    receipts = play_all(plan, [0])
    assert not [f for r in receipts for f in r.failed]
    from cogeval.store.read import read_tables
    from cogeval.store.run import RunDir

    run = RunDir(tmp_path / plan.run_id)
    for shard in (s for r in receipts for s in r.sealed):
        run.commit(shard, shard.indexes)
    decisions = read_tables(run).decisions
    seats = {i for i, agent in enumerate(plan.schedule[0].lineup) if plan.agents[agent].name == "bad"}
    rows = decisions.to_pylist()
    assert {r["fault"] for r in rows if r["seat"] in seats and r["source"] == "agent"} == {fault}
    assert {r["fault"] for r in rows if r["seat"] not in seats} == {None}
    assert all(r["source"] == "baseline" for r in rows if r["seat"] in seats and r["accepted"])


def test_the_first_reason_to_stop_is_the_one_that_is_told(tmp_path, monkeypatch):
    agents = {"slow": {"_target_": "misbehaving_agents.Waits", "seconds": 0.01}}
    _, plan = new_run(tmp_path, agents, schedule={"blocks": 20})
    reasons = itertools.chain(["no room on the disk"], itertools.repeat("the shard is closed"))

    def fail(writer, **row):
        raise RunError(next(reasons))

    monkeypatch.setattr("cogeval.cluster.host.ShardWriter.add", fail)

    async def session():
        host = EpisodeHost(plan, "w0")
        host.give(range(20))
        await asyncio.sleep(0)  # the lanes begin
        return await host.drain(finish_s=5.0)  # and all fail before anybody asks why

    assert asyncio.run(session()).fatal == "no room on the disk"
    assert next(reasons) == "the shard is closed"
