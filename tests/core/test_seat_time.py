"""One seat's time: only thinking is charged, and a deadline passed is that seat's fault alone."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from one_seat import SOON, faults, of_seat, run
from toy import Bid, Bids, FakeClock, bids, sits

from cogeval.core.agent import Reply, Request
from cogeval.core.clock import ThinkTimer
from cogeval.core.episode import play
from cogeval.core.record import Episode
from cogeval.core.seat import Deadlines


async def forever(request: Request) -> Any:
    await asyncio.Event().wait()


def test_a_seat_past_its_deadline_is_timed_out_and_not_asked_again() -> None:
    episode = run(sits(forever), bids(3))
    assert faults(episode) == ["timeout", None]
    assert of_seat(episode)[0].detail == "no reply within 0.05 s of thinking"
    assert of_seat(episode)[0].think_s >= 0.05
    assert episode.has_clock_events


def test_a_reply_that_comes_too_late_is_none_although_nothing_was_awaited() -> None:
    async def blocks(request: Request) -> Reply:
        time.sleep(0.08)  # the loop cannot look at the time meanwhile
        return Reply(Bid(1))

    assert faults(run(sits(blocks), bids(3))) == ["timeout", None]


def test_a_wait_that_never_ends_is_given_up_when_the_episodes_time_is_over() -> None:
    async def queues(request: Request) -> Any:
        with request.timer.queued():
            await asyncio.Event().wait()

    episode = run(sits(queues), bids(3), deadlines=Deadlines(decision_s=60, episode_timeout_s=0.1))
    assert faults(episode) == ["timeout", None]
    assert of_seat(episode)[0].detail == "no reply within 0.1 s, waits included"


def test_a_thread_that_computes_for_ever_is_ended() -> None:
    def computes(request: Request) -> Any:
        while True:
            pass

    assert faults(run(sits(computes, deterministic=False), bids(3))) == ["timeout", None]
    for thread in threading.enumerate():
        if thread.name == "cogeval-seat":
            thread.join(5)
    assert "cogeval-seat" not in [thread.name for thread in threading.enumerate()]


def test_a_plain_agent_that_may_vary_is_timed_out_too() -> None:
    release = threading.Event()
    try:
        episode = run(sits(lambda request: release.wait(), deterministic=False), bids(3))
        assert faults(episode) == ["timeout", None]
    finally:
        release.set()


def test_hanging_plain_agents_never_use_up_what_others_need() -> None:
    release = threading.Event()
    hanging = sits(lambda request: release.wait(), deterministic=False)
    good = sits(lambda request: Reply(Bid(4)), deterministic=False)

    async def many() -> list[Episode]:
        hung = [play(Bids(1, 1), i, [hanging], deadlines=SOON) for i in range(40)]
        await asyncio.gather(*hung)
        return [await play(Bids(1, 3), 0, [good], deadlines=Deadlines(decision_s=5))]

    try:
        (episode,) = asyncio.run(many())
        assert faults(episode) == [None] * 3
    finally:
        release.set()


def test_an_agent_that_ignores_its_cancellation_is_left_behind() -> None:
    async def main() -> None:
        told, ended = asyncio.Event(), asyncio.Event()

        async def stubborn(request: Request) -> Any:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await told.wait()
            ended.set()
            return Reply(Bid(9))

        episode = await play(Bids(2, 2), 0, [sits(stubborn), bids(1)], deadlines=SOON)
        assert faults(episode) == ["timeout", None] * 2
        assert not ended.is_set()
        told.set()
        await asyncio.wait_for(ended.wait(), 5)

    asyncio.run(main())


def test_only_think_time_is_charged() -> None:
    clock = FakeClock()

    async def decide(request: Request) -> Reply:
        clock.time += 1
        with request.timer.queued():
            clock.time += 500
            await asyncio.sleep(0)
        clock.time += 2
        return Reply(Bid(4), queue_s=10)

    (attempt,) = of_seat(run(sits(decide), deadlines=Deadlines(decision_s=5), clock=clock))
    assert (attempt.fault, attempt.think_s, attempt.queue_s) == (None, 3, 510)


def test_thinking_past_the_deadline_is_a_fault_whatever_was_queued() -> None:
    clock = FakeClock()
    asked: list[Request] = []

    async def decide(request: Request) -> Reply:
        asked.append(request)
        with request.timer.queued():
            clock.time += 500
        clock.time += 6
        await asyncio.Event().wait()
        return Reply(Bid(4))

    episode = run(sits(decide), deadlines=Deadlines(decision_s=5), clock=clock)
    assert faults(episode) == ["timeout", None]
    assert of_seat(episode)[0].think_s == 6
    assert asked[0].budget_s == 5


def test_a_real_wait_in_a_queue_moves_the_deadline() -> None:
    async def decide(request: Request) -> Reply:
        with request.timer.queued():
            await asyncio.sleep(0.12)
        return Reply(Bid(4))

    (attempt,) = of_seat(run(sits(decide)))
    assert attempt.fault is None
    assert attempt.queue_s >= 0.1
    assert attempt.think_s < 0.05


def test_overlapping_waits_count_once() -> None:
    clock = FakeClock()
    timer = ThinkTimer(clock, 10)
    with timer.queued():
        clock.time += 1
        with timer.queued():
            clock.time += 2
        assert timer.queue_s == 3
        clock.time += 4
    clock.time += 8
    assert (timer.queue_s, timer.think_s, timer.remaining_s()) == (7, 8, 2)


def test_think_time_measured_where_the_seat_ran_is_taken() -> None:
    (attempt,) = of_seat(run(sits(lambda request: Reply(Bid(1), think_s=0.25))))
    assert attempt.think_s == 0.25


@pytest.mark.parametrize("kind", ["plain", "async", "plain that returns a coroutine"])
def test_deterministic_agents_are_timed_and_never_timed_out(kind: str) -> None:
    clock = FakeClock()

    def slow(request: Request) -> Reply:
        assert request.budget_s is None
        clock.time += 10_000
        return Reply(Bid(4))

    async def slow_async(request: Request) -> Reply:
        await asyncio.sleep(0)
        return slow(request)

    function = {"plain": slow, "async": slow_async}.get(kind, lambda request: slow_async(request))
    episode = run(sits(function, deterministic=True), phases=3, clock=clock)
    assert faults(episode) == [None] * 3
    assert not episode.stopped
    assert not episode.has_clock_events
    if kind != "plain that returns a coroutine":
        assert [a.think_s for a in episode.attempts] == [10_000] * 3
