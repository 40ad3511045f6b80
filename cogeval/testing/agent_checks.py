"""The shared check of an agent: it sits in every seat of random episodes, on observations only.

Invariant: the agent gets what the episode loop would give it and nothing more. Must not know any agent
by name.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterable, Sequence

from cogeval.core.agent import Agent, Reply, Request, Scripted, SeatAgent
from cogeval.core.clock import MonotonicClock, ThinkTimer
from cogeval.core.game import AnyGame, Decision, Json, Seat
from cogeval.core.seat import agent_stream
from cogeval.errors import ActionError
from cogeval.testing.snapshot import snapshot
from cogeval.testing.walks import SECRET_SEED, Position, Walk, walk


def check_agent(
    agent: SeatAgent,
    game: AnyGame,
    seeds: Iterable[int] = (0, 1),
    *,
    deterministic: bool,
    limit_s: float = 10.0,
) -> None:
    """Runs the shared checks of an agent: legal, repeatable, ignorant of the seed, and quick.

    Args:
        agent: a factory that makes the agent for a seat and a stream, or a scripted baseline.
        game: that it plays.
        seeds: of the random episodes in which it is asked; one more is added.
        deterministic: what the agent declares; if so, two runs must agree.
        limit_s: think time allowed for one decision, in seconds.

    Raises:
        AssertionError: naming the place and what was wrong.
    """
    for each in [walk(game, seed) for seed in (*seeds, SECRET_SEED)]:
        for seat in range(game.seats):
            first = _decide_all(agent, game, each, seat, limit_s)
            if deterministic:
                again = _decide_all(agent, game, each, seat, limit_s)
                assert first == again, f"seed {each.seed}, seat {seat}: declared deterministic, decided twice"


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


def _decide_all(seated: SeatAgent, game: AnyGame, each: Walk, seat: Seat, limit_s: float) -> Sequence[Json]:
    """Asks one agent at every decision of its seat; gives its actions on the wire."""
    if isinstance(seated, Scripted):
        agent: Agent = _Baseline(seated.name, game, each)
    else:
        agent = seated(seat, agent_stream(each.seed, seat))
    return [
        _decide(agent, game, position, decision, limit_s)
        for position in each.positions
        for decision in position.decisions
        if decision.seat == seat
    ]


def _decide(
    agent: Agent, game: AnyGame, position: Position, decision: Decision[object], limit_s: float
) -> Json:
    place = f"{position.place}, seat {decision.seat}"
    timer = ThinkTimer(MonotonicClock(), limit_s)
    observation = game.observe(position.state, decision.seat)
    assert str(SECRET_SEED) not in repr(snapshot(observation)), f"{place}: the observation tells the seed"
    reply = agent.decide(Request(observation, decision, timer, None, limit_s))
    if inspect.isawaitable(reply):
        reply = asyncio.run(_wait(reply))
    think_s = timer.think_s
    assert isinstance(reply, Reply), f"{place}: expected a Reply, got {type(reply).__name__}"
    assert think_s <= limit_s, (
        f"{place}: expected a reply within {limit_s:g} s, got one after {think_s:.3g} s"
    )
    action = reply.action
    if action is None:
        assert reply.payload is not None, f"{place}: expected an action or a payload, got neither"
        try:
            action = game.parse_reply(position.state, decision.seat, reply.payload)
        except ActionError as error:
            raise AssertionError(f"{place}: {reply.payload!r} cannot be read: {error.hint}") from error
    reason = game.why_illegal(position.state, decision.seat, action)
    assert reason is None, f"{place}: expected a legal action, got {action} ({reason})"
    return game.action_to_wire(action)


async def _wait(reply: Awaitable[Reply]) -> Reply:
    return await reply
