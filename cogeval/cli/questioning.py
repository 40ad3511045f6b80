"""A model under check: asked as a run would ask it, second try included, and what that took.

Invariant: every question goes through the seat of an episode, so that what counts as a fault here is one in
a run. What is spent is counted, whatever ends the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import msgspec

from cogeval.cli.output import counted
from cogeval.cli.picking import Picked, local_resources
from cogeval.cli.pricing import AgentPrice, Texts, price_run
from cogeval.core.agent import Seated, bound, released
from cogeval.core.clock import MonotonicClock
from cogeval.core.local_quota import LocalQuota, dollars
from cogeval.core.record import ActionCodec, Attempt
from cogeval.core.seat import Deadlines, SeatPlay
from cogeval.testing.agent_checks import AgentCheckError
from cogeval.testing.walks import SECRET_SEED, Position, Walk, walk

_ENOUGH: Final = 8  # decisions that were lost, with nothing else: a check that goes on only costs money
_KINDS: Final = {"timeout": "late", "exception": "exception", "illegal": "illegal"}


@dataclass(slots=True)
class Answers:
    """What a model did with its questions so far.

    Args:
        at_once: decisions whose first reply was read and legal.
        second_try: decisions whose second reply was.
        lost: decisions that would fall to the fallback.
        tokens_in: of all replies.
        tokens_out: of all replies.
        usd: booked, requests that failed included.
    """

    at_once: int = 0
    second_try: int = 0
    lost: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    failure: AgentCheckError | None = None  # the first

    @property
    def decisions(self) -> int:
        """That were asked for and are over."""
        return self.at_once + self.second_try + self.lost

    def note(self, attempts: Sequence[Attempt]) -> Attempt:
        """Counts one decision's replies and gives the last."""
        for usage in (attempt.usage for attempt in attempts if attempt.usage is not None):
            self.tokens_in += usage.tokens_in
            self.tokens_out += usage.tokens_out
        last = attempts[-1]
        if not last.accepted:
            self.lost += 1
        elif len(attempts) > 1:
            self.second_try += 1
        else:
            self.at_once += 1
        return last

    def as_json(self) -> dict[str, Any]:
        """The counts as plain JSON."""
        names = (field.name for field in fields(self))
        return {name: getattr(self, name) for name in names if name != "failure"}

    def lines(self) -> list[str]:
        """The counts for people."""
        rate = f" ({self.lost / self.decisions:.0%})" if self.lost else ""
        spent = f"; {dollars(self.usd)}" if self.usd else ""
        return [
            f"replies  {self.at_once:,} read and legal at once, {self.second_try:,} at the second try, "
            f"{self.lost:,} not at all{rate}",
            f"spent    {self.tokens_in:,} tokens in, {self.tokens_out:,} out{spent}",
        ]


class Questions:
    """The questions of a check: every decision of some random episodes.

    Args:
        picked: the model and its game.
        seeds: of the episodes; one more is added.
    """

    def __init__(self, picked: Picked, seeds: Iterable[int]) -> None:
        self._picked = picked
        self._game = picked.experiment.game
        self.walks = [walk(self._game, seed) for seed in (*seeds, SECRET_SEED)]
        self._resources = local_resources(picked.experiment)
        self.answers = Answers()

    def __len__(self) -> int:
        return sum(len(position.decisions) for each in self.walks for position in each.positions)

    def price(self) -> AgentPrice | None:
        """What asking all of them is expected to cost; None: not an agent of kind llm."""
        texts = Texts(self._game)
        for position in (position for each in self.walks for position in each.positions):
            texts.opened(position.phase, position.state, position.decisions)
        prices = self._resources.prices
        found = price_run([self._picked.agent], [len(self)], texts, prices, None).agents
        return found[0] if found else None

    async def ask(self, deadlines: Deadlines) -> None:
        """Asks them, those of a phase at once; ends early when going on would tell nothing more."""
        seated = bound(self._picked.agent.seated, self._resources)
        try:
            for each in self.walks:
                if not await self._ask_along(each, seated, deadlines):
                    break
        finally:
            await released(seated.agent)
            quota = self._resources.quota
            self.answers.usd = quota.budget.spent_usd if isinstance(quota, LocalQuota) else 0.0

    async def _ask_along(self, each: Walk, seated: Seated, deadlines: Deadlines) -> bool:
        clock, codec = MonotonicClock(), ActionCodec(self._game)
        seats = [
            SeatPlay(self._game, each.seed, seat, seated, 0, deadlines, clock, codec)
            for seat in range(self._game.seats)
        ]
        try:
            for position in each.positions:
                if not await self._ask_phase(position, seats):
                    return False
            return True
        finally:
            for seat in seats:
                await seat.close(None)

    async def _ask_phase(self, position: Position, seats: Sequence[SeatPlay]) -> bool:
        """Asks everybody who decides here; False: going on tells nothing more."""
        begun = [seats[d.seat].begin(position.state, d, position.phase) for d in position.decisions]
        tasks = [asyncio.ensure_future(each) for each in begun if not isinstance(each, list)]
        try:
            awaited = iter(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
        goes_on = True
        for each in begun:
            last = self.answers.note(each if isinstance(each, list) else next(awaited))
            if not last.accepted:
                self.answers.failure = self.answers.failure or _failure(position, last)
                goes_on = goes_on and last.fault in ("unreadable", "illegal")
        return goes_on and (self.answers.lost < _ENOUGH or self.answers.lost < self.answers.decisions)


def _failure(position: Position, last: Attempt) -> AgentCheckError:
    """A decision that was lost, in the words of the check."""
    kind, what = _KINDS.get(last.fault or "", "unreadable"), last.detail or "no reply"
    if kind == "unreadable" and "got neither" in what:
        kind = "no reply"
    if last.text:
        what += f"; it wrote {last.text[:200]!r}"
    error = AgentCheckError(kind, f"{position.place}, seat {last.seat}", what)
    error.stderr = last.stderr or ""
    return error


def within(deadlines: Deadlines, limit_s: float) -> Deadlines:
    """Deadlines under which no reply takes longer than a limit."""
    return msgspec.structs.replace(deadlines, decision_s=limit_s, retry_s=min(limit_s, deadlines.retry_s))


def announced(num_questions: int, price: AgentPrice | None) -> str:
    """What is said before the first question."""
    asks = f"asking {counted(num_questions, 'question')}"
    if price is None or price.usd_low is None or price.usd_high is None:
        return f"{asks}; no price is known" if price is not None else asks
    if price.usd_high == 0:
        return f"{asks}; free"
    return f"{asks}, for about {dollars(price.usd_low)} to {dollars(price.usd_high)}; second tries cost more"
