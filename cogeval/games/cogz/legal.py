"""The legal swaps of one decision.

Invariant: a `Swaps` holds what its seat sees and nothing else. Its list is canonical: a rotation that
looks like an earlier one and a slot that holds the same tile as an earlier one are left out, but are legal
all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from cogeval.core.rng import Stream
from cogeval.games.cogz.chains import LOCK_MASK, Layout
from cogeval.games.cogz.state import Action, Hand
from cogeval.games.cogz.tiles import HAND, NUM_ROTATIONS, PLACED, ROTATIONS

_FREE: Final = 0


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


@lru_cache(65_536)
def _fitting(hand: Hand, code: int, locked: int) -> tuple[tuple[int, int, int], ...]:
    """Those of them that keep the locked arcs of a placed tile (R3.4)."""
    mask = LOCK_MASK[locked]
    return tuple([choice for choice in choices(hand) if not (choice[2] ^ code) & mask])


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

    def fitting(self, cell: int) -> tuple[tuple[int, int, int], ...]:
        """The canonical choices for one cell: (slot, rotation, code)."""
        locked = self.layout.locked[cell]
        if locked == _FREE:
            return choices(self.hand)
        return _fitting(self.hand, self.layout.board[cell], locked)

    def __contains__(self, action: object) -> bool:
        return self.why_illegal(action) is None

    def __iter__(self) -> Iterator[Action]:
        columns = self.layout.columns
        by_choice: dict[tuple[int, int, int], list[int]] = {choice: [] for choice in choices(self.hand)}
        for cell in range(len(self.layout.board)):
            for choice in self.fitting(cell):
                by_choice[choice].append(cell)
        for (slot, rotation, _), cells in by_choice.items():
            for cell in cells:
                yield Action(slot, rotation, *divmod(cell, columns))

    def __len__(self) -> int:
        free = self.layout.locked.count(_FREE)
        num = free * len(choices(self.hand))
        if free == len(self.layout.board):
            return num
        hand, board = self.hand, self.layout.board
        for cell, locked in enumerate(self.layout.locked):
            if locked:
                num += len(_fitting(hand, board[cell], locked))
        return num

    def sample(self, rng: Stream) -> Action:
        """Draws one of the canonical swaps uniformly.

        Raises:
            ValueError: when there is none.
        """
        index = rng.below(len(self))
        for cell in range(len(self.layout.board)):
            fitting = self.fitting(cell)
            if index < len(fitting):
                slot, rotation, _ = fitting[index]
                return Action(slot, rotation, *divmod(cell, self.layout.columns))
            index -= len(fitting)
        raise AssertionError("expected len() to count the swaps")
