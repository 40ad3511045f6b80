"""A validator for the part of JSON Schema that games use for replies.

Invariant: a keyword that it does not know is an error, never ignored. Source: JSON Schema 2020-12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from cogeval.core.game import Json

_TYPES: Final[Mapping[str, Callable[[Json], bool]]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
}

_REMARKS: Final = frozenset({"$schema", "title", "description", "default", "examples"})


def schema_errors(value: Json, schema: Mapping[str, Json] | bool, place: str = "reply") -> Iterator[str]:
    """Gives every way in which a value fails a schema; none when it is valid.

    Args:
        value: JSON.
        schema: with the keywords that `_RULES` holds.
        place: how messages call the value.

    Raises:
        ValueError: on a keyword that this validator does not know.
    """
    if isinstance(schema, bool):
        if not schema:
            yield f"{place}: expected nothing here, got {value!r}"
        return
    for keyword, argument in schema.items():
        if keyword in _REMARKS or keyword == "additionalProperties":  # the latter is read by `properties`
            continue
        if keyword not in _RULES:
            raise ValueError(f"expected a keyword among {', '.join(_RULES)}, got {keyword!r}")
        yield from _RULES[keyword](value, argument, schema, place)


def check_schema(schema: Mapping[str, Json]) -> None:
    """Checks that a schema is JSON and describes an object.

    Raises:
        AssertionError: when it does not.
    """
    text = json.dumps(schema, allow_nan=False)
    assert json.loads(text) == schema, f"expected a schema of JSON values, got {schema!r}"
    assert schema.get("type") == "object", f'expected "type": "object", got {schema.get("type")!r}'
    unknown = set(schema.get("required", ())) - set(schema.get("properties", {}))
    assert not unknown, f"required, yet not among the properties: {sorted(unknown)}"


def _type(value: Json, argument: Json, _: Mapping[str, Json], place: str) -> Iterator[str]:
    names = [argument] if isinstance(argument, str) else argument
    if not any(_TYPES[name](value) for name in names):
        yield f"{place}: expected {' or '.join(names)}, got {value!r}"


def _enum(value: Json, argument: Json, _: Mapping[str, Json], place: str) -> Iterator[str]:
    if not any(type(value) is type(known) and value == known for known in argument):
        yield f"{place}: expected one of {argument}, got {value!r}"


def _const(value: Json, argument: Json, schema: Mapping[str, Json], place: str) -> Iterator[str]:
    yield from _enum(value, [argument], schema, place)


def _properties(value: Json, argument: Json, schema: Mapping[str, Json], place: str) -> Iterator[str]:
    if isinstance(value, dict):
        rest = schema.get("additionalProperties", True)
        for name, item in value.items():
            yield from schema_errors(item, argument.get(name, rest), f"{place}.{name}")


def _required(value: Json, argument: Json, _: Mapping[str, Json], place: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (
            f"{place}.{name}: expected this field, got none" for name in argument if name not in value
        )


def _items(value: Json, argument: Json, _: Mapping[str, Json], place: str) -> Iterator[str]:
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from schema_errors(item, argument, f"{place}[{i}]")


def _any_of(value: Json, argument: Json, _: Mapping[str, Json], place: str) -> Iterator[str]:
    failures = [list(schema_errors(value, option, place)) for option in argument]
    if all(failures):
        yield f"{place}: fits none of {len(failures)} forms; the first: {failures[0][0]}"


def _one_of(value: Json, argument: Json, _: Mapping[str, Json], place: str) -> Iterator[str]:
    fitting = sum(not list(schema_errors(value, option, place)) for option in argument)
    if fitting != 1:
        yield f"{place}: expected to fit one of {len(argument)} forms, fits {fitting}"


def _bound(
    kind: type | tuple[type, ...], of: Callable[[Any], float], sign: int
) -> Callable[..., Iterator[str]]:
    """A keyword that bounds a figure of a value from below (sign 1) or above (sign -1)."""

    def rule(value: Json, argument: Json, _: Mapping[str, Json], place: str) -> Iterator[str]:
        if isinstance(value, kind) and sign * of(value) < sign * argument:
            yield f"{place}: expected at {'least' if sign > 0 else 'most'} {argument}, got {of(value)}"

    return rule


def _pattern(value: Json, argument: Json, _: Mapping[str, Json], place: str) -> Iterator[str]:
    if isinstance(value, str) and not re.search(argument, value):
        yield f"{place}: expected a match of {argument!r}, got {value!r}"


_RULES: Final[Mapping[str, Callable[..., Iterator[str]]]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "properties": _properties,
    "required": _required,
    "items": _items,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "minLength": _bound(str, len, 1),
    "maxLength": _bound(str, len, -1),
    "minItems": _bound(list, len, 1),
    "maxItems": _bound(list, len, -1),
    "minimum": _bound((int, float), float, 1),
    "maximum": _bound((int, float), float, -1),
    "pattern": _pattern,
}
