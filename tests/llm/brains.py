"""What the server's models reply: sensible JSON for each game, from the prompt and the schema alone.

Invariant: the same request gives the same reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

_PREFERRED: Final = ("forage", "pass")  # Cogchemists: legal with empty fields
_BOARD_LINE: Final = re.compile(r"^\s*(\d+)?\s*\|(.+)\|\s*$", re.MULTILINE)


class Asked(Protocol):
    """The part of a request that a brain looks at."""

    @property
    def user(self) -> str: ...

    @property
    def schema(self) -> Mapping[str, Any] | None: ...


def sensible(ask: Asked) -> str:
    """A reply that the game can read, and nearly always a legal one."""
    text = ask.user
    if "BOARD" in text and "Which swap" in text:
        return json.dumps(_swap(text))
    if "YOUR LEGAL ACTIONS" in text:
        listed = text.rpartition("YOUR LEGAL ACTIONS")[2].splitlines()
        verb = next((verb for verb in _PREFERRED if verb in listed), "pass")
        reply = {"action": verb, "a": "", "b": "", "signature": "", "artifact": "", "say": "", "notes": ""}
        wanted = reply if ask.schema is None else ask.schema["properties"]
        return json.dumps({name: value for name, value in reply.items() if name in wanted})
    return json.dumps({"action": "I wait.", "say": "A fine morning.", "notes": "waiting"})


def _swap(text: str) -> dict[str, str]:
    """COGZ: the first tile of the hand, on a cell without a locked arc."""
    held = re.search(r"You hold ([A-Z]{2})", text)
    assert held is not None, f"expected a hand in the prompt, got {text[-500:]}"
    cells = dict(_cells(text))
    free = next((cell for cell, arcs in cells.items() if arcs == arcs.upper()), next(iter(cells)))
    return {"tile": held[1], "corner": "NE", "cell": free}


def _cells(text: str) -> Iterator[tuple[str, str]]:
    """Each cell and the letters of its two arcs; small ones are locked."""
    lines = _BOARD_LINE.findall(text.partition("BOARD")[2].partition("COLOURS")[0])
    for upper, lower in zip(lines[::2], lines[1::2], strict=True):
        for column, (above, below) in enumerate(zip(upper[1].split("|"), lower[1].split("|"), strict=True)):
            yield f"{chr(ord('A') + column)}{upper[0]}", above.strip() + below.strip()
