"""A model's reply, read as an action (R8).

Invariant: whatever the reply holds, the outcome is an action or an `ActionError` whose hint says what to
write instead. Whether the swap is legal is not looked at: the rules say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cogeval.core.game import Json
from cogeval.errors import ActionError
from cogeval.games.cogz.chains import Layout
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.lines import cell_text
from cogeval.games.cogz.state import Action, Hand, Parameters, State
from cogeval.games.cogz.tiles import COLOUR_NAMES, COLOURS, CORNERS, ROTATIONS, TILE_TEXTS

_NOISE: Final = re.compile(r"[\s,/_+-]+")
_COMPASS: Final = (("NORTH", "N"), ("SOUTH", "S"), ("EAST", "E"), ("WEST", "W"))
_CELL: Final = re.compile(r"([A-Z])([1-9])")


def parse_reply(state: State, seat: int, reply: Mapping[str, object]) -> Action:
    """Reads a reply object as an action of the seat.

    Letter case, blanks and the order of a tile's letters do not matter, and colours may be spelled out: "GR"
    or "green red" at NE means green at NE.

    Raises:
        ActionError: when a field is missing or cannot be read, or the hand has no such tile.
    """
    slot, first = _tile(reply, state.hands[seat])
    corner = _corner(reply)
    row, column = _cell(reply, state.layout)
    tile = state.hands[seat][slot]
    if TILE_TEXTS[tile][0] != first:
        corner = (corner + 2) % 4  # the tile's second colour was named first
    return Action(slot, corner % len(ROTATIONS[tile]), row, column)


def _read(reply: Mapping[str, object], name: str) -> str:
    """A field without blanks and marks, in capitals; "" when it is no text."""
    value = reply.get(name)
    return _NOISE.sub("", value).upper() if isinstance(value, str) else ""


def _refusal(reply: Mapping[str, object], name: str, what: str) -> ActionError:
    got = f"{reply[name]!r:.40}" if name in reply else "nothing"
    return ActionError(f'expected "{name}" as {what}, got {got}')


def _tile(reply: Mapping[str, object], hand: Hand) -> tuple[int, str]:
    """The first slot that holds the tile, and the colour that was named first."""
    texts = [TILE_TEXTS[tile] for tile in hand]
    written = _read(reply, "tile")
    for name, letter in zip(COLOUR_NAMES, COLOURS, strict=True):
        written = written.replace(name.upper(), letter)
    text = "".join(sorted(written, key=COLOURS.find))
    if text not in texts:
        raise _refusal(reply, "tile", f"a tile of your hand ({', '.join(dict.fromkeys(texts))})")
    return texts.index(text), written[0]


def _corner(reply: Mapping[str, object]) -> int:
    written = _read(reply, "corner")
    for word, letter in _COMPASS:
        written = written.replace(word, letter)
    if written not in CORNERS:
        raise _refusal(reply, "corner", f'{", ".join(CORNERS)}: where the first letter of "tile" shall lie')
    return CORNERS.index(written)


def _cell(reply: Mapping[str, object], layout: Layout) -> tuple[int, int]:
    found = _CELL.fullmatch(_read(reply, "cell"))
    row, column = (int(found[2]) - 1, ord(found[1]) - ord("A")) if found else (-1, -1)
    if not (0 <= row < layout.rows and column < layout.columns):
        last = cell_text(len(layout.board) - 1, layout.columns)
        raise _refusal(reply, "cell", f"a column letter and a row number, A1 to {last}")
    return row, column


def write_reply(legal: Swaps, action: Action) -> dict[str, Json]:
    """The reply that says an action: what `parse_reply` reads.

    Args:
        legal: what the seat that swaps may do.
        action: one of it.
    """
    return {
        "tile": TILE_TEXTS[legal.hand[action.slot]],
        "corner": CORNERS[action.rotation],
        "cell": cell_text(action.row * legal.layout.columns + action.column, legal.layout.columns),
    }


def reply_schema(parameters: Parameters, legal: Swaps) -> dict[str, Json]:  # noqa: ARG001 - the board says its own size
    """JSON schema of a reply of a seat that has these swaps."""
    layout = legal.layout
    return {
        "type": "object",
        "properties": {
            "tile": {
                "type": "string",
                "enum": list(dict.fromkeys(TILE_TEXTS[tile] for tile in legal.hand)),
                "description": "the tile of your hand that you lay, by its two colour letters",
            },
            "corner": {
                "type": "string",
                "enum": list(CORNERS),
                "description": "where its first letter's arc lies; its second lies at the opposite corner",
            },
            "cell": {
                "type": "string",
                "enum": [cell_text(cell, layout.columns) for cell in range(len(layout.board))],
                "description": "the cell that it goes to, whose tile you take",
            },
        },
        "required": ["tile", "corner", "cell"],
        "additionalProperties": False,
    }
