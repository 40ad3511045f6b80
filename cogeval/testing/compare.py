"""Deep comparison of a recorded JSON value with the one that our rules give.

Invariant: nothing in the record goes unseen: a field that is missing, unknown or of another type is a
difference just as a wrong value is. Must not know any game; `Text` marks what is compared by presence,
`Worded` what is compared by meaning, `Given` what the replay was fed with.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import msgspec

from cogeval.core.game import Json

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes that lead to a value: ("steps", 3, "after", "coin", 2)."""

ABSENT: Final = "nothing"
"""How a difference shows a side on which there is no such field or item."""

_SHOWN_CHARS: Final = 160

# What a JSON reader lets through and a strict writer refuses: half surrogates, integers beyond 64 bits.
_NOT_ENCODABLE: Final = (TypeError, ValueError, OverflowError, msgspec.MsgspecError)


class Text(msgspec.Struct, frozen=True):
    """Stands for any text that is not empty: compared by presence only."""

    example: str  # what a writer of traces puts there


class Worded(msgspec.Struct, frozen=True):
    """Stands for any text that says the same: our own words for it, or others that agree."""

    example: str  # our words
    agrees: Callable[[str], bool]  # whether another text says the same


class Given(msgspec.Struct, frozen=True):
    """An input of the replay, equal by construction unless a part of it was not read; not counted."""

    value: Json


def plain(value: Json) -> Json:
    """The JSON value itself, without marks."""
    if isinstance(value, Given):
        return value.value
    if isinstance(value, Text | Worded):
        return value.example
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


class Difference(msgspec.Struct, frozen=True):
    """One place where a record and our rules disagree."""

    path: Path
    expected: str  # the recorded value, as JSON
    got: str  # ours, as JSON

    @property
    def field(self) -> str:
        """The place inside the record, for people: ``steps[3].after.coin[2]``."""
        return show_path(self.path)


def show_path(path: Path) -> str:
    """Renders a path the way one would write it in Python: ``steps[3].after.coin[2]``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the record"


def show(value: object) -> str:
    """Renders a value as JSON, cut to a readable length."""
    if isinstance(value, Text):
        return "some text"
    value = plain(value)
    try:
        text = msgspec.json.encode(value).decode()
    except _NOT_ENCODABLE:
        text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."


def compare(recorded: Json, ours: Json, counts: Counter[str], path: Path = ()) -> Iterator[Difference]:
    """Gives every difference between a recorded value and ours, in the record's order.

    Args:
        recorded: JSON from the file.
        ours: the same built by our rules; may hold `Text` and `Given`.
        counts: gains one per compared field, under its name without indexes ("steps.after.coin").
        path: where both values lie.
    """
    if isinstance(ours, Given):
        if recorded is not ours.value:
            yield from _compare_values(recorded, ours.value, path)
        return
    if isinstance(ours, dict) and isinstance(recorded, dict):
        yield from _compare_objects(recorded, ours, counts, path)
    elif isinstance(ours, list) and isinstance(recorded, list) and _nested(recorded, ours):
        if not recorded and not ours:
            counts[_kind(path)] += 1
        for i in range(max(len(recorded), len(ours))):
            if i >= len(recorded) or i >= len(ours):
                counts[_kind(path)] += 1
                yield Difference((*path, i), _side(recorded, i), _side(ours, i))
            else:
                yield from compare(recorded[i], ours[i], counts, (*path, i))
    else:
        counts[_kind(path)] += 1
        yield from _compare_values(recorded, ours, path)


def _nested(recorded: list[Json], ours: list[Json]) -> bool:
    """True for lists that hold objects: their fields are compared and counted one by one."""
    return any(_is_object(item) for side in (recorded, ours) for item in side)


def _is_object(item: Json) -> bool:
    """True for an object, or a list of objects."""
    return isinstance(item, dict) or (isinstance(item, list) and bool(item) and isinstance(item[0], dict))


def _compare_objects(
    recorded: dict[str, Json], ours: dict[str, Json], counts: Counter[str], path: Path
) -> Iterator[Difference]:
    for key, value in recorded.items():
        if key in ours:
            yield from compare(value, ours[key], counts, (*path, key))
        else:
            counts[_kind((*path, key))] += 1
            yield Difference((*path, key), show(value), f"{ABSENT} (an unknown field)")
    for key, value in ours.items():
        if key not in recorded:
            counts[_kind((*path, key))] += 1
            yield Difference((*path, key), f"{ABSENT} (a missing field)", show(value))


def _compare_values(recorded: Json, ours: Json, path: Path) -> Iterator[Difference]:
    """Compares values without named fields inside; lists down to the items that differ."""
    if isinstance(ours, Given):
        ours = ours.value
    if _same(recorded, ours):
        return
    if isinstance(recorded, list) and isinstance(ours, list):
        for i in range(max(len(recorded), len(ours))):
            if i >= len(recorded) or i >= len(ours):
                yield Difference((*path, i), _side(recorded, i), _side(ours, i))
            else:
                yield from _compare_values(recorded[i], ours[i], (*path, i))
        return
    yield Difference(path, show(recorded), show(ours))


def _same(recorded: Json, ours: Json) -> bool:
    if isinstance(ours, Text):
        return isinstance(recorded, str) and bool(recorded)
    if isinstance(ours, Worded):
        return isinstance(recorded, str) and (recorded == ours.example or ours.agrees(recorded))
    if isinstance(ours, list):
        try:  # the usual case, and in C: equal JSON, in which true is not 1
            return msgspec.json.encode(recorded) == msgspec.json.encode(ours)
        except _NOT_ENCODABLE:
            return False
    if isinstance(ours, float) and isinstance(recorded, int | float) and not isinstance(recorded, bool):
        return math.isclose(recorded, ours, rel_tol=1e-12, abs_tol=1e-12)
    return type(recorded) is type(ours) and bool(recorded == ours)


def _side(items: list[Json], i: int) -> str:
    return show(items[i]) if i < len(items) else ABSENT


def _kind(path: Path) -> str:
    """The names that lead to a field; names that are numbers are indexes too."""
    return ".".join(part for part in path if isinstance(part, str) and not part.isdecimal()) or "(value)"
