"""How many seat actors an agent has, what each needs, and how decisions travel to them.

Invariant: none of it changes what the agent decides, so none of it is in the agent's fingerprint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

import msgspec

from cogeval.core.game import Json
from cogeval.errors import InputError, unknown_name

_Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=1000)]


class ActorOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The setting `actor` of an agent."""

    replicas: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1
    cpus: Annotated[float, msgspec.Meta(ge=0)] = 1.0  # of each replica
    gpus: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # of each replica
    memory_mb: Annotated[int, msgspec.Meta(ge=1)] | None = None  # of each replica; None: not declared
    spares: Annotated[int, msgspec.Meta(ge=0, le=1000)] = (
        1  # replicas that stand by to take a dead one's place
    )
    batch: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 256  # most requests of one `decide_many`
    linger_ms: _Milliseconds = 0.0  # in which an episode actor gathers decisions into one call
    flush_ms: _Milliseconds = 2.0  # in which a replica gathers replies into one answer
    threads: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 1  # plain `decide` (or `decide_many`) at once


def actor_options(where: str, settings: Mapping[str, Json]) -> ActorOptions:
    """Reads the setting `actor`.

    Args:
        where: of the setting, for messages.
        settings: what the user wrote.

    Raises:
        InputError: an unknown name, another type or a value out of its range.
    """
    for key, value in settings.items():
        if key not in ActorOptions.__struct_fields__:
            raise unknown_name(f"setting in {where}:", key, ActorOptions.__struct_fields__)
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{where}.{key}: expected a finite number, got {value!r}")
        try:
            msgspec.convert({key: value}, ActorOptions)
        except msgspec.ValidationError as error:
            what = str(error).partition(" - at ")[0].partition(", got ")[0].replace("`", "")
            raise InputError(f"{where}.{key}: {what[0].lower()}{what[1:]}, got {value!r}") from error
    return msgspec.convert(dict(settings), ActorOptions)
