"""The town of Cogmud as data: rooms, goods, shopkeepers, prices and ways, and the figures of its rules.

Invariant: everything here is fixed by the rules (RULES.md); nothing depends on an episode.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

SEATS: Final = 6
TURNS_MIN: Final = 6
TURNS_MAX: Final = 40

START_COIN: Final = 40
CARRY_CAP: Final = 8  # goods in a pack
STOCK_CAP: Final = 12  # units of one good in a shop
KEEPER_COIN: Final = 120
COMMISSIONS: Final = 2  # of each seat
COMMISSION_UNITS: Final = 2  # of one commission
UNIT_POINTS: Final = 4  # commission points of one unit
COMPLETION_POINTS: Final = 8  # more, when the commission is complete
POINT_COIN: Final = 3  # coin that a commission point counts in the score
RETAINER_TURNS: Final = 3
ROBBED_COIN: Final = 10  # most that a robbery takes
FINE: Final = 8  # most that a failed one costs
EVERYTHING: Final = 999  # what "all" counts as

SENTENCE_CAP: Final = 240  # code points
SAY_CAP: Final = 160
NOTES_CAP: Final = 600
ONE_LINE: Final = str.maketrans("\r\n\t", "   ")  # what becomes a space in stored texts
LOG_LINES: Final = 12  # that a room keeps of a turn
LOG_LINE_CAP: Final = 200  # code points


class Room(msgspec.Struct, frozen=True, gc=False):
    """A place in town."""

    name: str
    keywords: tuple[str, ...]  # lower case, single words
    exits: tuple[int, ...]  # rooms one step away, ascending
    dark: bool = False


class Good(msgspec.Struct, frozen=True, gc=False):
    """A kind of goods."""

    name: str
    plural: str
    keywords: tuple[str, ...]
    value: int  # base value, coin


class Keeper(msgspec.Struct, frozen=True, gc=False):
    """A shopkeeper."""

    name: str
    keywords: tuple[str, ...]
    room: int
    deals: tuple[int, ...]  # goods, in restock order
    stock: tuple[int, ...]  # at the opening, units of each good in town


ROOMS: Final = (
    Room("Market Square", ("market", "square", "well", "plaza"), (1, 3, 5, 7)),
    Room("The Copper Kettle", ("kettle", "tavern", "inn", "copper"), (0, 2, 8)),
    Room("Tanner's Row", ("tanner", "tannery", "row", "tanners"), (1, 3)),
    Room("The Smithy", ("smithy", "smith", "forge", "anvil"), (0, 2, 4)),
    Room("Warehouse Yard", ("warehouse", "yard", "store", "stores"), (3, 5)),
    Room("The Docks", ("docks", "dock", "quay", "harbour", "harbor", "wharf"), (0, 4, 6), dark=True),
    Room("Cutpurse Alley", ("alley", "cutpurse", "backstreet", "lane"), (5, 7), dark=True),
    Room("The Chapel", ("chapel", "church", "shrine"), (0, 6, 8)),
    Room("The Guildhall", ("guildhall", "guild", "hall", "board"), (1, 7)),
)

GOODS: Final = (
    Good("hide", "hides", ("hide", "hides", "skin", "skins", "leather"), 6),
    Good("nails", "nails", ("nails", "nail", "iron"), 7),
    Good("rope", "rope", ("rope", "ropes", "coil", "cord"), 8),
    Good("salt", "salt", ("salt", "salts", "brine"), 9),
    Good("lamp", "lamps", ("lamp", "lamps", "lantern", "oil"), 11),
    Good("relic", "relics", ("relic", "relics", "idol", "icon"), 14),
)

KEEPERS: Final = (
    Keeper("Tanner Oda", ("tanner", "oda"), 2, (0, 3), (8, 0, 0, 5, 0, 0)),
    Keeper("Smith Bram", ("smith", "bram", "blacksmith"), 3, (1, 2), (0, 8, 6, 0, 0, 0)),
    Keeper("Keeper Nesh", ("keeper", "nesh", "innkeeper"), 1, (4, 3, 2), (0, 0, 4, 6, 4, 0)),
    Keeper("Dockmaster Fen", ("dockmaster", "fen"), 5, (5, 0, 1), (5, 6, 0, 0, 0, 3)),
    Keeper("Guildmaster Vell", ("guildmaster", "vell", "guildmistress"), 8, (2, 4), (0, 0, 4, 0, 3, 0)),
)

MARKET: Final = 0
YARD: Final = 4
GUILDHALL: Final = 8
RELIC: Final = 5
VELL: Final = 4  # the keeper who settles commissions
COMMISSIONED: Final = (0, 1, 2, 3)  # goods that commissions ask for
FOUND_IN: Final = (0, 4, 5, 6, 7)  # rooms with a good on the ground at the opening, in drawing order

VALUES: Final = tuple([good.value for good in GOODS])

KEEPER_IN: Final = tuple(
    [next((k for k, keeper in enumerate(KEEPERS) if keeper.room == room), -1) for room in range(len(ROOMS))]
)
"""KEEPER_IN[room]: the keeper who stands there, -1 for nobody."""


def _ask(value: int, stock: int) -> int:
    return min(max(value + 6 - stock, 2, value // 2), 3 * value)


_LEVELS: Final = range(STOCK_CAP + 1)

ASK: Final = tuple([tuple([_ask(value, stock) for stock in _LEVELS]) for value in VALUES])
"""ASK[good][stock]: coin for one unit (R4.2)."""

BID: Final = tuple([tuple([max(1, ask * 2 // 3) for ask in asks]) for asks in ASK])
"""BID[good][stock]: coin that a keeper pays for one unit (R4.2)."""


def _distances(target: int) -> list[int]:
    steps = [-1] * len(ROOMS)
    steps[target] = 0
    queue = deque([target])
    while queue:
        room = queue.popleft()
        for near in ROOMS[room].exits:
            if steps[near] < 0:
                steps[near] = steps[room] + 1
                queue.append(near)
    return steps


DISTANCE: Final = tuple([tuple(_distances(room)) for room in range(len(ROOMS))])
"""DISTANCE[a][b]: steps between two rooms."""

STEP_TO: Final = tuple(
    [
        tuple(
            [
                next((near for near in ROOMS[a].exits if DISTANCE[near][b] < DISTANCE[a][b]), a)
                for b in range(len(ROOMS))
            ]
        )
        for a in range(len(ROOMS))
    ]
)
"""STEP_TO[a][b]: the lowest room next to a on a shortest way to b; a itself when a is b."""
