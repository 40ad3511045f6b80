"""The agent that answers from a journal: what a seat said once, said again without asking anybody.

Invariant: it calls nothing and draws nothing; what it answers is what was recorded, faults included. A
reply whose text is there is read from it again as the live seat read it, and whether it is legal is for
the rules of now to say. Knows no store: it is given attempts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import msgspec

from cogeval.agents.llm.reading import first_object
from cogeval.agents.process.reading import json_object, read_answer
from cogeval.core.agent import Reply, Request, Seated
from cogeval.core.game import AnyGame, Seat
from cogeval.core.record import Attempt
from cogeval.core.rng import Stream
from cogeval.core.seat import REPLY_CHARS
from cogeval.errors import RecordedFaultError

_SILENT: Final = ("timeout", "exception")  # faults that leave no reply, only how long it took
_UNDECODED: Final = "\ufffd"  # stands where a program wrote what is no UTF-8


class Reader(Protocol):
    """Reads a reply's text again as the live seat did."""

    def can_read(self, said: Attempt) -> bool:
        """True when the recorded text is what the live seat read."""

    def read(self, said: Attempt, text: str) -> Reply:
        """The reply that the text says; raises what the live agent raised."""


class ModelText(msgspec.Struct, frozen=True):
    """Reads what a model wrote: the first JSON object in it, for the game to read."""

    def can_read(self, said: Attempt) -> bool:  # noqa: ARG002 - the object lies in what is always kept
        """True: of a long text only the beginning is read, and that is kept."""
        return True

    def read(self, said: Attempt, text: str) -> Reply:
        """As declared; what the provider said beside the text is as recorded."""
        return _beside(said, Reply(payload=first_object(text)))


class ProgramLine(msgspec.Struct, frozen=True):
    """Reads the line that a program wrote."""

    game: AnyGame

    def can_read(self, said: Attempt) -> bool:
        """False for a line that was cut, and for one that may have been no UTF-8."""
        text = said.text or ""
        return len(text) < REPLY_CHARS and not (said.fault == "unreadable" and _UNDECODED in text)

    def read(self, said: Attempt, text: str) -> Reply:
        """As declared; usage, model and finish reason are in the line."""
        message = json_object(text.encode("utf-8", "surrogatepass")) or {}
        reply = read_answer(self.game, message, text)
        return msgspec.structs.replace(reply, queue_s=said.queue_s, think_s=said.think_s)


def readers(agents: Iterable[Mapping[str, str]], game: AnyGame) -> dict[str, Reader]:
    """By name, how the replies of a run's agents are read again.

    Args:
        agents: name and kind of each, as the manifest describes them.
        game: that they played.

    Returns:
        Readers of models and programs. A Python agent may put any text beside its action: it has none.
    """
    kinds: dict[str, Reader] = {"llm": ModelText(), "process": ProgramLine(game)}
    return {agent["name"]: kinds[agent["kind"]] for agent in agents if agent["kind"] in kinds}


def is_taken_on_trust(said: Attempt, reader: Reader | None) -> bool:
    """True for a reply that could not be read and cannot be read again: the recorded fault stands.

    Args:
        said: an attempt of the seat's own agent.
        reader: of its replies; None: there is none.
    """
    if said.fault != "unreadable":
        return False
    if reader is None:
        return True
    if said.text is None:  # a malformed reply is dropped whole, and never its text alone
        return said.usage is None and said.model is None and said.finish_reason is None
    return not reader.can_read(said)


class RecordedAgent:
    """Answers one request after the other with what was recorded.

    Args:
        attempts: of the seat's own agent, in order; fallbacks are none.
        reader: reads the text of its replies again; None: the recorded actions are its replies.
    """

    __slots__ = ("_left", "_reader")

    def __init__(self, attempts: Iterable[Attempt], reader: Reader | None = None) -> None:
        self._left = iter(attempts)
        self._reader = reader

    def decide(self, request: Request) -> Reply:
        """Gives the next recorded reply, or raises the next recorded fault.

        Raises:
            RecordedFaultError: that is what was recorded; or nothing was, for this decision.
        """
        said, reader = next(self._left, None), self._reader
        if said is None:
            raise RecordedFaultError("exception", "expected another recorded reply, the journal has none")
        if said.kind != request.decision.kind:
            asked = f"expected a recorded decision of kind {request.decision.kind}, got {said.kind}"
            raise RecordedFaultError("exception", asked)
        if said.fault in _SILENT or is_taken_on_trust(said, reader):
            raise RecordedFaultError(said.fault or "exception", said.detail)
        if said.fault not in (None, "illegal", "unreadable"):
            raise RecordedFaultError("exception", f"expected a recorded fault, got {said.fault!r}")
        if reader is None:  # an illegal action is judged anew, by the rules
            return _beside(said, Reply(said.action))
        if said.text is None:
            raise RecordedFaultError("exception", "expected the text of a recorded reply, got none")
        return reader.read(said, said.text) if reader.can_read(said) else _beside(said, Reply(said.action))


def _beside(said: Attempt, reply: Reply) -> Reply:
    """The reply, with all that was recorded beside its action."""
    return Reply(
        reply.action,
        reply.payload,
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
    reader: Reader | None = None

    def __call__(self, seat: Seat, rng: Stream) -> RecordedAgent:  # noqa: ARG002 - the factory protocol
        """Makes the agent of one seat."""
        said = [a for a in self.attempts if a.seat == seat and a.source == "agent"]
        return RecordedAgent(said, self.reader)


def recorded_seat(name: str, attempts: tuple[Attempt, ...], reader: Reader | None = None) -> Seated:
    """Who sits where a recorded agent sat.

    Args:
        name: the agent's name in its pool.
        attempts: of the whole episode, in the order phase, seat, attempt.
        reader: reads the text of its replies again; None: the recorded actions are its replies.
    """
    return Seated(name, RecordedAgents(attempts, reader), deterministic=True)
