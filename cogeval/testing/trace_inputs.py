"""Takes the inputs of a replay out of a recorded JSON value, or says which one is unusable.

Invariant: nothing is guessed; a missing or ill-typed input ends the replay of its record with its place.
"""

from __future__ import annotations

from typing import TypeVar

from cogeval.core.game import Json
from cogeval.testing.compare import ABSENT, Path, show

T = TypeVar("T", int, str, bool, list[Json], dict[str, Json])


class BadInput(Exception):  # noqa: N818 - it is the input that is bad, not the program
    """A record lacks an input, or it is of the wrong type.

    Args:
        path: where it should be.
        expected: what was looked for.
        got: what is there, as JSON.
    """

    def __init__(self, path: Path, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.path = path
        self.expected = expected
        self.got = got


def take(record: Json, path: Path, kind: type[T]) -> T:
    """Gives the value at a path.

    Args:
        record: the recorded JSON value.
        path: keys and indexes from the record down.
        kind: the type that it must have; bool is not int.

    Raises:
        BadInput: when it is not there or of another type.
    """
    value = record
    for depth, part in enumerate(path):
        inside = isinstance(value, dict if isinstance(part, str) else list)
        try:
            value = value[part] if inside else None
        except (KeyError, IndexError):
            inside = False
        if not inside:
            raise BadInput(path[: depth + 1], _NAMES[kind], ABSENT)
    if type(value) is not kind:
        raise BadInput(path, _NAMES[kind], show(value))
    return value


_NAMES = {int: "an integer", str: "a text", bool: "true or false", list: "a list", dict: "an object"}
