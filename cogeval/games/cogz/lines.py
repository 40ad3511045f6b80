"""The chains of a whole board as values, and the names of cells and tiles, as people and agents read them.

Invariant: a function of the layout. The rules never look here: they count by arms (`chains`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import msgspec

from cogeval.games.cogz.chains import Layout
from cogeval.games.cogz.state import Action, Hand
from cogeval.games.cogz.tiles import (
    COLOUR_IN,
    COLOUR_NAMES,
    CORNERS,
    PORT_OUT,
    TILE_TEXTS,
    colour_at,
    corners_of,
    neighbours,
    placed_text,
)

Arc: TypeAlias = tuple[int, int]
"""A segment of the board: its cell, row by row from the top left, and its corner (NE SE SW NW)."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One chain of the board (R3.1)."""

    colour: int  # 0..3
    arcs: tuple[Arc, ...]  # from one end to the other
    ends: tuple[tuple[int, int], ...]  # (cell, port N E S W) where it may go on, in this order; no edges
    locked: bool  # it is a locked mechanism

    @property
    def length(self) -> int:
        """Segments."""
        return len(self.arcs)


@lru_cache(256)
def chains_of(layout: Layout) -> tuple[Line, ...]:
    """Every chain of a board, the longest first, then by the place of its first segment (R3.1)."""
    done: set[Arc] = set()
    lines = []
    for cell, code in enumerate(layout.board):
        for corner in (code >> 4, (code >> 4) + 2):
            if (cell, corner) not in done:
                line = _line(layout, cell, corner)
                done.update(line.arcs)
                lines.append(line)
    return tuple(sorted(lines, key=lambda line: (-line.length, min(line.arcs))))


def _line(layout: Layout, cell: int, corner: int) -> Line:
    """The chain of one segment: walked from its second port, then from its first unless that closes it."""
    board = layout.board
    arcs: list[Arc] = [(cell, corner)]
    ends: list[tuple[int, int]] = []
    for port in ((corner + 1) & 3, corner):
        if _follow(layout, arcs, ends, port):
            break  # a loop
        arcs.reverse()
    first, which = arcs[0]
    return Line(
        COLOUR_IN[board[cell] << 2 | corner],
        tuple(arcs),
        tuple(reversed(ends)),
        bool(layout.locked[first] >> (which >= 2) & 1),
    )


def _follow(layout: Layout, arcs: list[Arc], ends: list[tuple[int, int]], port: int) -> bool:
    """Goes on from the last segment through one of its ports; True when that comes back to the first."""
    board, nexts = layout.board, neighbours(layout.rows, layout.columns)
    first, (cell, corner) = arcs[0], arcs[-1]
    colour = COLOUR_IN[board[cell] << 2 | port]
    while (node := nexts[cell << 2 | port]) >= 0:
        into = board[node >> 2] << 2 | node & 3
        if COLOUR_IN[into] != colour:
            ends.append((cell, port))
            return False
        port = PORT_OUT[into]
        cell, corner = node >> 2, _corner(node & 3, port)
        if (cell, corner) == first:
            return True
        arcs.append((cell, corner))
    return False


def _corner(port: int, other: int) -> int:
    """The corner between two neighbouring ports."""
    return port if (port + 1) & 3 == other else other


def cell_text(cell: int, columns: int) -> str:
    """A cell as people write it: its column's letter and its row's number from 1, "C2" (R8.1)."""
    row, column = divmod(cell, columns)
    return f"{chr(ord('A') + column)}{row + 1}"


def board_texts(layout: Layout) -> list[str]:
    """The board in letters, a text a row: "0RG 1BB", which `chains.layout_of` reads."""
    texts = [placed_text(code) for code in layout.board]
    return [" ".join(texts[at : at + layout.columns]) for at in range(0, len(texts), layout.columns)]


def explain_illegal(layout: Layout, hand: Hand, action: Action, reason: str) -> str:
    """Why a swap is illegal, in the words of a reply, and what its cell would take."""
    if reason != "locked":
        return f"{reason}: expected a swap of your turn, with a tile of your hand, to a cell of the board"
    cell = action.row * layout.columns + action.column
    there, held = layout.board[cell], layout.locked[cell]
    kept = [
        f"{COLOUR_NAMES[colour_at(there, corner)]} at {CORNERS[corner]}"
        for arc, corner in enumerate(corners_of(there))
        if held >> arc & 1
    ]
    where, tile = cell_text(cell, layout.columns), TILE_TEXTS[hand[action.slot]]
    return (
        f"{tile} with {tile[0]} at {CORNERS[action.rotation]} is illegal at {where}: locked there is "
        f"{' and '.join(kept)}, which your tile must repeat; or choose another cell"
    )
