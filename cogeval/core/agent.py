"""What an agent is: something that decides for one seat of one episode, from observations only.

Invariant: an agent is born per seat and dies with it; it gets a stream of its own and never the
episode seed, which would reveal the world. Must not know states, other seats or stores.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from cogeval.core.clock import ThinkTimer
from cogeval.core.game import Decision, Seat
from cogeval.core.quota import UNLIMITED, Quota
from cogeval.core.rng import Stream


class Usage(msgspec.Struct, frozen=True, gc=False):
    """What one reply consumed."""

    tokens_in: int = 0  # prompt tokens, cached ones included
    tokens_out: int = 0
    tokens_cached: int = 0
    cost_usd: float = 0.0


class Request(msgspec.Struct, frozen=True, gc=False):
    """What an agent is asked."""

    observation: Any  # the game's observation type
    decision: Decision[Any]
    timer: ThinkTimer  # `with request.timer.queued():` around waits that are not thinking
    hint: str | None = None  # after an unreadable or illegal reply: what was wrong with it
    budget_s: float | None = None  # think time allowed; None: unlimited
    memory: bytes = b""  # of the seat's last accepted reply that gave one
    seed: int | None = None  # a 64-bit draw of the seat's own; None: nobody drew one


class Reply(msgspec.Struct, frozen=True, gc=False):
    """What an agent answers: an action of the game, or a reply object for the game to read."""

    action: Any = None  # the game's action type
    payload: Mapping[str, object] | None = None  # read by `Game.parse_reply` when action is None
    usage: Usage | None = None
    queue_s: float = 0.0  # waited before thinking began, beyond what the timer saw
    think_s: float | None = None  # measured on the host that ran the seat; None: the timer's
    text: str | None = None  # the reply as it was received
    model: str | None = None  # as the provider returned it
    finish_reason: str | None = None
    memory: bytes | None = None  # 64 KB at most, for the next request once this is accepted; None: as it was


class Price(msgspec.Struct, frozen=True):
    """What a model costs, in dollars a million tokens."""

    input: float
    output: float
    cached_input: float | None = None  # None: as other input


class RemoteAgents(Protocol):
    """Agents that decide in seat actors."""

    async def ask(self, agent: str, request: Request) -> Reply:
        """Lets one decision be made; a wait for a free actor is no thinking of the request's timer.

        Args:
            agent: its name in the pool.
            request: as for an agent beside the episode.

        Raises:
            RecordedFaultError: the agent failed.
            HostError: there is nobody who could decide.
        """


class Resources(msgspec.Struct, frozen=True):
    """What a process that plays episodes shares among its agents."""

    quota: Quota = UNLIMITED
    prices: Mapping[str, Price] = MappingProxyType({})  # model, as a pool names it -> price
    remote: RemoteAgents | None = None  # None: agents with the placement actor live in this process


class Agent(Protocol):
    """Decides for one seat of one episode.

    An agent may have `async def close(self, outcome: SeatResult | None) -> None`: it is called once when the
    episode is over, with the seat's outcome, or None when there is none.

    One that runs in a process of its own may have `async def fault_stderr(self) -> str`: it is called after a
    fault of a decision that was not taken at once, and gives what that process has written to stderr.
    """

    def decide(self, request: Request) -> Reply | Awaitable[Reply]:
        """Answers one request; an exception is a fault of the seat."""


class AgentFactory(Protocol):
    """Makes an agent for a seat; bound to its game and parameters by the composition root."""

    def __call__(self, seat: Seat, rng: Stream) -> Agent:
        """Makes the agent of one seat of one episode."""


@runtime_checkable
class Bindable(Protocol):
    """A factory of agents that use what a process shares."""

    def bind(self, resources: Resources) -> AgentFactory:
        """The same factory, with the resources; called once in each process, in its event loop.

        It may have `async def release(self) -> None`, called once when the process plays no more.
        """


class Scripted(msgspec.Struct, frozen=True):
    """A seat that the game's own baseline decides (privileged: it reads the state)."""

    name: str


SeatAgent: TypeAlias = AgentFactory | Scripted


class Seated(msgspec.Struct, frozen=True):
    """Who sits in a seat, and what the episode loop must know of them."""

    name: str  # the agent's name in its pool
    agent: SeatAgent
    deterministic: bool  # same requests, same replies: timed, never timed out
    is_model: bool = False  # calls a model: `min_batch_spacing_s` applies


def bound(seated: Seated, resources: Resources) -> Seated:
    """Who sits there, with what this process shares."""
    if isinstance(seated.agent, Bindable):
        return msgspec.structs.replace(seated, agent=seated.agent.bind(resources))
    return seated


async def released(factory: object) -> None:
    """Lets a bound factory put away what it holds in this process; what it does about it hurts nobody."""
    release = getattr(factory, "release", None)
    if release is not None:
        with contextlib.suppress(Exception):
            await release()
