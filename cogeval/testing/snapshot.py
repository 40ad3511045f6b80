"""Deep, comparable pictures of values: a proof that something was left as it was.

Invariant: two values have equal pictures exactly when everything reachable in them is equal, types
included. Must not know games; it sees slots, struct fields, containers and arrays only.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Mapping, Sequence, Set
from typing import TypeAlias

import msgspec
import numpy as np

Picture: TypeAlias = tuple[object, ...]


def snapshot(value: object) -> Picture:
    """Pictures a value; nothing in the picture is shared with what can change in the value.

    Args:
        value: any tree of structs, dataclasses, objects with slots or a dict, containers, arrays and
            scalars. Private caches (names that begin with an underscore) are left out.

    Raises:
        TypeError: on a generator, an open file or another value that has no comparable content.
    """
    name = type(value).__qualname__
    if isinstance(value, int):
        return (name, format(value, "x"))  # decimal digits have a limit, and bit sets are long
    if value is None or isinstance(value, float | complex | str | bytes | range):
        return (name, repr(value))
    if isinstance(value, np.ndarray | np.generic):
        return (name, str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, bytearray | memoryview):
        return (name, bytes(value))
    if isinstance(value, Mapping):
        return (name, *((snapshot(k), snapshot(v)) for k, v in value.items()))
    if isinstance(value, Set):
        return (name, *sorted((snapshot(item) for item in value), key=repr))
    if isinstance(value, type) or callable(value):
        return (name, getattr(value, "__qualname__", repr(value)))
    if isinstance(value, Sequence) and not _fields(value):
        return (name, *(snapshot(item) for item in value))
    fields = _fields(value)
    if not fields and not _is_plain(value):
        raise TypeError(f"expected a value with comparable content, got {name}")
    return (name, *((field, snapshot(getattr(value, field))) for field in fields))


def picture_hash(value: object) -> str:
    """Hashes a value's picture: 16 hexadecimal digits, the same in every process."""
    return hashlib.sha256(repr(snapshot(value)).encode()).hexdigest()[:16]


def _fields(value: object) -> list[str]:
    """The fields of a struct, dataclass or object, in a fixed order."""
    if isinstance(value, msgspec.Struct):
        names = list(value.__struct_fields__)
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    else:
        slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
        names = [*slots, *sorted(getattr(value, "__dict__", {}))]
    return [name for name in names if not name.startswith("_") and hasattr(value, name)]


def _is_plain(value: object) -> bool:
    """True for an object that simply has no public fields."""
    return not (inspect.isgenerator(value) or hasattr(value, "fileno"))
