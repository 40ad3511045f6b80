"""One turn in the making: a working copy of a state's columns, and what each intent does to it.

Invariant: the state that a `Town` was made from stays as it was; `frozen` gives the next one, which
shares every column that no act touched. Must not know sentences or how an episode goes on.
"""

from __future__ import annotations

from typing import Final

from cogeval.games.cogmud.state import Goods, Line, Parameters, State
from cogeval.games.cogmud.world import CARRY_CAP, LOG_LINES, ROOMS, SEATS

_NO_LINES: Final = ((),) * len(ROOMS)


def with_units(goods: Goods, good: int, change: int) -> Goods:
    """The goods with `change` units more of one."""
    return (*goods[:good], goods[good] + change, *goods[good + 1 :])


def with_entry(column: tuple[int, ...], seat: int, value: int) -> tuple[int, ...]:
    """The column with another value for one seat."""
    return (*column[:seat], value, *column[seat + 1 :])


class Town:
    """The columns of a state while its turn resolves.

    `item`, `qty` and `paid` are what the act at hand really moved; an effect sets them (R2.7).
    """

    __slots__ = (
        "bond", "coin", "delivered", "employer", "floor", "hint", "item", "log", "offers", "pack",
        "paid", "parameters", "prev_room", "qty", "robbed", "robberies", "room", "state", "stock", "till",
    )  # fmt: skip

    def __init__(self, parameters: Parameters, state: State) -> None:
        self.parameters = parameters
        self.state = state
        self.room = list(state.room)
        self.prev_room = list(state.prev_room)
        self.coin = list(state.coin)
        self.pack = list(state.pack)
        self.stock = list(state.stock)
        self.till = list(state.till)
        self.floor = list(state.floor)
        self.delivered = state.delivered
        self.employer = state.employer
        self.bond = state.bond
        self.robberies = state.robberies
        self.robbed = state.robbed
        self.offers = state.offers
        self.hint = [False] * SEATS
        self.log: dict[int, list[Line]] = {}
        self.item = -1
        self.qty = 0
        self.paid = 0

    def write(self, seat: int, line: Line) -> None:
        """Adds a line to the log of the room where a seat stands."""
        room = self.room[seat]
        if room in self.log:
            self.log[room].append(line)
        else:
            self.log[room] = [line]

    def free(self, seat: int) -> int:
        """How many goods more a seat can carry."""
        return CARRY_CAP - sum(self.pack[seat])

    def move_units(self, seat: int, good: int, change: int) -> None:
        """Puts units into a seat's pack, or takes them out."""
        self.pack[seat] = with_units(self.pack[seat], good, change)

    def retainers_here(self, seat: int) -> int:
        """How many cogs in the seat's room are hired to it (R5.7)."""
        if seat not in self.employer:
            return 0
        here = self.room[seat]
        return sum(
            [self.employer[cog] == seat and self.room[cog] == here and cog != seat for cog in range(SEATS)]
        )

    def frozen_log(self) -> tuple[tuple[Line, ...], ...]:
        """The newest lines of each room (R2.8)."""
        log = self.log
        if not log:
            return _NO_LINES
        return tuple([tuple(log[room][-LOG_LINES:]) if room in log else () for room in range(len(ROOMS))])
