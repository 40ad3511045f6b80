"""One replica: who runs beside whom, what a reply may be, and what its client hears."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
from fleet import GAME, Deed, Doer, Fleet
from virtual import LoopClock, run

from cogeval.agents.actor.messages import News, Question, packed, unpacked
from cogeval.agents.actor.options import ActorOptions
from cogeval.agents.actor.replica import SeatReplica
from cogeval.core.agent import Reply, Usage
from cogeval.core.replies import MEMORY_BYTES


def question(number, observation=None, **fields):
    return Question(number, observation, None, budget_s=10.0, **fields)


async def answers(replica, number, client="c"):
    """All of a client's answers, by id, when there are so many."""
    told = {}
    while len(told) < number:
        news = await replica.collect(client, 5.0)
        told |= {answer.id: answer for answer in news.answers}
    return told


def replica_of(decide, **options):
    made = type("Made", (), {"decide": staticmethod(decide)})
    return SeatReplica(made, GAME, ActorOptions(**options))


async def answer_of(reply):
    replica = replica_of(lambda _: reply)
    await replica.submit("c", (question(1),))
    told = await answers(replica, 1)
    await replica.close()
    return unpacked(packed(News(answers=(told[1],)))).answers[0]


def test_what_is_asked_alone_waits_until_nothing_runs_and_until_its_client_has_heard():
    async def main():
        process = next(iter(Fleet(1).processes.values()))
        replica, running = process.replica, process.running
        await replica.submit("c", (question(1, Deed(1, 1.0)),))
        await replica.submit("d", (question(1, Deed(2, 0.5), alone=True), question(2, Deed(3, 0.1))))
        await replica.submit("c", (question(2, Deed(4, 0.1)),))
        await asyncio.sleep(0.5)
        assert +running == {1: 1}
        assert await replica.collect("d", 0.1) == News()
        await asyncio.sleep(1.0)
        assert not +running, "nobody has listened yet"
        assert await replica.collect("d", 0.1) == News(begun=(1,))
        assert not +running
        listening = asyncio.ensure_future(replica.collect("d", 5.0))
        await asyncio.sleep(0.3)
        assert +running == {2: 1}
        await listening
        await asyncio.sleep(0.01)
        assert not +running, "its answer may still be on its way out of the process"
        await asyncio.sleep(0.05)
        assert +running == {3: 1, 4: 1}
        await replica.close()

    run(main())


def test_who_asks_alone_and_never_listens_holds_the_others_for_a_while_only():
    async def main():
        process = next(iter(Fleet(1).processes.values()))
        await process.replica.submit("gone", (question(1, Deed(1), alone=True),))
        await process.replica.submit("c", (question(1, Deed(2)),))
        told = await answers(process.replica, 1)
        await process.replica.close()
        return told[1].fault, asyncio.get_running_loop().time()

    fault, passed_s = run(main())
    assert fault is None
    assert passed_s < 60


def test_a_client_that_is_forgotten_holds_nobody():
    async def main():
        process = next(iter(Fleet(1).processes.values()))
        await process.replica.submit("gone", (question(1, Deed(1), alone=True), question(2, Deed(3))))
        process.replica.forget("gone")
        await process.replica.submit("c", (question(1, Deed(2, 0.1)),))
        await answers(process.replica, 1)
        await process.replica.close()
        return asyncio.get_running_loop().time(), process.fleet.begun

    passed_s, begun = run(main())
    assert passed_s < 1
    assert begun == {2: 1}


def test_waits_inside_an_agent_are_told_and_are_no_thinking():
    async def decide(request):
        await asyncio.sleep(1)
        with request.timer.queued():
            await asyncio.sleep(2)
        await asyncio.sleep(3)
        return Reply(payload={})

    async def main():
        made = type("Made", (), {"decide": staticmethod(decide)})
        replica = SeatReplica(made, GAME, ActorOptions(), LoopClock())
        await replica.submit("c", (question(1),))
        news = [await replica.collect("c", 20.0) for _ in range(4)]
        await replica.close()
        return news

    begun, waiting, again, last = run(main())
    assert (begun.begun, waiting.waiting, again.begun) == ((1,), (1,), (1,))
    assert last.answers[0].think_s == pytest.approx(4.0)
    assert last.answers[0].queue_s == pytest.approx(2.0)


def test_threads_run_first_come_first_served_and_so_many_at_once():
    begun, room = [], threading.Semaphore(0)

    def decide(request):
        begun.append(request.observation)
        assert room.acquire(timeout=30)
        return Reply(payload={})

    async def main():
        replica = replica_of(decide, threads=2, flush_ms=0)
        await replica.submit("c", tuple(question(i, i) for i in range(5)))
        told = (await replica.collect("c", 30.0)).begun
        assert told == (0, 1)
        assert await replica.cancel("c", (0, 3, 99)) == (0,), "a thread cannot be stopped"
        for _ in range(4):
            room.release()
        assert sorted(await answers(replica, 3)) == [1, 2, 4]
        await replica.close()

    asyncio.run(main())
    assert sorted(begun[:2]) == [0, 1]
    assert begun[2:] == [2, 4]


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (3, "expected a Reply, got int"),
        (Reply(object()), "expected an action"),
        (Reply(payload={"a": object()}), "expected an action, got a payload"),
        (Reply(payload={"a": "x" * 2_000_000}), "expected at most 1,000,000 bytes"),
        (Reply(payload={}, memory=b"x" * (MEMORY_BYTES + 1)), "expected at most 65,536 bytes of memory"),
        (Reply(payload={}, memory="text"), "expected memory in bytes, got str"),
        (Reply(payload={}, usage=Usage(-1)), "expected usage.tokens_in"),
    ],
)
def test_a_reply_that_cannot_travel_is_its_own_decisions_fault(reply, what):
    answer = asyncio.run(answer_of(reply))
    assert answer.fault == "unreadable"
    assert what in answer.detail


def test_texts_travel_as_plain_text_cut_to_what_is_kept():
    class Text(str):
        __slots__ = ()

        def __str__(self):
            raise ValueError("no")

    answer = asyncio.run(
        answer_of(Reply(payload={}, text=Text("a\ud800" + "b" * 2_000_000), model=Text("m")))
    )
    assert (answer.text[:3], len(answer.text), answer.model) == ("a?b", 1_000_000, "m")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration(), ValueError("x")])
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_an_agent_raises_is_its_decisions_failure(error, is_async):
    async def later(request):
        raise error

    def now(request):
        raise error

    async def main():
        class Made:
            decide = staticmethod(later if is_async else now)

        replica = SeatReplica(Made, GAME, ActorOptions())
        await replica.submit("c", (question(1), question(2)))
        told = await answers(replica, 2)
        await replica.close()
        return {answer.fault for answer in told.values()}

    assert asyncio.run(main()) == {"exception"}


def test_an_agent_is_closed_once_with_its_replica():
    closed = []

    class Made(Doer):
        def __init__(self):
            pass

        async def close(self, outcome):
            closed.append(outcome)

    async def main():
        replica = SeatReplica(Made, GAME, ActorOptions())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(replica.collect("c", 0.01), 1)
        await replica.close()

    asyncio.run(main())
    assert closed == [None]
