"""Agents are told when their episode is over, and the run's money is nobody's fault."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from toy import Bids

from cogeval.core.agent import Reply, Request, Resources, Seated, bound
from cogeval.core.episode import play
from cogeval.core.quota import BudgetSpentError, Lease
from cogeval.core.seat import Deadlines


@pytest.fixture
def toy() -> Any:
    return Bids()


class Closing:
    """Counts its closings; misbehaves as it is told."""

    def __init__(self, log: list[Any], manner: str = "") -> None:
        self.log, self.manner = log, manner

    async def decide(self, request: Request) -> Reply:
        if self.manner == "spent":
            raise BudgetSpentError("1.00 of 1.00 dollars")
        return Reply(action=request.decision.default)

    async def close(self, outcome: Any) -> None:
        self.log.append(outcome)
        if self.manner == "raises":
            raise OSError("no")
        if self.manner == "hangs":
            await asyncio.sleep(3600)


def seated(log: list[Any], manner: str = "") -> Seated:
    return Seated("closing", lambda seat, rng: Closing(log, manner), deterministic=False)


@pytest.mark.parametrize("manner", ["", "raises"])
def test_every_agent_is_closed_once_with_its_outcome(toy: Any, manner: str) -> None:
    async def run() -> None:
        log: list[Any] = []
        episode = await play(toy, 1, [seated(log, manner)] * toy.seats)
        assert log == list(episode.results.seats)

    asyncio.run(run())


def test_an_agent_that_will_not_close_is_left_behind(toy: Any, monkeypatch: Any) -> None:
    async def run() -> None:
        monkeypatch.setattr("cogeval.core.seat._CLOSE_S", 0.01)
        log: list[Any] = []
        await play(toy, 1, [seated(log, "hangs")] * toy.seats)
        assert len(log) == toy.seats

    asyncio.run(run())


def test_when_the_budget_is_spent_the_run_stops_and_agents_are_closed(toy: Any) -> None:
    async def run() -> None:
        log: list[Any] = []
        with pytest.raises(BudgetSpentError, match=r"1\.00 of"):
            await play(toy, 1, [seated(log, "spent")] * toy.seats, deadlines=Deadlines(decision_s=5))
        assert log == [None] * toy.seats

    asyncio.run(run())


class NeedsQuota:
    def __init__(self, resources: Resources | None = None) -> None:
        self.resources = resources

    def __call__(self, seat: int, rng: Any) -> Any:
        return Closing([])

    def bind(self, resources: Resources) -> NeedsQuota:
        return NeedsQuota(resources)


def test_a_factory_that_wants_them_gets_the_resources() -> None:
    async def run() -> None:
        seat = bound(Seated("x", NeedsQuota(), deterministic=False), Resources())
        assert isinstance(seat.agent, NeedsQuota)
        assert seat.agent.resources is not None
        assert await seat.agent.resources.quota.lease("any", 10) == Lease("any", 10)

    asyncio.run(run())
