"""A provider, a quota and a clock that do as they are told, and tell what was done."""

from __future__ import annotations

import asyncio

from cogeval.agents.llm.agent import BoundSeat, LlmSeat
from cogeval.agents.llm.prompts import PromptText
from cogeval.agents.llm.provider import Completion, Endpoint
from cogeval.core.agent import Price, Request
from cogeval.core.clock import ThinkTimer
from cogeval.core.quota import Lease
from cogeval.core.rng import stream
from cogeval.games import make_game

BARE = PromptText()
PRICE = Price(input=2.0, output=10.0, cached_input=0.5)
GOOD = Completion('{"action": "forage"}', 1000, 100, 400, "model-20260101", "stop")


class FakeClock:
    def __init__(self):
        self.time_s = 0.0
        self.slept = []

    def now(self):
        return self.time_s

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.time_s += seconds


class FakeProvider:
    """Gives its outcomes in turn, each after `takes_s`; the last one for ever."""

    def __init__(self, clock, *outcomes, takes_s=0.25):
        self.clock, self.outcomes, self.takes_s = clock, list(outcomes), takes_s
        self.calls = []

    async def complete(self, call):
        self.calls.append(call)
        self.clock.time_s += self.takes_s
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if outcome == "hang":
            await asyncio.Event().wait()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


class FakeQuota:
    def __init__(self, clock, waits_s=0.0):
        self.clock, self.waits_s = clock, waits_s
        self.leased, self.settled, self.penalties = [], [], []

    async def lease(self, account, tokens):
        self.clock.time_s += self.waits_s
        lease = Lease(account, tokens)
        self.leased.append(lease)
        return lease

    async def settle(self, lease, *, tokens, cost_usd):
        self.clock.time_s += self.waits_s
        self.settled.append((lease, tokens, cost_usd))

    async def penalize(self, account, wait_s):
        self.penalties.append((account, wait_s))


class Table:
    """One model seat at a Cogchemists table, with everything around it faked."""

    def __init__(self, *outcomes, waits_s=0.0, max_retries=6, prompt=BARE, seed=1, key=None):
        self.clock = FakeClock()
        self.provider = FakeProvider(self.clock, *outcomes)
        self.quota = FakeQuota(self.clock, waits_s)
        self.game = make_game("cogchemists")
        made = LlmSeat(
            "pool.agents.x", self.game, Endpoint("openai", api_key_env=key), "model", "acc", prompt, "schema",
            500, {"temperature": 0.5}, max_retries,
        )  # fmt: skip
        bound = BoundSeat(made, self.provider, self.quota, PRICE, self.clock.sleep)
        self.agent = bound(0, stream(seed, "agent"))

    def request(self, hint=None, budget_s=60.0):
        state = self.game.initial_state(3)
        decision = self.game.decisions(state)[0]
        timer = ThinkTimer(self.clock, budget_s)
        return Request(self.game.observe(state, decision.seat), decision, timer, hint, budget_s)

    async def ask(self, request=None):
        return await self.agent.decide(request or self.request())
