"""The agent that answers from a journal: what a seat said once, said again without asking anybody.

Invariant: it calls nothing and draws nothing; what it answers is what was recorded, faults included,
and whether that is still legal is for the rules of now to say. Knows no store: it is given attempts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cogeval.core.agent import Reply, Request, Seated
from cogeval.core.game import Seat
from cogeval.core.record import Attempt
from cogeval.core.rng import Stream
from cogeval.errors import RecordedFaultError


class RecordedAgent:
    """Answers one request after the other with what was recorded.

    Args:
        attempts: of the seat's own agent, in order; fallbacks are none.
    """

    __slots__ = ("_left",)

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        self._left = iter(attempts)

    def decide(self, request: Request) -> Reply:
        """Gives the next recorded reply, or raises the next recorded fault.

        Raises:
            RecordedFaultError: that is what was recorded; or nothing was, for this decision.
        """
        said = next(self._left, None)
        if said is None:
            raise RecordedFaultError("exception", "expected another recorded reply, the journal has none")
        if said.kind != request.decision.kind:
            asked = f"expected a recorded decision of kind {request.decision.kind}, got {said.kind}"
            raise RecordedFaultError("exception", asked)
        if said.fault not in (None, "illegal"):  # an illegal action is judged anew, by the rules
            raise RecordedFaultError(said.fault or "exception", said.detail)
        return Reply(
            said.action,
            usage=said.usage,
            queue_s=said.queue_s,
            think_s=said.think_s,
            text=said.text,
            model=said.model,
            finish_reason=said.finish_reason,
        )


class RecordedAgents(msgspec.Struct, frozen=True):
    """A factory that answers for every seat of one episode with what was recorded."""

    attempts: tuple[Attempt, ...]  # of the whole episode, in the order phase, seat, attempt

    def __call__(self, seat: Seat, rng: Stream) -> RecordedAgent:  # noqa: ARG002 - the factory protocol
        """Makes the agent of one seat."""
        return RecordedAgent([a for a in self.attempts if a.seat == seat and a.source == "agent"])


def recorded_seat(name: str, attempts: tuple[Attempt, ...]) -> Seated:
    """Who sits where a recorded agent sat.

    Args:
        name: the agent's name in its pool.
        attempts: of the whole episode, in the order phase, seat, attempt.
    """
    return Seated(name, RecordedAgents(attempts), deterministic=True)
