"""What all legal swaps of a seat are worth, weighed at once with numpy.

Invariant: for every legal swap the colours' points and mechanisms are those of `chains.value_of`, and the
swaps and their order are those of `legal.Swaps`. Must not know what a seat wants: it brings a table a colour.

A worth is one integer: points + NUT_STEP * mechanisms. An arc's chain is the sum of its two arms and the arc
itself; an arm that closes adds half a `NUT_STEP`, so that two of them carry into the mechanism's digit, and
the half that one alone leaves is masked away. Only arms that come back to their own cell break the sum: those
few are put right one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cogeval.games.cogz.chains import BACK, BORDER, EDGE, LOCK_MASK, Layout, chain
from cogeval.games.cogz.legal import choices
from cogeval.games.cogz.state import Action, Hand
from cogeval.games.cogz.tiles import NUM_COLOURS, NUM_PLACED

Ints: TypeAlias = npt.NDArray[np.intp]
Floats: TypeAlias = npt.NDArray[np.float64]

NUT_STEP: Final = 512
_CLOSED: Final = NUT_STEP // 2
NUM_WORTHS: Final = 3 * NUT_STEP  # two arcs of one colour may complete two mechanisms

POINTS: Final[Ints] = np.arange(NUM_WORTHS) % NUT_STEP
"""POINTS[worth]: of a colour. At most 196: two arcs in one chain of all segments of the largest board."""
MECHANISMS: Final[Ints] = np.arange(NUM_WORTHS) // NUT_STEP
"""MECHANISMS[worth]: of a colour, 0..2."""

_GRID: Final = 2.0**20

_ILLEGAL: Final = NUM_COLOURS * NUM_WORTHS  # a factor: whatever it multiplies points past every table
_NEVER: Final[Floats] = np.array([-np.inf])

_FITS: Final[Ints] = np.array(
    [[q in (colour, BORDER) for q in range(BORDER + 1)] for colour in range(4)], np.intp
)
"""_FITS[colour, colour of an arm]: the edge of the board goes on with any colour."""
_ENDS: Final[Ints] = np.array([_CLOSED if end == EDGE else 0 for end in range(BACK + 4)], np.intp)
"""_ENDS[end of an arm]: what it adds to a worth."""


_LYING: Final = len(LOCK_MASK) * NUM_PLACED  # what may lie in a cell: locked * 32 + code


def on_grid(values: Floats) -> Floats:
    """Values to the nearest multiple of 2**-20: their sums are exact.

    So no choice between swaps that are worth the same hangs on how a machine rounds a logarithm.
    """
    grid: Floats = np.rint(values * _GRID) / _GRID
    return grid


def _factors() -> Ints:
    """For (arc * 32 + code) * _LYING + what lies there: 1 when the arc counts, else 0 (R4.1).

    `_ILLEGAL` when the swap is not legal (R3.4).
    """
    table = np.zeros((2, NUM_PLACED, 4, NUM_PLACED), np.intp)
    for code in range(NUM_PLACED):
        for lying in range(NUM_PLACED):
            changed = lying ^ code
            for locked, mask in enumerate(LOCK_MASK):
                table[0, code, locked, lying] = _ILLEGAL if changed & mask else changed & 0b11100 > 0
                table[1, code, locked, lying] = _ILLEGAL if changed & mask else changed & 0b10011 > 0
    return table.reshape(-1)


_FACTORS: Final = _factors()


class _Rows(NamedTuple):
    """What a hand can lay, as rows: each choice's first arc, then each choice's second.

    Tiles of one colour come first, since the worths of their two arcs are one sum.
    """

    choices: tuple[tuple[int, int, int], ...]  # (slot, rotation, code), in this order
    singles: int  # how many of them are of one colour
    canonical: Ints | None  # place of the game's n-th choice; None: they are in that order
    arms: tuple[Ints, Ints]  # per row: colour * 4 + port of the arc's two arms
    lone: Ints  # (rows, cells): the arc itself, and less than nothing for one alone in the board's corner
    factors: Ints  # (rows, 1): where its part of `_FACTORS` begins
    tables: Ints  # (rows, 1): where the table of its colour begins
    at: tuple[tuple[int, ...], ...]  # for colour * 4 + corner: the rows of such an arc
    twins: tuple[tuple[int, ...], ...]  # for a colour: the choices of which both arcs have it


@lru_cache(2048)
def _rows(hand: Hand, rows: int, columns: int) -> _Rows:
    canonical = choices(hand)
    order = sorted(range(len(canonical)), key=lambda i: canonical[i][2] >> 2 & 3 != canonical[i][2] & 3)
    laid = tuple([canonical[i] for i in order])
    arcs = [(code >> 4, code >> 2 & 3) for _, _, code in laid]
    arcs += [((code >> 4) + 2, code & 3) for _, _, code in laid]
    corner_cells = (columns - 1, rows * columns - 1, (rows - 1) * columns, 0)  # NE SE SW NW
    lone = np.ones((len(arcs), rows * columns), np.intp)
    for row, (corner, _) in enumerate(arcs):
        lone[row, corner_cells[corner]] -= NUT_STEP  # R3.2: one segment is no mechanism
    return _Rows(
        choices=laid,
        singles=sum(code >> 2 & 3 == code & 3 for _, _, code in laid),
        canonical=None if order == sorted(order) else np.argsort(order),
        arms=(
            np.array([colour * 4 + corner for corner, colour in arcs]),
            np.array([colour * 4 + (corner + 1) % 4 for corner, colour in arcs]),
        ),
        lone=lone,
        factors=np.array([[arc * NUM_PLACED + code] for arc in (0, 1) for _, _, code in laid]) * _LYING,
        tables=np.array([[colour * NUM_WORTHS] for _, colour in arcs]),
        at=tuple([tuple([n for n, arc in enumerate(arcs) if arc == (i & 3, i >> 2)]) for i in range(16)]),
        twins=tuple(
            [
                tuple([n for n, (_, _, code) in enumerate(laid) if code & 15 == colour * 5])
                for colour in range(NUM_COLOURS)
            ]
        ),
    )


class Candidates:
    """All swaps that a hand allows on a board.

    Args:
        layout: of the board.
        hand: of the seat; fewer than three tiles will do.
    """

    __slots__ = ("_hand", "_layout", "_rows", "_worths")

    def __init__(self, layout: Layout, hand: Hand) -> None:
        rows = self._rows = _rows(hand, layout.rows, layout.columns)
        self._layout, self._hand = layout, hand
        cells, num = len(layout.board), len(rows.choices)
        arms = (
            np.frombuffer(layout.arm_colour + layout.arm_length + layout.arm_end, np.uint8)
            .reshape(3, cells, 4)
            .transpose(0, 2, 1)
            .astype(np.intp, order="C")
            .reshape(3, 4 * cells)
        )
        seen = (_FITS.take(arms[0], 1) * (_ENDS.take(arms[2]) + arms[1])).reshape(4 * NUM_COLOURS, cells)
        worths = seen.take(rows.arms[0], 0)
        worths += seen.take(rows.arms[1], 0)
        worths += rows.lone
        worths &= ~_CLOSED
        if layout.arm_end.translate(None, b"\0\1"):
            _mend(worths, layout, rows)
        lying = np.frombuffer(layout.locked, np.uint8) * NUM_PLACED + np.frombuffer(layout.board, np.uint8)
        worths *= _FACTORS.take(rows.factors + lying)
        if rows.singles:
            worths[: rows.singles] += worths[num : num + rows.singles]
        worths += rows.tables
        self._worths = worths

    def weigh(self, tables: Sequence[Floats]) -> Floats:
        """The value of every swap: the sum of what its colours are worth.

        Args:
            tables: one a colour, (NUM_WORTHS,): the value of each worth; that of worth 0 is 0.

        Returns:
            (choices of `legal.choices`, cells): minus infinity where a swap is illegal. The first of equal
            ones is the first in the game's order.
        """
        rows, worths = self._rows, self._worths
        flat = np.concatenate((*tables, _NEVER))
        num = len(rows.choices)
        values: Floats = flat.take(worths[:num], mode="clip")
        if rows.singles < num:
            values[rows.singles :] += flat.take(worths[num + rows.singles :], mode="clip")
        return values if rows.canonical is None else values.take(rows.canonical, 0)

    def action(self, index: int) -> Action:
        """The swap at a flat index of what `weigh` gives."""
        choice, cell = divmod(index, len(self._layout.board))
        slot, rotation, _ = choices(self._hand)[choice]
        return Action(slot, rotation, *divmod(cell, self._layout.columns))


def _mend(worths: Ints, layout: Layout, rows: _Rows) -> None:
    """Puts right the arcs whose arms come back to their cell: loops, and two arcs of one chain."""
    num, locked, board = len(rows.choices), layout.locked, layout.board
    for arm, end in enumerate(layout.arm_end):
        cell, port, back = arm >> 2, arm & 3, end - BACK
        if back < 0 or (port - back) & 3 == 1:  # two arms that are one: the first will do
            continue
        held = locked[cell]
        if held == 0b11 or (held >> (port >> 1) & 1 and board[cell] >> 4 == port & 1):
            continue  # nothing that may be laid there changes an arc of this chain
        colour, beside = layout.arm_colour[arm], (back - port) & 3 == 1
        if beside:
            for row in rows.at[colour << 2 | port]:
                worths[row, cell] = NUT_STEP + 1 + layout.arm_length[arm]
        for row in rows.twins[colour]:
            code = rows.choices[row][2]
            if not (beside and code >> 4 == port & 1):
                _mend_twin(worths[row::num, cell], layout, cell, code)


def _mend_twin(worths: Ints, layout: Layout, cell: int, code: int) -> None:
    """The worths of two arcs of one colour that may be one chain: its mechanism counts once (R4.3)."""
    counted = False
    for arc, bits in ((0, 0b11100), (1, 0b10011)):
        found = chain(layout, cell, code, arc)
        counts = found.mechanism and not (counted and found.joined)
        worths[arc] = found.length + NUT_STEP * counts
        counted = counts and bool((layout.board[cell] ^ code) & bits)
