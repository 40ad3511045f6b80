"""What an episode's process and a seat actor tell each other.

Invariant: what comes from an actor is built of numbers, texts and bytes: an action and a payload travel
as JSON and msgpack, so that no object of an agent is ever unpickled beside the episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from cogeval.core.agent import Usage
from cogeval.core.game import Decision


class ReplicaLostError(Exception):
    """The process of a replica is gone."""


class Question(msgspec.Struct, frozen=True, gc=False):
    """One decision to make."""

    id: int  # unique among all that its client ever asks
    observation: Any  # the game's observation type
    decision: Decision[Any]
    hint: str | None = None
    budget_s: float | None = None  # think time allowed; None: unlimited
    memory: bytes = b""
    seed: int | None = None
    alone: bool = False  # nothing else may run beside it, and it begins when its client has heard so


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What became of one decision: the fields of a `Reply`, or a failure of the agent."""

    id: int
    action: bytes | None = None  # canonical JSON
    payload: bytes | None = None  # msgpack
    usage: Usage | None = None
    queue_s: float = 0.0
    think_s: float = 0.0  # from the moment the agent got the request
    text: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    memory: bytes | None = None
    fault: str | None = None  # a kind of fault; the decision failed
    detail: str | None = None
    is_unmade: bool = False  # there was no agent to ask


class News(msgspec.Struct, frozen=True, gc=False):
    """What happened in a replica to the decisions of one client since it last asked."""

    begun: tuple[int, ...] = ()  # the agent thinks about these now
    waiting: tuple[int, ...] = ()  # and about these no more, they are queued again
    answers: tuple[Answer, ...] = ()  # each decision is answered once


class Replica(Protocol):
    """A replica as a client sees it; every call raises `ReplicaLostError` when its process is gone."""

    async def submit(self, client: str, questions: tuple[Question, ...]) -> None:
        """Takes questions; returns at once."""

    async def collect(self, client: str, wait_s: float) -> News:
        """Waits up to `wait_s` for news of the client's questions; one such call at a time."""

    async def thinking(self, client: str, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Gives at once those of a client's questions that the agent has and has not answered."""

    async def keeping(self, client: str) -> tuple[int, ...] | None:
        """Gives those of a client's questions that keep the replica's event loop now; asked beside that loop.

        Empty: it is another client's that does; None: no question that is known to.
        """

    async def cancel(self, client: str, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Drops questions; gives those that an agent's thread holds and that only its death would end."""


class Pool(Protocol):
    """The replicas of one agent, as a client sees them."""

    async def replicas(self, known: int) -> tuple[int, Mapping[str, Replica]]:
        """Waits for another version of the list than `known` (-1 at first); may give the same after a while.

        An error means that there will be no replicas any more.
        """

    async def lost(self, replica_id: str) -> bool:
        """Tells that a replica did not answer because its process is gone.

        Returns:
            True when another client had it ended and knows for which decision: nobody else's is suspected.
        """

    async def hung(self, replica_id: str, is_known: bool) -> None:
        """Asks for the end of a replica that holds a decision past its time; returns when it is dead.

        Args:
            replica_id: its id in the list.
            is_known: which decision that is, is known.
        """


_PACKER = msgspec.msgpack.Encoder()
_NEWS = msgspec.msgpack.Decoder(News)


def packed(news: News) -> bytes:
    """News as bytes, for the way out of a replica's process."""
    return _PACKER.encode(news)


def unpacked(data: bytes) -> News:
    """News from their bytes."""
    return _NEWS.decode(data)
