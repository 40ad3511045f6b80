"""The legal swaps of one decision.

Invariant: a `Swaps` holds what its seat sees and nothing else. Its list is canonical: a rotation that
looks like an earlier one and a slot that holds the same tile as an earlier one are left out, but are legal
all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import compress
from typing import Final

import msgspec

from cogeval.core.rng import Stream
from cogeval.games.cogz.chains import LOCK_MASK, Layout
from cogeval.games.cogz.state import Action, Hand
from cogeval.games.cogz.tiles import HAND, NUM_PLACED, NUM_ROTATIONS, PLACED, ROTATIONS, TILES

_FREE: Final = 0
_IS_FREE: Final = bytes([1]) + bytes(255)  # translates locks to 1 where there is none

_NUM_FITTING: Final = tuple(
    bytes(
        sum(not (PLACED[tile][rotation] ^ code) & LOCK_MASK[locked] for rotation in ROTATIONS[tile])
        for code in range(NUM_PLACED)
        for locked in range(len(LOCK_MASK))
    )
    for tile in range(len(TILES))
)
"""_NUM_FITTING[tile][code * 4 + locked]: in how many ways a tile fits where another with locks lies."""


@lru_cache(4096)
def choices(hand: Hand) -> tuple[tuple[int, int, int], ...]:
    """What a hand can lay into a free cell: (slot, rotation, code), each once, in the game's order."""
    return tuple(
        [
            (slot, rotation, PLACED[tile][rotation])
            for slot, tile in enumerate(hand)
            if tile not in hand[:slot]
            for rotation in ROTATIONS[tile]
        ]
    )


@cache
def _table(rows: int, columns: int) -> tuple[tuple[tuple[Action, ...], ...], ...]:
    """Every action of a board, made once: by slot, rotation and cell."""
    cells = [divmod(cell, columns) for cell in range(rows * columns)]
    return tuple(
        [
            tuple(
                [
                    tuple([Action(slot, rotation, row, column) for row, column in cells])
                    for rotation in range(NUM_ROTATIONS)
                ]
            )
            for slot in range(HAND)
        ]
    )


class Swaps(msgspec.Struct, frozen=True, gc=False):
    """The legal actions of a seat."""

    layout: Layout
    hand: Hand

    def why_illegal(self, action: object) -> str | None:
        """The reason word, None for a legal swap."""
        if not isinstance(action, Action):
            return "no_swap"
        layout = self.layout
        if not 0 <= action.slot < HAND:
            return "no_such_slot"
        if not 0 <= action.rotation < NUM_ROTATIONS:
            return "no_such_rotation"
        if not (0 <= action.row < layout.rows and 0 <= action.column < layout.columns):
            return "off_board"
        cell = action.row * layout.columns + action.column
        code = PLACED[self.hand[action.slot]][action.rotation]
        return "locked" if (code ^ layout.board[cell]) & LOCK_MASK[layout.locked[cell]] else None

    def __contains__(self, action: object) -> bool:
        return self.why_illegal(action) is None

    def __iter__(self) -> Iterator[Action]:
        layout, table = self.layout, _table(self.layout.rows, self.layout.columns)
        held, free = self._held(), layout.locked.translate(_IS_FREE)
        for slot, rotation, code in choices(self.hand):
            open_cells = bytearray(free)
            for cell, there, mask in held:
                open_cells[cell] = not (there ^ code) & mask
            yield from compress(table[slot][rotation], open_cells)

    def __bool__(self) -> bool:
        return _FREE in self.layout.locked or len(self) > 0  # any tile may go to a cell without a lock

    def __len__(self) -> int:
        free = self.layout.locked.count(_FREE)
        return free * len(choices(self.hand)) + sum(self._num_fitting())

    def _held(self) -> list[tuple[int, int, int]]:
        """Each cell with a locked arc, its tile, and the bits of it that must stay."""
        if not any(self.layout.locked):
            return []
        board = self.layout.board
        return [
            (cell, board[cell], LOCK_MASK[locked]) for cell, locked in enumerate(self.layout.locked) if locked
        ]

    def _num_fitting(self) -> list[int]:
        """How many choices fit into each cell with a locked arc."""
        if not any(self.layout.locked):
            return []
        keys = [
            code << 2 | held for code, held in zip(self.layout.board, self.layout.locked, strict=True) if held
        ]
        tables = [_NUM_FITTING[tile] for tile in set(self.hand)]
        return [sum([table[key] for table in tables]) for key in keys]

    def sample(self, rng: Stream) -> Action:
        """Draws one of the canonical swaps uniformly.

        Raises:
            ValueError: when there is none.
        """
        layout, everywhere = self.layout, choices(self.hand)
        table, fitting = _table(layout.rows, layout.columns), self._num_fitting()
        free = len(layout.board) - len(fitting)
        num_free = free * len(everywhere)
        index = rng.below(num_free + sum(fitting))
        if index < num_free:
            place, nth = divmod(index, free)
            slot, rotation, _ = everywhere[place]
            return table[slot][rotation][_nth_free(layout.locked, nth) if fitting else nth]
        index -= num_free
        for cell, there, mask in self._held():
            for slot, rotation, code in everywhere:
                if not (there ^ code) & mask:
                    if index == 0:
                        return table[slot][rotation][cell]
                    index -= 1
        raise AssertionError("expected an index below the number of swaps")

    def first_idle(self) -> Action:
        """The first swap that changes nothing on the board; the first of all where there is none."""
        layout = self.layout
        for slot, rotation, code in choices(self.hand):
            cell = layout.board.find(code)
            if cell >= 0:
                return _table(layout.rows, layout.columns)[slot][rotation][cell]
        return next(iter(self))


def _nth_free(locked: bytes, nth: int) -> int:
    """The cell of that number among those without a locked arc."""
    cell = -1
    for _ in range(nth + 1):
        cell = locked.index(_FREE, cell + 1)
    return cell
