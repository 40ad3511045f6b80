"""One seat: whatever its agent raises is a fault of that seat, and nothing worse."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from one_seat import faults, of_seat, run
from toy import Bid, bids, sits

from cogeval.core.agent import Reply, Request, Seated
from cogeval.core.record import Episode
from cogeval.core.seat import Deadlines


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
