"""What a program's line says: an action, a reply object for the game to read, a fault of its own, or nothing.

Invariant: a line that cannot be read becomes a reply that is its text alone, for the seat to judge. Knows
no process: a line from a journal is read as one that has just come.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cogeval.agents.process.child import ProcessError
from cogeval.core.agent import Reply, Usage
from cogeval.core.game import AnyGame

_MOST_DEEP: Final = 100  # levels of an answer that another process is told


def json_object(line: bytes) -> dict[str, Any] | None:
    """A line as a JSON object; None when it is none."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def retold(message: Mapping[str, Any]) -> msgspec.Raw | None:
    """What an answer said, for a process that takes over; None: nothing, or what it could not be told.

    It is encoded at once, so that no message that holds it can fail for it, and not deeper than a reader in
    any language can follow.
    """
    level: list[Any] = [said := {key: message[key] for key in ("action", "reply") if key in message}]
    for _ in range(_MOST_DEEP):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
    if level or message.get("type") != "action":
        return None
    try:
        return msgspec.Raw(msgspec.json.encode(said))
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def fault_of(message: Mapping[str, Any]) -> str:
    """What a message of type `fault` says, never nothing."""
    detail = message.get("detail")
    return (detail if isinstance(detail, str) else "").strip() or "it said fault, without a detail"


def read_answer(game: AnyGame, message: Mapping[str, Any], line_text: str | None) -> Reply:
    """Reads an answer to an observation.

    Args:
        game: whose actions these are.
        message: the line as an object; empty when it is none.
        line_text: the line, which is a program's reply as received; None: the message has the text.

    Raises:
        ProcessError: the agent says that it failed.
    """
    if message.get("type") == "fault":
        raise ProcessError(fault_of(message))
    if message.get("type") != "action":
        return Reply(text=line_text)
    said: dict[str, Any] = {key: message.get(key) for key in ("text", "model", "finish_reason")}
    if line_text is not None:
        said["text"] = line_text
    elif "memory" in message:  # of a Python agent
        said["memory"] = _memory(message["memory"])
    try:
        said["usage"] = _usage(message.get("usage"))
        if "action" in message:
            return Reply(game.action_from_wire(message["action"]), **said)
    except Exception:  # noqa: BLE001 - whatever the game's reader raises on what is no action
        return Reply(text=said["text"])
    payload = message.get("reply")
    return Reply(payload=payload if isinstance(payload, dict) else None, **said)


def _memory(told: object) -> object:
    """A memory; what is none stays as it is, for the seat to say why."""
    try:
        return base64.b64decode(told, validate=True) if isinstance(told, str) else told
    except ValueError:
        return told


def _usage(told: object) -> object:
    """A usage; what is none stays as it is, for the seat to say why."""
    try:
        return None if told is None else msgspec.convert(told, Usage)
    except (msgspec.ValidationError, RecursionError):
        return told
