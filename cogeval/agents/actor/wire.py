"""A reply as it travels: judged where the agent is, read again where the episode is.

Invariant: what is wrong with a reply is said here in the words of a seat that plays beside its episode,
and a reply that cannot travel is its own decision's fault. Reading runs nothing of the agent's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cogeval.agents.actor.messages import Answer
from cogeval.core.agent import Reply, Usage
from cogeval.core.clock import ThinkTimer
from cogeval.core.game import AnyGame
from cogeval.core.record import ActionCodec
from cogeval.core.replies import DETAIL_CHARS, describe, malformed
from cogeval.errors import RecordedFaultError, UnmadeError

_MOST_BYTES: Final = 1_000_000  # of an action or a payload
_TEXT_CHARS: Final = 1_000_000  # of a reply's text; a seat keeps no more
_NAME_CHARS: Final = 200
_REMEMBERED: Final = 16_384  # distinct actions that a reader remembers

_payload = msgspec.msgpack.Encoder()


def failed(number: int, error: BaseException, timer: ThinkTimer | None = None) -> Answer:
    """The answer of a decision whose agent raised."""
    fault, detail = "exception", describe(error)
    if isinstance(error, RecordedFaultError):
        fault, detail = error.fault, error.detail or error.fault
    return _fault(number, fault, detail, timer)


def answered(number: int, reply: object, codec: ActionCodec, timer: ThinkTimer | None) -> Answer:
    """The answer of a decision to which the agent gave this."""
    if not isinstance(reply, Reply):
        return _fault(number, "unreadable", f"expected a Reply, got {type(reply).__name__}", timer)
    if wrong := malformed(reply):
        return _fault(number, "unreadable", wrong, timer)
    action = payload = None
    try:
        if reply.action is not None:
            action = codec.canonical(reply.action)[1].encode()
        elif isinstance(reply.payload, Mapping):
            payload = _payload.encode(dict(reply.payload))
    except BaseException as error:  # noqa: BLE001 - an ill-typed reply may break its reader in any way
        what = f"{type(reply.action).__name__}" if reply.action is not None else "a payload"
        return _fault(number, "unreadable", f"expected an action, got {what}: {describe(error)}", timer)
    if (size := len(action or payload or b"")) > _MOST_BYTES:
        return _fault(number, "unreadable", f"expected at most {_MOST_BYTES:,} bytes, got {size:,}", timer)
    queue_s, think_s = _spent(timer)
    return Answer(
        number,
        action,
        payload,
        _usage(reply.usage),
        queue_s + float(reply.queue_s),
        think_s if reply.think_s is None else float(reply.think_s),
        _plain(reply.text, _TEXT_CHARS),
        _plain(reply.model, _NAME_CHARS),
        _plain(reply.finish_reason, _NAME_CHARS),
        reply.memory,
    )


class NoAgentError(RecordedFaultError, UnmadeError):
    """The replica has no agent, which could not be made."""


class AnswerReader:
    """Reads answers of one game's agents.

    Args:
        game: that is played.
    """

    def __init__(self, game: AnyGame) -> None:
        self._game = game
        self._known: dict[bytes, Any] = {}

    def reply(self, answer: Answer) -> Reply:
        """The reply that an answer holds.

        Raises:
            RecordedFaultError: it holds a failure.
        """
        if answer.fault is not None:
            kind = NoAgentError if answer.is_unmade else RecordedFaultError
            raise kind(answer.fault, answer.detail)
        return Reply(
            None if answer.action is None else self._action(answer.action),
            None if answer.payload is None else msgspec.msgpack.decode(answer.payload),
            answer.usage,
            answer.queue_s,
            answer.think_s,
            answer.text,
            answer.model,
            answer.finish_reason,
            answer.memory,
        )

    def _action(self, text: bytes) -> Any:
        action = self._known.get(text)
        if action is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            action = self._known[text] = self._game.action_from_wire(json.loads(text))
        return action


def _fault(number: int, fault: str, detail: str, timer: ThinkTimer | None) -> Answer:
    queue_s, think_s = _spent(timer)
    return Answer(number, queue_s=queue_s, think_s=think_s, fault=fault, detail=detail[:DETAIL_CHARS])


def _spent(timer: ThinkTimer | None) -> tuple[float, float]:
    """Seconds waited and thought; None: it never came to the agent."""
    return (0.0, 0.0) if timer is None else (timer.queue_s, timer.think_s)


def _plain(text: str | None, most: int) -> str | None:
    """A text cut to what is kept, of no class of the agent's, and one that can be encoded."""
    if text is None:
        return None
    return str.__str__(text)[:most].encode("utf-8", "replace").decode()


def _usage(usage: Usage | None) -> Usage | None:
    return None if usage is None else msgspec.convert(msgspec.to_builtins(usage), Usage)
