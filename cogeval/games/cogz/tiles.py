"""The tiles of COGZ and the boards that they lie on, as data.

Invariant: everything here is fixed by the rules (RULES.md); nothing depends on an episode. A tile is a
pair of colours; a placed tile is a code, which says what colour lies at which corner.
"""

from __future__ import annotations

import functools
from typing import Final

import msgspec

COLOURS: Final = "RGBY"  # red, green, blue, yellow
COLOUR_NAMES: Final = ("red", "green", "blue", "yellow")
NUM_COLOURS: Final = 4
CORNERS: Final = ("NE", "SE", "SW", "NW")
NUM_ROTATIONS: Final = 4
HAND: Final = 3  # tiles

TILES: Final = tuple((a, b) for a in range(NUM_COLOURS) for b in range(a, NUM_COLOURS))
"""TILES[tile]: its two colours, ascending; a tile is an index 0..9."""

TILE_TEXTS: Final = tuple(COLOURS[a] + COLOURS[b] for a, b in TILES)
"""The two colours of each tile in letters: "RG"."""

NUM_PLACED: Final = 32


def placed_code(diagonal: int, x: int, y: int) -> int:
    """The code of a placed tile (R2.3).

    Args:
        diagonal: 0: its arcs lie at the corners NE and SW; 1: at SE and NW.
        x: colour at the first of these corners.
        y: colour at the second.

    Returns:
        0..31.
    """
    return diagonal << 4 | x << 2 | y


def _placed(a: int, b: int, rotation: int) -> int:
    return placed_code(rotation, a, b) if rotation < 2 else placed_code(rotation - 2, b, a)


PLACED: Final = tuple(tuple(_placed(a, b, rotation) for rotation in range(NUM_ROTATIONS)) for a, b in TILES)
"""PLACED[tile][rotation]: its code; the first colour lies at corner `rotation`, the second opposite."""

ROTATIONS: Final = tuple(range(2 if a == b else NUM_ROTATIONS) for a, b in TILES)
"""ROTATIONS[tile]: those that differ: turning a tile of one colour by half a turn changes nothing."""

TILE_OF: Final = tuple(
    TILES.index((min(code >> 2 & 3, code & 3), max(code >> 2 & 3, code & 3))) for code in range(NUM_PLACED)
)
"""TILE_OF[code]: the tile that lies there."""


def corners_of(code: int) -> tuple[int, int]:
    """The corners of a placed tile that hold its two arcs, in the order of its colours."""
    diagonal = code >> 4
    return diagonal, diagonal + 2


def colour_at(code: int, corner: int) -> int:
    """The colour of the arc at a corner, -1 when the tile has none there."""
    if corner & 1 != code >> 4:
        return -1
    return code >> 2 & 3 if corner < 2 else code & 3


def placed_text(code: int) -> str:
    """A placed tile in letters: "0RG" has a red arc at NE and a green one at SW, "1RG" at SE and NW."""
    return f"{code >> 4}{COLOURS[code >> 2 & 3]}{COLOURS[code & 3]}"


def parse_placed(text: str) -> int:
    """The inverse of `placed_text`.

    Raises:
        ValueError: when it is none.
    """
    if len(text) != 3 or text[0] not in "01" or text[1] not in COLOURS or text[2] not in COLOURS:
        raise ValueError(f"expected a placed tile like 0RG, got {text!r}")
    return placed_code(int(text[0]), COLOURS.index(text[1]), COLOURS.index(text[2]))


class Shape(msgspec.Struct, frozen=True):
    """What the number of seats decides (R1.3)."""

    rows: int
    columns: int
    rounds: int


SHAPES: Final = {
    2: Shape(5, 5, 9),
    3: Shape(5, 6, 8),
    4: Shape(6, 6, 7),
    5: Shape(6, 7, 6),
    6: Shape(7, 7, 5),
}

_STEPS: Final = ((-1, 0), (0, 1), (1, 0), (0, -1))  # of the ports N E S W


@functools.cache
def neighbours(rows: int, columns: int) -> tuple[int, ...]:
    """Where each port of each cell leads (R2.1).

    Returns:
        For cell * 4 + port: neighbour * 4 + the port of it that meets this one, -1 at the board's edge.
    """
    table = []
    for row in range(rows):
        for column in range(columns):
            for port, (down, right) in enumerate(_STEPS):
                r, c = row + down, column + right
                inside = 0 <= r < rows and 0 <= c < columns
                table.append((r * columns + c) * 4 + (port + 2) % 4 if inside else -1)
    return tuple(table)


def _corner_of_port(diagonal: int, port: int) -> int:
    return port if port % 2 == diagonal else (port - 1) % 4


def _other_port(diagonal: int, port: int) -> int:
    corner = _corner_of_port(diagonal, port)
    return (corner + 1) % 4 if port == corner else corner


COLOUR_IN: Final = bytes(
    colour_at(code, _corner_of_port(code >> 4, port)) for code in range(NUM_PLACED) for port in range(4)
)
"""COLOUR_IN[code * 4 + port]: colour of the arc that a port belongs to."""

PORT_OUT: Final = bytes(_other_port(code >> 4, port) for code in range(NUM_PLACED) for port in range(4))
"""PORT_OUT[code * 4 + port]: the other port of that arc."""
