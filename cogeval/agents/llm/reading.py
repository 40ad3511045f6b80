"""The first JSON object in a text that a model wrote.

Invariant: reading takes time linear in the text, evaluates nothing and never raises; what is cut off is
no object, and neither is a piece of it.
"""

from __future__ import annotations

import json
from typing import Final, NoReturn

_MOST_CHARS: Final = 200_000  # of a text that are looked at: no action is nearly as long
_MOST_STARTS: Final = 1_000  # of braces that are tried; saying what is wrong takes time linear in the text
_THOUGHT: Final = "</think>"  # reasoning models of open weights put their thoughts in front, in tags


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"expected JSON, got {constant}")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def first_object(text: str) -> dict[str, object] | None:
    """The first JSON object in a text: alone, fenced, or in the middle of prose.

    Args:
        text: as the model wrote it; thoughts that end with ``</think>`` are passed over.

    Returns:
        The object; None when there is none, or when it is cut off.
    """
    text = text[:_MOST_CHARS].rstrip()
    start = text.find("{", max(0, text.rfind(_THOUGHT)))
    for _ in range(_MOST_STARTS):
        if start < 0:
            break
        try:
            value, _ = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
                return None
            # Nothing before the error opens an object of its own: it would be a piece of the broken one.
            start = text.find("{", max(error.pos, start + 1))
        except (ValueError, RecursionError):  # NaN, a number of thousands of digits, thousands of brackets
            return None
        else:
            return value if isinstance(value, dict) else None
    return None
