"""Chains of one colour over the board, kept up to date swap by swap (R3).

An arm is what a cell sees through one of its four ports: the chain that begins in the neighbour, walked
until its colour ends, the board ends, or it comes back to the cell. Arms do not depend on the cell's own
tile, so that every tile that might be put there is worth what its four arms say, without another walk.

Invariant: `arms` and `locked` are always those of `board`; `swapped` gives a new `Layout` and leaves its
argument as it was. Must not know seats, hands or turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from cogeval.games.cogz.tiles import COLOUR_IN, NUM_COLOURS, NUM_PLACED, PORT_OUT, neighbours, parse_placed

BORDER: Final = 4
"""Colour of an arm that leads off the board: it fits every colour."""

OPEN: Final = 0
EDGE: Final = 1
BACK: Final = 2
"""How an arm ends: at another colour, at the board's edge, or back in the cell, at port `end - BACK`."""


class Layout(msgspec.Struct, frozen=True, gc=False):
    """A board, and what follows from it. Cells count row by row from the top left."""

    rows: int
    columns: int
    board: bytes  # per cell the code of the placed tile, 0..31
    arm_colour: bytes  # per cell * 4 + port: 0..3, or BORDER
    arm_length: bytes  # the same: segments of the arm, 0 off the board
    arm_end: bytes  # the same: OPEN, EDGE, or BACK + port
    locked: bytes  # per cell: bit 0: its first arc is part of a mechanism, bit 1: its second


class Value(msgspec.Struct, frozen=True, gc=False):
    """What a tile put into a cell is worth."""

    points: tuple[int, ...]  # of each colour (R4.1)
    mechanisms: tuple[int, ...]  # colours of the mechanisms that it completes (R4.3)


ARC_BITS: Final = (0b11100, 0b10011)
"""ARC_BITS[arc]: the bits of a placed tile that say where one of its arcs lies and in what colour."""

LOCK_MASK: Final = (0, *ARC_BITS, 0b11111)
"""LOCK_MASK[locked]: the bits of a placed tile that its locked arcs hold fast (R3.4)."""

_ARC_OF: Final = bytes(int((port - (code >> 4)) % 4 >= 2) for code in range(NUM_PLACED) for port in range(4))
"""_ARC_OF[code * 4 + port]: 0 when the port belongs to the tile's first arc, 1 to its second."""


def layout_of(lines: Sequence[str]) -> Layout:
    """A board in letters, its rows from the top, their tiles parted by blanks: ["0RG 1BB", "1RR 0GY"].

    Raises:
        ValueError: when a tile cannot be read or the rows differ in length.
    """
    rows = [line.split() for line in lines]
    if len({len(row) for row in rows}) != 1:
        raise ValueError(f"expected rows of one length, got {[len(row) for row in rows]}")
    return make_layout(len(rows), len(rows[0]), bytes([parse_placed(text) for row in rows for text in row]))


def make_layout(rows: int, columns: int, board: bytes) -> Layout:
    """The layout of a board: every arm walked, every mechanism locked (R3.3)."""
    nexts = neighbours(rows, columns)
    arms = [_walk(board, nexts, cell, port) for cell in range(len(board)) for port in range(4)]
    colours, lengths, ends = (bytes(column) for column in zip(*arms, strict=True))
    bare = Layout(rows, columns, board, colours, lengths, ends, bytes(len(board)))
    locked = [
        chain(bare, cell, code, 0).mechanism | chain(bare, cell, code, 1).mechanism << 1
        for cell, code in enumerate(board)
    ]
    return replace(bare, locked=bytes(locked))


def _walk(board: bytes, nexts: tuple[int, ...], cell: int, port: int) -> tuple[int, int, int]:
    """One arm: its colour, its length, its end."""
    node = nexts[cell << 2 | port]
    if node < 0:
        return BORDER, 0, EDGE
    colour, length = COLOUR_IN[board[node >> 2] << 2 | node & 3], 0
    while node >= 0:
        at = node >> 2
        if at == cell:
            return colour, length, BACK + (node & 3)
        key = board[at] << 2 | node & 3
        if COLOUR_IN[key] != colour:
            return colour, length, OPEN
        length += 1
        node = nexts[at << 2 | PORT_OUT[key]]
    return colour, length, EDGE


class Chain(NamedTuple):
    """The chain of one arc of a tile."""

    length: int  # segments
    mechanism: bool  # two or more segments, closed in itself or at the edge at both ends (R3.2)
    joined: bool  # the tile's other arc is part of it


def chain(layout: Layout, cell: int, code: int, arc: int) -> Chain:
    """The chain that an arc would have, were the tile in the cell (R3.1).

    Args:
        layout: of the board; what lies in the cell itself does not matter.
        cell: index.
        code: of the placed tile.
        arc: 0 or 1.
    """
    colours, lengths, ends, base = layout.arm_colour, layout.arm_length, layout.arm_end, cell << 2
    colour, other = (code & 3, code >> 2 & 3) if arc else (code >> 2 & 3, code & 3)
    first = (code >> 4) + 2 * arc
    last = (first + 1) & 3
    length, closed, joined = 1, 0, False
    for port in (first, last):
        while True:
            arm = base | port
            seen = colours[arm]
            if seen != colour:
                closed += seen == BORDER
                break
            length += lengths[arm]
            end = ends[arm]
            if end < BACK:
                closed += end == EDGE
                break
            back = end - BACK
            if back in (first, last):
                return Chain(length, True, joined)  # a loop
            if other != colour:
                break
            length, joined = length + 1, True  # it goes on through the tile's other arc
            port = PORT_OUT[code << 2 | back]
    return Chain(length, closed == 2 and length > 1, joined)


def value_of(layout: Layout, cell: int, code: int) -> Value:
    """What a tile put into the cell is worth (R4.1 to R4.3).

    An arc counts unless the tile that lies there has the same colour at the same corner.
    """
    changed = layout.board[cell] ^ code
    points, mechanisms, counted = [0] * NUM_COLOURS, [], False
    for arc, bits in enumerate(ARC_BITS):
        if changed & bits:
            length, mechanism, joined = chain(layout, cell, code, arc)
            colour = code & 3 if arc else code >> 2 & 3
            points[colour] += length
            if mechanism and not (counted and joined):
                mechanisms.append(colour)
                counted = True
    return Value(tuple(points), tuple(mechanisms))


def is_legal(layout: Layout, cell: int, code: int) -> bool:
    """True when every locked arc of the tile that lies in the cell reappears (R3.4)."""
    return not (layout.board[cell] ^ code) & LOCK_MASK[layout.locked[cell]]


def swapped(layout: Layout, cell: int, code: int, *, locks: bool) -> Layout:
    """The layout after a swap.

    Args:
        layout: before.
        cell: index.
        code: of the tile that is put there; a legal one.
        locks: whether it completes a mechanism (`value_of` says so).
    """
    board = bytearray(layout.board)
    board[cell] = code
    colours, lengths, ends = (
        bytearray(layout.arm_colour),
        bytearray(layout.arm_length),
        bytearray(layout.arm_end),
    )
    nexts = neighbours(layout.rows, layout.columns)
    after = bytes(board)
    for port in range(4):  # only arms that run into the cell change: outward from it, one colour at a time
        node = nexts[cell << 2 | port]
        colour = -1
        while node >= 0 and node >> 2 != cell:
            at = node >> 2
            colours[node], lengths[node], ends[node] = _walk(after, nexts, at, node & 3)
            key = after[at] << 2 | node & 3
            if colour not in (-1, COLOUR_IN[key]):
                break
            colour = COLOUR_IN[key]
            node = nexts[at << 2 | PORT_OUT[key]]
    moved = Layout(
        layout.rows, layout.columns, after, bytes(colours), bytes(lengths), bytes(ends), layout.locked
    )
    return replace(moved, locked=_with_locks(moved, cell, layout.board[cell] ^ code)) if locks else moved


def _with_locks(layout: Layout, cell: int, changed: int) -> bytes:
    """The locks, once the mechanisms of a cell's changed arcs hold all their segments fast (R3.3)."""
    locked, board, nexts = bytearray(layout.locked), layout.board, neighbours(layout.rows, layout.columns)
    for arc, bits in enumerate(ARC_BITS):
        if not changed & bits or not chain(layout, cell, board[cell], arc).mechanism:
            continue
        locked[cell] |= 1 << arc
        first = (board[cell] >> 4) + 2 * arc
        for port in (first, (first + 1) & 3):
            node = nexts[cell << 2 | port]
            while node >= 0:
                at, key = node >> 2, board[node >> 2] << 2 | node & 3
                if at == cell and _ARC_OF[key] == arc:
                    break
                locked[at] |= 1 << _ARC_OF[key]
                node = nexts[at << 2 | PORT_OUT[key]]
    return bytes(locked)
