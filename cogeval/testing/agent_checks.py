"""The shared check of an agent: it sits in every seat of random episodes, on observations only.

Invariant: the agent gets what the episode loop would give it and nothing more. Must not know any agent
by name.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable

from cogeval.agents.python import seat_agent
from cogeval.core.agent import Agent, Reply, Request, Scripted, SeatAgent
from cogeval.core.clock import MonotonicClock, ThinkTimer
from cogeval.core.game import AnyGame, Decision, Seat
from cogeval.core.record import ActionCodec
from cogeval.core.seat import agent_stream
from cogeval.errors import ActionError
from cogeval.testing.snapshot import snapshot
from cogeval.testing.walks import SECRET_SEED, Position, Walk, walk


def check_agent(
    agent: SeatAgent | Callable[..., Agent],
    game: AnyGame,
    seeds: Iterable[int] = (0, 1),
    *,
    deterministic: bool,
    limit_s: float = 10.0,
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

    Raises:
        AssertionError: naming seed, phase and seat, and what was wrong there.
    """
    codec = ActionCodec(game)
    for each in [walk(game, seed) for seed in (*seeds, SECRET_SEED)]:
        for seat in range(game.seats):
            first = _decide_all(agent, game, each, seat, limit_s, codec)
            if not deterministic:
                continue
            again = _decide_all(agent, game, each, seat, limit_s, codec)
            for (place, one), (_, other) in zip(first, again, strict=True):
                assert one == other, f"{place}: declared deterministic, decided {one} and then {other}"


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


def _decide_all(
    seated: SeatAgent | Callable[..., Agent],
    game: AnyGame,
    each: Walk,
    seat: Seat,
    limit_s: float,
    codec: ActionCodec,
) -> list[tuple[str, str]]:
    """Asks one agent at every decision of its seat; gives places and actions as canonical JSON."""
    agent = _made(seated, game, each, seat)
    actions = []
    for position in each.positions:
        for decision in position.decisions:
            if decision.seat == seat:
                place = f"{position.place}, seat {seat}"
                reply = _reply(agent, game, position, decision, limit_s, place)
                actions.append((place, _judged(game, position, seat, reply, codec, place)))
    return actions


def _made(seated: SeatAgent | Callable[..., Agent], game: AnyGame, each: Walk, seat: Seat) -> Agent:
    if isinstance(seated, Scripted):
        return _Baseline(seated.name, game, each)
    try:
        return seat_agent(seated, game, seat, agent_stream(each.seed, seat))
    except Exception as error:
        what = f"expected an agent, got {type(error).__name__}: {error}"
        raise AssertionError(f"seed {each.seed}, phase 0, seat {seat}: {what}") from error


def _reply(
    agent: Agent,
    game: AnyGame,
    position: Position,
    decision: Decision[object],
    limit_s: float,
    place: str,
) -> Reply:
    """Asks the agent once, in the time that it has."""
    observation = game.observe(position.state, decision.seat)
    assert str(SECRET_SEED) not in repr(snapshot(observation)), f"{place}: the observation tells the seed"
    timer = ThinkTimer(MonotonicClock(), limit_s)
    try:
        reply = agent.decide(Request(observation, decision, timer, None, limit_s))
        if inspect.isawaitable(reply):
            reply = asyncio.run(_wait(reply))
    except Exception as error:
        raise AssertionError(f"{place}: expected a Reply, got {type(error).__name__}: {error}") from error
    think_s = timer.think_s
    assert isinstance(reply, Reply), f"{place}: expected a Reply, got {type(reply).__name__}"
    assert think_s <= limit_s, (
        f"{place}: expected a reply within {limit_s:g} s, got one after {think_s:.3g} s"
    )
    return reply


def _judged(
    game: AnyGame, position: Position, seat: Seat, reply: Reply, codec: ActionCodec, place: str
) -> str:
    """Reads a reply as the episode loop does, and gives its action as canonical JSON."""
    action = reply.action
    if action is None:
        assert reply.payload is not None, f"{place}: expected an action or a payload, got neither"
        try:
            action = game.parse_reply(position.state, seat, reply.payload)
        except ActionError as error:
            raise AssertionError(f"{place}: {reply.payload!r} cannot be read: {error.hint}") from error
    try:
        read, text = codec.canonical(action)
    except Exception as error:
        what = f"expected an action of {game.spec.name}, got {action!r}"
        raise AssertionError(f"{place}: {what} ({type(error).__name__}: {error})") from error
    reason = game.why_illegal(position.state, seat, read)
    assert reason is None, f"{place}: expected a legal action, got {text} ({reason})"
    return text


async def _wait(reply: Awaitable[Reply]) -> Reply:
    return await reply
