"""R1.5: the tables of the town in RULES.md say what `world.py` says."""

from __future__ import annotations

import re
from pathlib import Path

from cogeval.games import cogmud
from cogeval.games.cogmud.world import GOODS, KEEPERS, ROOMS

RULES = (Path(cogmud.__file__).parent / "RULES.md").read_text(encoding="utf-8")


def rows(first_column: str) -> list[list[str]]:
    """The cells of R1.5's table whose first column has this title."""
    section = RULES.partition("- R1.5 ")[2].partition("## R2 ")[0]
    (table,) = re.findall(rf"^\| {first_column} \|.*\n\|[-|]+\n((?:\|.*\n)+)", section, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_r1_5_rooms() -> None:
    assert rows("room") == [
        [str(i), room.name, "dark" if room.dark else "", ", ".join(map(str, room.exits))]
        for i, room in enumerate(ROOMS)
    ]


def test_r1_5_goods() -> None:
    assert rows("good") == [[str(i), good.name, str(good.value)] for i, good in enumerate(GOODS)]


def test_r1_5_keepers_in_restock_order_with_their_opening_stock() -> None:
    assert rows("keeper") == [
        [
            str(i),
            keeper.name,
            str(keeper.room),
            ", ".join(f"{GOODS[good].name} {keeper.stock[good]}" for good in keeper.deals),
        ]
        for i, keeper in enumerate(KEEPERS)
    ]
    for keeper in KEEPERS:
        assert {good for good, units in enumerate(keeper.stock) if units} <= set(keeper.deals)
