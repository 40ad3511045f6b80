"""Agents that pay for every decision, for the tests of limits; no service is called."""

import asyncio
import contextlib
import os
import time
from pathlib import Path

import msgspec

from cogeval.agents.entry import make_entry
from cogeval.core.agent import Reply, Resources, Usage


class PayingSeat(msgspec.Struct, frozen=True):
    """A factory of agents that take the do-nothing action under a lease.

    Each writes two lines to the file `log`: when it makes its request, and when it is answered.
    """

    log: str
    account: str = "main"
    tokens: int = 100
    cost_usd: float = 0.0
    answer_s: float = 0.0
    deadly_mark: str | None = None  # the first with a lease ends its process; the file remembers
    resources: Resources = Resources()

    def bind(self, resources):
        return msgspec.structs.replace(self, resources=resources)

    def __call__(self, seat, rng):
        return Paying(self)


class Paying:
    def __init__(self, seat):
        self.seat = seat

    async def decide(self, request):
        seat, quota = self.seat, self.seat.resources.quota
        with request.timer.queued():
            lease = await quota.lease(seat.account, seat.tokens)
        if seat.deadly_mark is not None:
            with contextlib.suppress(FileExistsError):
                Path(seat.deadly_mark).touch(exist_ok=False)
                os._exit(9)
        note(seat.log, 1)
        try:
            await asyncio.sleep(seat.answer_s)
        finally:
            note(seat.log, -1)
            await asyncio.shield(quota.settle(lease, tokens=seat.tokens, cost_usd=seat.cost_usd))
        return Reply(request.decision.default, usage=Usage(seat.tokens, 0, 0, seat.cost_usd))


def note(log, step):
    with Path(log).open("a") as file:
        file.write(f"{time.time()} {step}\n")


def requests(log):
    """Times and steps (1: a request, -1: its answer), in the order of time."""
    lines = Path(log).read_text().splitlines() if Path(log).exists() else []
    return sorted((float(at), int(step)) for at, step in map(str.split, lines))


def paying_agent(name, game, settings):
    """A builder, for the table of kinds."""
    return make_entry(
        name,
        "paying",
        PayingSeat(**settings),
        code="1",
        version="",
        parameters=settings,
        deterministic=False,
        is_model=True,
    )
