"""The values of an episode: actions, parameters, swaps, the state, and the events of a step.

Invariant: everything here is frozen; two states share what did not change. Must not know rules or how
anything is shown.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from cogeval.games.cogz.chains import Layout

NUT_POINTS: Final = 2  # that a nut adds to its colour at the end (R6.1)

Hand: TypeAlias = tuple[int, ...]
"""Three tiles, indexes into `tiles.TILES`, in the order of their slots."""

Colours: TypeAlias = tuple[int, ...]
"""One number a colour: red, green, blue, yellow."""


class Action(msgspec.Struct, frozen=True, gc=False):
    """One swap: a tile of the hand, turned, goes to a cell; the tile that lay there takes its slot."""

    slot: int  # of the hand, 0..2
    rotation: int  # 0..3: the corner (NE SE SW NW) at which the tile's first colour lies
    row: int  # from the top, from 0
    column: int  # from the left, from 0


class Parameters(msgspec.Struct, frozen=True, gc=False):
    """What a user may choose about the game; what no source gives stands here (R1.2)."""

    seats: int = 2  # 2..6
    lever: int = 0  # space of the bonus lever; 0: 20 - seats
    pair_copies: int = 7  # of each tile of two colours; there are 70 tiles, so 7 leaves 7 of each of one
    nuts_per_colour: int = 3  # 0..12
    setup_locks: bool = True  # whether mechanisms that lie there at the start are locked
    open_hands: bool = False  # whether all hands are seen by all


class Swap(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="swap"):
    """What one swap did; public."""

    round: int  # from 0
    seat: int
    bonus: bool  # it was a bonus turn
    row: int
    column: int
    placed: int  # code of the placed tile
    taken: int  # tile that the seat took from the board
    revealed: bool  # the tile that was played had been in the hand since the start
    points: Colours
    nuts: Colours  # won
    mechanisms: tuple[int, ...]  # colours of those completed
    levers: int  # bonus turns won


class Started(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="start"):
    """The board is laid and the hands are dealt."""

    board: tuple[int, ...]  # codes


class Passed(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="pass"):
    """A seat had no legal swap and lost the turn (R5.4)."""

    round: int
    seat: int


class Ended(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="end"):
    """The episode is over."""

    reason: str  # "complete" or "deadline"


Event: TypeAlias = Started | Swap | Passed | Ended


class State(msgspec.Struct, frozen=True, gc=False):
    """One moment of an episode. Columns hold one entry a seat, seat 0 first."""

    layout: Layout  # the board and what follows from it
    round: int  # from 0
    seat: int  # who decides
    pending: int  # swaps that the seat still has in this turn, the one at hand included
    bonus: bool  # the swap at hand is a bonus turn
    swaps: int  # made so far, the phases of the episode
    reason: str  # "" while the episode runs, then "complete" or "deadline"
    hands: tuple[Hand, ...]  # hidden from the others, but for the slots that `seen` marks
    seen: tuple[tuple[bool, ...], ...]  # per slot: all saw the tile being taken from the board
    points: tuple[Colours, ...]  # without nuts
    nuts: tuple[Colours, ...]
    supply: Colours  # nuts that are left
    bonuses: tuple[int, ...]  # bonus turns won so far
    record: tuple[Swap, ...]  # every swap so far

    @property
    def finals(self) -> tuple[Colours, ...]:
        """Each seat's colours with its nuts, as they would count now (R6.1)."""
        return tuple(
            [
                tuple([p + NUT_POINTS * n for p, n in zip(points, nuts, strict=True)])
                for points, nuts in zip(self.points, self.nuts, strict=True)
            ]
        )


def code_of(action: Action, rows: int, columns: int) -> int:
    """The number of an action: ((slot * 4 + rotation) * rows + row) * columns + column."""
    return ((action.slot * 4 + action.rotation) * rows + action.row) * columns + action.column


def action_of(code: int, rows: int, columns: int) -> Action:
    """The inverse of `code_of`."""
    code, column = divmod(code, columns)
    code, row = divmod(code, rows)
    slot, rotation = divmod(code, 4)
    return Action(slot, rotation, row, column)
