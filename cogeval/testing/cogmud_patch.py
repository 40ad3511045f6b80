"""What a driver makes of a Cogmud town before a turn, to reach states that honest play does not.

Invariant: a patch replaces values of a state and nothing else; no rule is applied.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cogeval.core.game import Json
from cogeval.games.cogmud.state import Goods, State
from cogeval.games.cogmud.world import GOODS, KEEPERS, ROOMS, SEATS
from cogeval.testing.compare import Given, Path, show
from cogeval.testing.trace_inputs import BadInput, take


class CogPatch(msgspec.Struct, frozen=True, rename="camel"):
    """What a patch makes of one cog."""

    seat: int
    room: int
    coin: int
    items: Goods
    retainer_of: int  # seat, -1 for nobody
    retainer_turns: int


class ShopPatch(msgspec.Struct, frozen=True):
    """What a patch makes of one shop."""

    npc: int
    coin: int
    stock: Goods


class FloorPatch(msgspec.Struct, frozen=True):
    """What a patch lays on one room's ground."""

    room: int
    items: Goods


class Patch(msgspec.Struct, frozen=True):
    """Values of a state that a driver replaces before the sentences of a turn."""

    cogs: tuple[CogPatch, ...] = ()
    shops: tuple[ShopPatch, ...] = ()
    floors: tuple[FloorPatch, ...] = ()


def patched(state: State, patch: Patch) -> State:
    """The state with a patch's values in the place of its own."""
    columns: dict[str, list[Any]] = {
        name: list(getattr(state, name))
        for name in ("room", "coin", "pack", "employer", "bond", "till", "stock", "floor")
    }
    for cog in patch.cogs:
        columns["room"][cog.seat] = cog.room
        columns["coin"][cog.seat] = cog.coin
        columns["pack"][cog.seat] = cog.items
        columns["employer"][cog.seat] = cog.retainer_of
        columns["bond"][cog.seat] = cog.retainer_turns
    for shop in patch.shops:
        columns["till"][shop.npc] = shop.coin
        columns["stock"][shop.npc] = shop.stock
    for floor in patch.floors:
        columns["floor"][floor.room] = floor.items
    return msgspec.structs.replace(state, **{name: tuple(column) for name, column in columns.items()})


def read_patch(record: Json, path: Path) -> Patch:
    """The patch at a path of a record.

    Raises:
        BadInput: when a value is missing, of the wrong type or out of its range.
    """

    def entries(name: str) -> list[Path]:
        return [(*path, name, i) for i in range(len(take(record, (*path, name), list)))]

    return Patch(
        tuple(
            CogPatch(
                seat=_index(record, (*at, "seat"), SEATS),
                room=_index(record, (*at, "room"), len(ROOMS)),
                coin=take(record, (*at, "coin"), int),
                items=_goods(record, (*at, "items")),
                retainer_of=_index(record, (*at, "retainerOf"), SEATS, lowest=-1),
                retainer_turns=take(record, (*at, "retainerTurns"), int),
            )
            for at in entries("cogs")
        ),
        tuple(
            ShopPatch(
                _index(record, (*at, "npc"), len(KEEPERS)),
                take(record, (*at, "coin"), int),
                _goods(record, (*at, "stock")),
            )
            for at in entries("shops")
        ),
        tuple(
            FloorPatch(_index(record, (*at, "room"), len(ROOMS)), _goods(record, (*at, "items")))
            for at in entries("floors")
        ),
    )


def _index(record: Json, path: Path, limit: int, lowest: int = 0) -> int:
    value = take(record, path, int)
    if not lowest <= value < limit:
        raise BadInput(path, f"an integer {lowest}..{limit - 1}", show(value))
    return value


def _goods(record: Json, path: Path) -> Goods:
    units = take(record, path, list)
    if len(units) != len(GOODS):
        raise BadInput(path, f"units of {len(GOODS)} goods", show(units))
    return tuple(take(record, (*path, good), int) for good in range(len(units)))


def patch_inputs(patch: Patch | None) -> Json:
    """A patch, every value marked as an input."""
    if patch is None:
        return Given(None)
    return {
        name: [{key: Given(value) for key, value in entry.items()} for entry in entries]
        for name, entries in msgspec.json.decode(msgspec.json.encode(patch)).items()
    }
