"""From an entry of a pool to an agent in seat actors.

Invariant: the class is imported by name where a replica lives. The object of a seat holds nothing: what a
seat is to remember travels with its requests.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from cogeval.agents.actor.client import SeatClient
from cogeval.agents.actor.local import LocalPool
from cogeval.agents.actor.options import ActorOptions, actor_options
from cogeval.agents.actor.replica import SeatReplica
from cogeval.agents.locating import locate
from cogeval.core.agent import Agent, AgentFactory, RemoteAgents, Reply, Request, Resources
from cogeval.core.game import AnyGame, Json, Seat
from cogeval.core.rng import Stream
from cogeval.errors import InputError

_PER_SEAT: Mapping[str, str] = {
    "seat": "request.decision.seat",
    "rng": "request.seed, which is drawn anew for each request,",
}


class ActorAgent(msgspec.Struct, frozen=True):
    """A factory of agents in seat actors."""

    name: str  # in the pool
    target: str  # package.module.Class
    parameters: Mapping[str, Json]
    game: AnyGame
    options: ActorOptions

    def replica(self) -> SeatReplica:
        """Makes the one object that serves all seats, in the event loop of the process that it is for."""
        return SeatReplica(self._made, self.game, self.options)

    def bind(self, resources: Resources) -> AgentFactory:
        """The same, with the seat actors of the cluster, or with a replica of this process's own."""
        if resources.remote is not None:
            return BoundActor(self.name, resources.remote)
        pool = LocalPool(self.replica)
        client = SeatClient(self.name, "here", pool, self.game, self.options)
        return BoundActor(self.name, _Here(client), pool, client)

    def __call__(self, seat: Seat, rng: Stream) -> Agent:
        """Makes the agent of one seat, with a replica of its own: who shares one binds first."""
        return self.bind(Resources())(seat, rng)

    def _made(self) -> Any:
        made: Callable[..., Any] = locate(self.target)
        given = {"game": self.game} if "game" in inspect.signature(made).parameters else {}
        return made(**given, **self.parameters)


class BoundActor(msgspec.Struct, frozen=True):
    """The factory, in a process that plays."""

    name: str
    remote: RemoteAgents
    pool: LocalPool | None = None  # of this process's own
    client: SeatClient | None = None  # of this process's own

    def __call__(self, seat: Seat, rng: Stream) -> Agent:  # noqa: ARG002 - what decides serves every seat
        """Makes the agent of one seat."""
        return ActorSeat(self.name, self.remote)

    async def release(self) -> None:
        """Puts away what this process has for itself alone."""
        if self.client is not None:
            await self.client.close()
        if self.pool is not None:
            await self.pool.close()


class ActorSeat(msgspec.Struct, frozen=True):
    """One seat, whose decisions are made in seat actors."""

    name: str
    remote: RemoteAgents

    async def decide(self, request: Request) -> Reply:
        """Lets a replica decide."""
        return await self.remote.ask(self.name, request)


class _Here(msgspec.Struct, frozen=True):
    """The remote agents of a process that has one, beside itself."""

    client: SeatClient

    async def ask(self, agent: str, request: Request) -> Reply:  # noqa: ARG002 - there is but one
        return await self.client.ask(request)


def acted(
    name: str,
    game: AnyGame,
    target: str,
    made: Callable[..., Any],
    parameters: Mapping[str, Json],
    settings: Mapping[str, Json],
) -> ActorAgent:
    """A Python agent that is to run in seat actors.

    Args:
        name: in the pool.
        game: that it will play.
        target: package.module.Class.
        made: the class.
        parameters: of its constructor.
        settings: of `actor`.

    Raises:
        InputError: for settings that there are not, or a class whose object would be of one seat.
    """
    options = actor_options(f"pool.agents.{name}.actor", settings)
    wanted = inspect.signature(made).parameters
    for key, instead in _PER_SEAT.items():
        if key in wanted:
            raise InputError(
                f"pool.agents.{name}: with placement actor one object serves every seat, and {target} asks "
                f"for {key!r} in its constructor; use {instead} and request.memory instead, or placement "
                "inline or process"
            )
    return ActorAgent(name, target, parameters, game, options)


def options_of(agent: object) -> ActorOptions | None:
    """The options of an agent in seat actors (`entry.seated.agent`); None: it is another agent."""
    return agent.options if isinstance(agent, ActorAgent) else None
