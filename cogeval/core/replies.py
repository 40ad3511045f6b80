"""What may be wrong with a reply before its action is looked at, and errors of agents in words.

Invariant: pure functions that never raise, whatever an agent has put into a reply or an error.
"""

from __future__ import annotations

import math

import msgspec

from cogeval.core.agent import Reply, Usage

DETAIL_CHARS = 500  # of a fault's description that are kept


def describe(error: BaseException) -> str:
    """The error for people; its own words may fail too."""
    try:
        return f"{type(error).__name__}: {error}"[:DETAIL_CHARS]
    except BaseException:  # noqa: BLE001 - an agent's failure costs its own seat only
        return type(error).__name__


def malformed(reply: Reply) -> str | None:
    """What is wrong with the fields of a reply that are not its action; None: nothing."""
    if (
        reply.usage is None
        and reply.text is None
        and reply.model is None
        and reply.finish_reason is None
        and reply.think_s is None
        and type(reply.queue_s) is float
        and reply.queue_s == 0.0
    ):
        return None  # an action alone: what scripted agents say a million times
    for name, seconds in (
        ("think_s", 0.0 if reply.think_s is None else reply.think_s),
        ("queue_s", reply.queue_s),
    ):
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            return f"expected {name} in seconds, got {type(seconds).__name__}"
    texts: tuple[object, ...] = (reply.text, reply.model, reply.finish_reason)
    for text in texts:
        if text is not None and not isinstance(text, str):
            return f"expected text beside the action, got {type(text).__name__}"
    usage: object = reply.usage
    if usage is None:
        return None
    if not isinstance(usage, Usage):
        return f"expected a Usage, got {type(usage).__name__}"
    try:
        msgspec.convert(msgspec.to_builtins(usage), Usage)
    except (TypeError, ValueError) as error:  # msgspec's errors are ValueErrors
        return f"expected a Usage, got one with {describe(error)}"
    return None
