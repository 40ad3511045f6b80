"""One seat: whatever its agent does is a fault of that seat, and nothing worse."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import Bid, Bids, FakeClock, bids, sits

from cogeval.core.agent import Reply, Request, Seated, Usage
from cogeval.core.clock import Clock, ThinkTimer
from cogeval.core.episode import play
from cogeval.core.record import ActionCodec, Attempt, Episode
from cogeval.core.seat import Deadlines

SOON = Deadlines(decision_s=0.05, retry_s=0.05)


def run(*seats: Seated, phases: int = 1, deadlines: Deadlines = SOON, clock: Clock | None = None,
        ) -> Episode:  # fmt: skip
    return asyncio.run(play(Bids(len(seats), phases), 5, seats, deadlines=deadlines, clock=clock))


def of_seat(episode: Episode, seat: int = 0) -> list[Attempt]:
    return [a for a in episode.attempts if a.seat == seat]


def faults(episode: Episode, seat: int = 0) -> list[str | None]:
    return [a.fault for a in of_seat(episode, seat)]


def raises(error: BaseException) -> Callable[[Request], Any]:
    def decide(request: Request) -> Any:
        raise error

    return decide


def raises_later(error: BaseException) -> Callable[[Request], Any]:
    async def decide(request: Request) -> Any:
        await asyncio.sleep(0)
        raise error

    return decide


class MuteError(Exception):
    """An error that can't even be written."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Panic(BaseException):
    """What native libraries raise, past every `except Exception`."""


ERRORS = [ValueError("bad"), SystemExit(3), asyncio.CancelledError(), MuteError(), Panic("native"),
          StopIteration(1), RecursionError(), MemoryError()]  # fmt: skip


# --- failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("kind", ["plain", "thread", "async"])
def test_an_exception_costs_its_own_seat_its_decision(error: BaseException, kind: str) -> None:
    decide = raises_later(error) if kind == "async" else raises(error)
    seat = sits(decide, deterministic=kind == "plain")
    episode = run(seat, bids(3), deadlines=Deadlines())
    assert faults(episode) == ["exception", None]
    assert [a.source for a in of_seat(episode)] == ["agent", "baseline"]
    assert [s.score for s in episode.results.seats] == [7, 3]
    detail = of_seat(episode)[0].detail
    assert detail is not None
    if kind == "plain":
        assert detail.startswith(type(error).__name__)


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_an_agent_that_cannot_be_made_is_at_fault_in_every_phase(error: BaseException) -> None:
    def factory(seat: int, rng: object) -> Any:
        raise error

    episode = run(Seated("toy", factory, True), bids(3), phases=2)
    assert faults(episode) == ["exception", None] * 2
    assert [s.score for s in episode.results.seats] == [14, 6]


def test_an_interrupt_of_the_user_is_no_fault() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(sits(raises(KeyboardInterrupt())))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), SystemExit(3)])
@pytest.mark.parametrize("deterministic", [True, False])
def test_outside_the_main_thread_every_way_out_is_the_agents_fault(
    error: BaseException, deterministic: bool
) -> None:
    async def raises_later(request: Request) -> Any:
        await asyncio.sleep(0)
        raise error

    def in_a_thread(decide: Any) -> Episode:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(run, sits(decide, deterministic=deterministic), bids(3)).result(10)

    assert faults(in_a_thread(raises(error))) == ["exception", None]
    assert faults(in_a_thread(raises_later)) == ["exception", None]


def test_an_agent_that_breaks_where_it_is_looked_at_costs_its_own_seat() -> None:
    class NoDecide:
        @property
        def decide(self) -> Any:
            raise OSError("not today")

    episode = run(Seated("odd", lambda seat, rng: NoDecide(), deterministic=True), bids(3))
    assert faults(episode) == ["exception", None]


def test_a_flood_of_text_is_cut_and_a_flood_in_an_action_is_no_action() -> None:
    def floods(request: Request) -> Any:
        return Reply(Bid(1), text="x" * 5_000_000, model="m" * 5000, finish_reason="f" * 5000)

    first = of_seat(run(sits(floods), bids(3)))[0]
    assert first.fault is None
    assert [len(t or "") for t in (first.text, first.model, first.finish_reason)] == [1_000_000, 200, 200]
    flooded = run(sits(lambda request: Reply(Bid(1, "x" * 70_000))), bids(3))
    assert faults(flooded)[:2] == ["unreadable", "unreadable"]


# --- time ------------------------------------------------------------------------------------------------


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


# --- replies ---------------------------------------------------------------------------------------------


def in_turn(replies: Sequence[object]) -> tuple[Callable[[Request], Any], list[Request]]:
    asked: list[Request] = []

    def decide(request: Request) -> Any:
        asked.append(request)
        return replies[len(asked) - 1]

    return decide, asked


@pytest.mark.parametrize("deterministic", [True, False])
def test_an_unreadable_reply_gets_one_retry_with_the_games_hint(deterministic: bool) -> None:
    decide, asked = in_turn([Reply(payload={"sum": 3}), Reply(payload={"amount": 3}, text="3")])
    episode = run(sits(decide, deterministic=deterministic), deadlines=Deadlines(decision_s=9, retry_s=4))
    assert faults(episode) == ["unreadable", None]
    assert [a.accepted for a in episode.attempts] == [False, True]
    assert [a.attempt for a in episode.attempts] == [0, 1]
    assert [r.hint for r in asked] == [None, "write an object with an integer `amount`"]
    assert [r.budget_s for r in asked] == ([None, None] if deterministic else [9, 4])
    assert episode.attempts[1].text == "3"
    assert episode.results.seats[0].score == 3


def test_an_illegal_action_twice_falls_back() -> None:
    decide, asked = in_turn([Reply(Bid(10)), Reply(Bid(-1))])
    episode = run(sits(decide))
    assert faults(episode) == ["illegal", "illegal", None]
    assert [a.action for a in episode.attempts] == [Bid(10), Bid(-1), Bid(7)]
    assert [a.attempt for a in episode.attempts] == [0, 1, 2]
    assert asked[1].hint == "a bid of 10 is not legal: range"


def test_an_exception_on_the_retry_falls_back() -> None:
    asked = []

    def decide(request: Request) -> Any:
        asked.append(request)
        if len(asked) == 2:
            raise ValueError("again")
        return Reply()

    assert faults(run(sits(decide))) == ["unreadable", "exception", None]


class Liar:
    """Equal to nothing and hashable to nothing."""

    def __hash__(self) -> int:
        raise SystemExit("no hash")


class Amount(int):
    """A number that is none of JSON's own."""


ILL_TYPED = [
    [1], {"amount": 1}, object(), 1, "1", b"1", True, float("nan"), Bid, Liar(), (), {1, 2},
    Bid("1"), Bid([1]), Bid({}), Bid(float("nan")), Bid(1.5), Bid(10**6000), Bid(1, say=7),  # type: ignore[arg-type]
    Bid(1, say=b"x"), Bid(Bid(1)), Bid(True),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize("action", ILL_TYPED, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("deterministic", [True, False])
def test_an_ill_typed_action_is_a_fault_and_never_reaches_the_rules(
    action: object, deterministic: bool
) -> None:
    seat = sits(lambda request: Reply(action), deterministic=deterministic)
    episode = run(seat, bids(3), phases=2, deadlines=Deadlines())
    assert set(faults(episode)) <= {"unreadable", "illegal", None}
    assert all(type(a.action) is Bid for a in episode.attempts if a.accepted)
    assert [s.score for s in episode.results.seats] == [14, 6]


@pytest.mark.parametrize("action", [Bid(2.0), Bid(True)], ids=repr)  # type: ignore[arg-type]
def test_what_was_seen_before_does_not_decide_how_an_action_is_read(action: Bid) -> None:
    codec = ActionCodec(Bids())
    for _ in range(2):
        with pytest.raises(msgspec.ValidationError):
            codec.canonical(action)
        assert codec.canonical(Bid(2))[1] == '{"amount":2,"say":""}'
        assert codec.canonical(Bid(1))[1] == '{"amount":1,"say":""}'


@pytest.mark.parametrize("amount", [2, Amount(2)])
def test_equal_actions_are_recorded_as_one(amount: Any) -> None:
    first = run(sits(lambda request: Reply(Bid(amount))))
    assert first.digest == run(bids(2)).digest
    assert type(first.attempts[0].action.amount) is int


@pytest.mark.parametrize("say", ["x" * 60_000, "\ud800", "\x00\u2028", "é" * 5000])
def test_whatever_is_said_is_played_and_recorded(say: str) -> None:
    episode = run(sits(lambda request: Reply(Bid(2, say))), bids(2), phases=2)
    assert [a.action for a in of_seat(episode)] == [Bid(2, say)] * 2


@pytest.mark.parametrize(
    "reply",
    [
        None, 5, Bid(1), {"amount": 1}, Reply(), Reply(payload=[1]), Reply(payload="{}"),  # type: ignore[arg-type]
        Reply(Bid(1), think_s="fast"), Reply(Bid(1), think_s=-1.0), Reply(Bid(1), queue_s=None),  # type: ignore[arg-type]
        Reply(Bid(1), queue_s=float("inf")), Reply(Bid(1), text=b"x"), Reply(Bid(1), model=3),  # type: ignore[arg-type]
        Reply(Bid(1), usage={"tokens_in": 3}), Reply(Bid(1), usage=Usage(tokens_in="many")),  # type: ignore[arg-type]
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_reply_that_is_none_is_unreadable(reply: object, deterministic: bool) -> None:
    episode = run(sits(lambda request: reply, deterministic=deterministic), deadlines=Deadlines())
    assert faults(episode) == ["unreadable", "unreadable", None]
    assert episode.results.seats[0].score == 7
    msgspec.json.encode([(a.think_s, a.queue_s, a.usage, a.text, a.model) for a in episode.attempts])


def test_what_a_good_reply_carries_is_recorded() -> None:
    usage = Usage(10, 20, 5, 0.25)
    reply = Reply(Bid(1), None, usage, 0.5, 0.25, "one", "model-1", "stop")
    (a,) = run(sits(lambda request: reply)).attempts
    assert (a.usage, a.queue_s, a.think_s, a.text, a.model, a.finish_reason) == (
        usage, 0.5, 0.25, "one", "model-1", "stop",
    )  # fmt: skip
    assert (a.source, a.accepted, a.kind, a.phase) == ("agent", True, "bid", 0)


@settings(max_examples=60, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_any_payload_is_played_or_a_fault(value: Any) -> None:
    episode = run(sits(lambda request: Reply(payload=value)), bids(1))
    assert episode.results.phases == 1
    episode = run(sits(lambda request: Reply(payload={"amount": value, "say": value})), bids(1))
    assert episode.results.phases == 1
