"""The shared check of an agent: it sits in every seat of random episodes, on observations only.

Invariant: the agent gets what the episode loop would give it and nothing more. Must not know any agent
by name, nor need anything that a plain install lacks.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from cogeval.agents.python import seat_agent
from cogeval.core.agent import Agent, AgentFactory, Reply, Request, Resources, Scripted, SeatAgent, released
from cogeval.core.clock import MonotonicClock, ThinkTimer
from cogeval.core.game import AnyGame, Decision, Seat
from cogeval.core.record import ActionCodec
from cogeval.core.seat import agent_stream, request_stream
from cogeval.errors import ActionError, RecordedFaultError, RunError, UnmadeError
from cogeval.testing.snapshot import snapshot
from cogeval.testing.walks import SECRET_SEED, Position, Walk, walk

__all__ = ["FAILURES", "AgentCheckError", "check_agent"]

FAILURES: Final = (
    "constructor", "exception", "no reply", "late", "unreadable", "illegal", "not repeatable", "seed told",
)  # fmt: skip
"""What an agent can fail by; the last one is the game's fault."""

_LOOK_S: Final = 0.01  # between two looks at an agent that waits for something else than its thoughts
_T = TypeVar("_T")
_QUOTED_CHARS: Final = 200  # of a reply that holds no action

Asked = Callable[[str, ThinkTimer], None]
"""(place, timer of the decision): told before an agent is asked."""


class AgentCheckError(AssertionError):
    """An agent failed the shared check.

    Args:
        kind: one of FAILURES.
        place: seed, phase and seat.
        what: what was expected there and what came.

    Attributes:
        stderr: what the agent's process, if it has one, had written to stderr.
    """

    def __init__(self, kind: str, place: str, what: str) -> None:
        super().__init__(f"{place}: {what}")
        self.kind = kind
        self.place = place
        self.what = what
        self.stderr = ""


def check_agent(
    agent: SeatAgent | Callable[..., Agent],
    game: AnyGame,
    seeds: Iterable[int] = (0, 1),
    *,
    deterministic: bool,
    limit_s: float = 10.0,
    resources: Resources = Resources(),  # noqa: B008 - frozen value
    asked: Asked | None = None,
) -> None:
    """Runs the shared checks of an agent: legal, repeatable, ignorant of the seed, and quick.

    Args:
        agent: a class as a pool takes it, with any of seat, rng and game in its constructor (give its
            other parameters with `functools.partial`); a function that makes agents; or a scripted
            baseline.
        game: that it plays.
        seeds: of the random episodes in which it is asked; one more is added.
        deterministic: what the agent declares; if so, two runs must agree.
        limit_s: think time allowed for one decision, in seconds.
        resources: for an agent that needs them.
        asked: told before each decision.

    Raises:
        AgentCheckError: an AssertionError that names seed, phase and seat, and what was wrong there.
    """
    with asyncio.Runner() as runner:  # one loop for all, as in a worker: clients live in it
        if (bind := getattr(agent, "bind", None)) is not None:
            agent = runner.run(_bound(bind, resources))
        check = _Check(agent, game, limit_s, asked, runner)
        try:
            for each in [walk(game, seed) for seed in (*seeds, SECRET_SEED)]:
                for seat in range(game.seats):
                    _check_seat(check, each, seat, deterministic=deterministic)
        finally:
            runner.run(released(agent))


def _check_seat(check: _Check, each: Walk, seat: int, *, deterministic: bool) -> None:
    """Lets one seat decide all along a walk, twice where that must come out the same."""
    first = check.decide_all(each, seat)
    if not deterministic:
        return
    again = check.decide_all(each, seat)
    for (place, one), (_, other) in zip(first, again, strict=True):
        if one != other:
            what = f"declared deterministic, decided {one} and then {other}"
            raise AgentCheckError("not repeatable", place, what)


class _Baseline:
    """A scripted baseline as an agent: privileged, it is given the positions of its walk."""

    def __init__(self, name: str, game: AnyGame, each: Walk) -> None:
        self._name = name
        self._game = game
        self._positions = iter(each.positions)

    def decide(self, request: Request) -> Reply:
        """Decides on the next position in which the seat decides."""
        seat = request.decision.seat
        position = next(p for p in self._positions if any(d.seat == seat for d in p.decisions))
        return Reply(self._game.baseline(self._name, position.state, seat, position.seed))


class _Check:
    """One agent under check in one game."""

    def __init__(
        self,
        seated: SeatAgent | Callable[..., Agent],
        game: AnyGame,
        limit_s: float,
        asked: Asked | None,
        runner: asyncio.Runner,
    ) -> None:
        self.seated = seated
        self.game = game
        self.limit_s = limit_s
        self.asked = asked
        self.runner = runner
        self.codec = ActionCodec(game)

    def decide_all(self, each: Walk, seat: Seat) -> list[tuple[str, str]]:
        """Asks one agent at every decision of its seat; gives places and actions as canonical JSON."""
        agent = self._made(each, seat)
        actions = []
        draws, memory = request_stream(each.seed, seat), b""
        try:
            for position in each.positions:
                for decision in position.decisions:
                    if decision.seat == seat:
                        place = f"{position.place}, seat {seat}"
                        reply = self._reply(agent, position, decision, place, (memory, draws.word()))
                        memory = memory if reply.memory is None else reply.memory
                        actions.append((place, self._judged(position, seat, reply, place)))
        except AgentCheckError as error:
            if (asking := getattr(agent, "fault_stderr", None)) is not None:
                error.stderr = self.runner.run(_wait(asking()))
            raise
        finally:
            if (close := getattr(agent, "close", None)) is not None:
                self.runner.run(_wait(close(None)))
        return actions

    def _made(self, each: Walk, seat: Seat) -> Agent:
        if isinstance(self.seated, Scripted):
            return _Baseline(self.seated.name, self.game, each)
        try:
            return seat_agent(self.seated, self.game, seat, agent_stream(each.seed, seat))
        except Exception as error:
            what = f"expected an agent, got {type(error).__name__}: {error}"
            raise AgentCheckError("constructor", f"seed {each.seed}, phase 0, seat {seat}", what) from error

    def _reply(
        self,
        agent: Agent,
        position: Position,
        decision: Decision[object],
        place: str,
        kept: tuple[bytes, int],
    ) -> Reply:
        """Asks the agent once, in the time that it has, with its seat's memory and a seed."""
        observation = self.game.observe(position.state, decision.seat)
        if str(SECRET_SEED) in repr(snapshot(observation)):
            raise AgentCheckError("seed told", place, "the observation tells the seed")
        timer = ThinkTimer(MonotonicClock(), self.limit_s)
        if self.asked is not None:
            self.asked(place, timer)
        try:
            reply = agent.decide(Request(observation, decision, timer, None, self.limit_s, *kept))
            if inspect.isawaitable(reply):
                reply = self.runner.run(_within(reply, timer, self.limit_s))
        except RunError:  # the money is spent, the user's input is wrong: no fault of the agent
            raise
        except UnmadeError as error:
            raise AgentCheckError("constructor", place, f"expected an agent, got none: {error}") from error
        except RecordedFaultError as error:  # a seat actor judged the reply, or its agent raised
            is_reply = error.fault == "unreadable"
            what = str(error) if is_reply else f"expected a Reply, got {error}"
            raise AgentCheckError("unreadable" if is_reply else "exception", place, what) from error
        except _LateError as error:
            what = f"expected a reply within {self.limit_s:g} s, got none"
            raise AgentCheckError("late", place, what) from error
        except Exception as error:
            what = f"expected a Reply, got {type(error).__name__}: {error}"
            raise AgentCheckError("exception", place, what) from error
        think_s = timer.think_s
        if not isinstance(reply, Reply):
            raise AgentCheckError("no reply", place, f"expected a Reply, got {type(reply).__name__}")
        if think_s > self.limit_s:
            what = f"expected a reply within {self.limit_s:g} s, got one after {think_s:.3g} s"
            raise AgentCheckError("late", place, what)
        return reply

    def _judged(self, position: Position, seat: Seat, reply: Reply, place: str) -> str:
        """Reads a reply as the episode loop does, and gives its action as canonical JSON."""
        action = reply.action
        if action is None:
            if reply.payload is None:
                wrote = f"; it wrote {reply.text[:_QUOTED_CHARS]!r}" if isinstance(reply.text, str) else ""
                what = f"expected an action or a payload, got neither{wrote}"
                raise AgentCheckError("no reply", place, what)
            try:
                action = self.game.parse_reply(position.state, seat, reply.payload)
            except ActionError as error:
                what = f"{reply.payload!r} cannot be read: {error.hint}"
                raise AgentCheckError("unreadable", place, what) from error
        try:
            read, text = self.codec.canonical(action)
        except Exception as error:
            what = f"expected an action of {self.game.spec.name}, got {action!r}"
            raise AgentCheckError("unreadable", place, f"{what} ({type(error).__name__}: {error})") from error
        reason = self.game.why_illegal(position.state, seat, read)
        if reason is not None:
            raise AgentCheckError("illegal", place, f"expected a legal action, got {text} ({reason})")
        return text


class _LateError(Exception):
    """An agent was given up."""


async def _wait(waited: Awaitable[_T]) -> _T:
    return await waited


async def _within(waited: Awaitable[Reply], timer: ThinkTimer, limit_s: float) -> Reply:
    """Waits for a reply as an episode does: one that is late is cancelled."""
    asked = asyncio.ensure_future(waited)
    while not (await asyncio.wait({asked}, timeout=max(_LOOK_S, limit_s - timer.think_s)))[0]:
        if timer.think_s > limit_s:
            asked.cancel()
            raise _LateError
    return asked.result()


async def _bound(bind: Callable[[Resources], AgentFactory], resources: Resources) -> AgentFactory:
    return bind(resources)
