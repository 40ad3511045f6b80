"""What may be wrong with a reply before its action is looked at, and errors of agents in words.

Invariant: pure functions that never raise, whatever an agent has put into a reply or an error.
"""

from __future__ import annotations

import math

import msgspec

from cogeval.core.agent import Reply, Usage

DETAIL_CHARS = 500  # of a fault's description that are kept
MEMORY_BYTES = 65_536  # of a reply's memory
_MOST_TOKENS = 1 << 40  # of one reply; what claims more is mistaken, and sums stay exact
_MOST_USD = 1e6


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
        and reply.memory is None
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
    if reply.memory is not None:
        if type(reply.memory) is not bytes:
            return f"expected memory in bytes, got {type(reply.memory).__name__}"
        if len(reply.memory) > MEMORY_BYTES:
            return f"expected at most {MEMORY_BYTES:,} bytes of memory, got {len(reply.memory):,}"
    return None if reply.usage is None else _wrong_usage(reply.usage)


def _wrong_usage(usage: object) -> str | None:
    """What is wrong with a usage, which an agent may have made of anything."""
    if not isinstance(usage, Usage | dict):
        return f"expected a Usage, got {type(usage).__name__}"
    try:
        told = msgspec.convert(msgspec.to_builtins(usage), Usage)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:  # msgspec's are ValueErrors
        return f"expected a Usage, got one with {describe(error)}"
    if isinstance(usage, dict):
        return "expected a Usage, got dict"
    for name in ("tokens_in", "tokens_out", "tokens_cached"):
        if not 0 <= getattr(told, name) < _MOST_TOKENS:
            got = _number(getattr(told, name))
            return f"expected usage.{name} from 0 to less than {_MOST_TOKENS:,}, got {got}"
    if not 0 <= told.cost_usd < _MOST_USD:
        return f"expected usage.cost_usd from 0 to less than {_MOST_USD:,.0f}, got {_number(told.cost_usd)}"
    return None


def _number(value: float) -> str:
    """A number for people; an integer may be longer than can be printed."""
    try:
        return f"{value:g}"
    except OverflowError:
        return "far more" if value > 0 else "far less"


def too_late(limit_s: float, *, with_waits: bool = False) -> str:
    """What a timeout says.

    Args:
        limit_s: seconds that were allowed.
        with_waits: waits that are not thinking counted too.
    """
    return f"no reply within {limit_s:g} s{', waits included' if with_waits else ' of thinking'}"
