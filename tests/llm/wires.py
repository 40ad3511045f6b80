"""A reply in the words of the two wire formats.

Invariant: what is counted are characters, by four to a token; the system text counts as cached.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final, Protocol

CHARS_PER_TOKEN: Final = 4


class Asked(Protocol):
    """The part of a request that its reply depends on."""

    @property
    def model(self) -> str: ...

    @property
    def system(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def tool(self) -> str | None: ...


def _tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def anthropic_message(ask: Asked, text: str, *, is_truncated: bool, is_refusal: bool) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": text}
    reason = "max_tokens" if is_truncated else "refusal" if is_refusal else "end_turn"
    if ask.tool and reason == "end_turn":
        block, reason = (
            {"type": "tool_use", "id": "toolu_1", "name": ask.tool, "input": _object(text)},
            "tool_use",
        )
    cached = _tokens(ask.system)
    return {
        "id": "msg_test",
        "type": "message",
        "role": "assistant",
        "model": f"{ask.model}-20260101",
        "content": [block] if text else [],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": _tokens(ask.user),  # what was not in the cache
            "output_tokens": _tokens(text),
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
        },
    }


def openai_completion(ask: Asked, text: str, *, is_truncated: bool, is_refusal: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    reason = "length" if is_truncated else "stop"
    if is_refusal:
        message |= {"content": None, "refusal": text}
    elif ask.tool and reason == "stop":
        call = {"id": "call_1", "type": "function", "function": {"name": ask.tool, "arguments": text}}
        message |= {"content": None, "tool_calls": [call]}
        reason = "tool_calls"
    cached, fresh, out = _tokens(ask.system), _tokens(ask.user), _tokens(text)
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": f"{ask.model}-20260101",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": cached + fresh,
            "completion_tokens": out,
            "total_tokens": cached + fresh + out,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def _object(text: str) -> Any:
    """The input of a tool: an object, whatever the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return {"text": text}
    return value if isinstance(value, dict) else {"value": value}
