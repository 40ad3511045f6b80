"""Two tiny games and agents for the tests of the episode loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from cogeval.core.agent import Reply, Request, Seated
from cogeval.core.game import Decision, GameSpec, Prompt, Results, SeatResult, Step
from cogeval.core.rng import Stream
from cogeval.errors import ActionError, InputError


class Bid(msgspec.Struct, frozen=True):
    """An action of both games."""

    amount: int
    say: str = ""


class Table(msgspec.Struct, frozen=True):
    """A state of both games."""

    seed: int
    phase: int
    totals: tuple[int, ...]
    stopped: bool = False


class Amounts:
    """Legal bids: 0 to `limit`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __contains__(self, action: object) -> bool:
        return isinstance(action, Bid) and 0 <= action.amount <= self.limit

    def sample(self, rng: Stream) -> Bid:
        return Bid(rng.below(self.limit + 1))

    def __iter__(self) -> Iterator[Bid]:
        return map(Bid, range(self.limit + 1))

    def __len__(self) -> int:
        return self.limit + 1


class Bids:
    """Simultaneous: every seat bids 0..9 each phase; the score is the sum of the bids."""

    spec: ClassVar = GameSpec("bids", "1", 1, 8, ("seven", "seeded"))
    turns = False

    def __init__(self, seats: int = 2, phases: int = 3) -> None:
        self.seats, self.phases = seats, phases
        self.parameters: Mapping[str, Any] = {"phases": phases, "seats": seats}

    def initial_state(self, seed: int) -> Table:
        return Table(seed, 0, (0,) * self.seats)

    def decisions(self, state: Table) -> tuple[Decision[Bid], ...]:
        if state.stopped or state.phase >= self.phases:
            return ()
        seats = [state.phase % self.seats] if self.turns else range(self.seats)
        return tuple(Decision(s, "bid", Amounts(9), Bid(0)) for s in seats)

    def why_illegal(self, state: Table, seat: int, action: Bid) -> str | None:
        return None if action in Amounts(9) else "range"

    def explain_illegal(self, state: Table, seat: int, action: Bid, reason: str) -> str:
        return f"a bid of {action.amount} is not legal: {reason}"

    def step(self, state: Table, actions: Mapping[int, Bid]) -> Step[Table]:
        assert [d.seat for d in self.decisions(state)] == list(actions)
        assert all(type(a) is Bid and type(a.amount) is int for a in actions.values()), actions
        totals = tuple(t + (actions[s].amount if s in actions else 0) for s, t in enumerate(state.totals))
        after = msgspec.structs.replace(state, phase=state.phase + 1, totals=totals)
        return Step(after, after, ())

    def stop(self, state: Table) -> Step[Table]:
        assert self.decisions(state), "stopped after its end"
        after = msgspec.structs.replace(state, stopped=True)
        return Step(after, after, ())

    def observe(self, state: Table, seat: int) -> Table:
        return state

    def prompt(self, observation: Table) -> Prompt:
        return Prompt("Bid.", f"Totals: {observation.totals}")

    def reply_schema(self, decision: Decision[Bid]) -> Mapping[str, Any]:
        return {"type": "object", "required": ["amount"]}

    def parse_reply(self, state: Table, seat: int, reply: Mapping[str, object]) -> Bid:
        if not isinstance(reply.get("amount"), int):
            raise ActionError("write an object with an integer `amount`")
        return self.action_from_wire(reply)

    def action_to_wire(self, action: Bid) -> Any:
        return {"amount": action.amount, "say": action.say}

    def action_from_wire(self, value: Any) -> Bid:
        return msgspec.convert(value, Bid)

    def observation_to_wire(self, observation: Table) -> Any:
        return msgspec.to_builtins(observation)

    def observation_from_wire(self, value: Any) -> Table:
        return msgspec.convert(value, Table)

    def baseline(self, name: str, state: Table, seat: int, seed: int) -> Bid:
        if name not in self.spec.baselines:
            raise InputError(f"unknown baseline {name!r}")
        return Bid(7 if name == "seven" else (seed + state.phase + seat) % 10)

    def results(self, state: Table) -> Results:
        seats = tuple(SeatResult(float(t), (float(t),), {}) for t in state.totals)
        return Results("deadline" if state.stopped else "complete", state.phase, seats)

    def resample_hidden(self, state: Table, seat: int, rng: object) -> Table:
        return state


class Turns(Bids):
    """The same with one seat a phase, in turn."""

    spec: ClassVar = GameSpec("turns", "1", 1, 8, ("seven", "seeded"))
    turns = True


class FakeClock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


class Plain:
    """An agent from a plain function of the request."""

    def __init__(self, function: Callable[[Request], Any]) -> None:
        self.function = function

    def decide(self, request: Request) -> Any:
        return self.function(request)


class Async:
    """An agent from a coroutine function of the request."""

    def __init__(self, function: Callable[[Request], Any]) -> None:
        self.function = function

    async def decide(self, request: Request) -> Any:
        return await self.function(request)


def sits(function: Callable[[Request], Any], *, deterministic: bool | None = None, **more: Any) -> Seated:
    """Seats a function: a coroutine function as a seat that takes time, a plain one as deterministic."""
    is_async = asyncio.iscoroutinefunction(function)
    kind = Async if is_async else Plain
    fixed = not is_async if deterministic is None else deterministic
    return Seated("toy", lambda seat, rng: kind(function), fixed, **more)


def bids(amount: int) -> Seated:
    """A seat that always bids the same."""
    return sits(lambda request: Reply(Bid(amount)))
