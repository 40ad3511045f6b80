"""COGZ a second time, slow and plain: written from the rules, to compare the engine with.

Invariant: nothing is remembered between two questions; every chain is flooded anew over the whole board.
Must not know the engine: boards are dicts, colours are letters, a tile is the corners of its two arcs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Cell: TypeAlias = tuple[int, int]
"""Row from the top, column from the left."""

Placed: TypeAlias = dict[int, str]
"""A placed tile: corner (0 NE, 1 SE, 2 SW, 3 NW) to the letter of the colour of the arc there."""

Board: TypeAlias = dict[Cell, Placed]
Segment: TypeAlias = tuple[Cell, int]
"""A cell and the corner of one of its two arcs."""

COLOURS = "RGBY"
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # through the ports N, E, S, W
NUM_ROTATIONS = 4
NUT_POINTS = 2


def turned(tile: str, rotation: int) -> Placed:
    """A tile as it lies after some quarter turns: its first colour at corner `rotation`."""
    return {rotation: tile[0], (rotation + 2) % 4: tile[1]}


def read(text: str) -> Placed:
    """A placed tile in letters: 0RG has red at NE and green at SW, 1RG red at SE and green at NW."""
    return {int(text[0]): text[1], int(text[0]) + 2: text[2]}


def read_board(lines: Sequence[str]) -> Board:
    return {
        (row, column): read(text)
        for row, line in enumerate(lines)
        for column, text in enumerate(line.split())
    }


def tile_of(placed: Placed) -> str:
    """The two colours in the order R G B Y."""
    return "".join(sorted(placed.values(), key=COLOURS.index))


def met(board: Board, segment: Segment, port: int) -> Segment | None:
    """The arc that meets a segment at one of its ports, None at the edge of the board."""
    (row, column), _ = segment
    down, right = STEPS[port]
    cell = (row + down, column + right)
    if cell not in board:
        return None
    facing = (port + 2) % 4
    return next((cell, corner) for corner in board[cell] if facing in (corner, (corner + 1) % 4))


def colour_of(board: Board, segment: Segment) -> str:
    return board[segment[0]][segment[1]]


def chain(board: Board, start: Segment) -> set[Segment]:
    """Every segment that hangs together with this one."""
    found, new = {start}, [start]
    while new:
        segment = new.pop()
        for port in (segment[1], (segment[1] + 1) % 4):
            other = met(board, segment, port)
            if other and other not in found and colour_of(board, other) == colour_of(board, segment):
                found.add(other)
                new.append(other)
    return found


def is_mechanism(board: Board, segments: set[Segment]) -> bool:
    """Two segments or more, and no port at which the chain meets another colour."""
    meetings = [
        (segment, met(board, segment, port))
        for segment in segments
        for port in (segment[1], (segment[1] + 1) % 4)
    ]
    open_ends = [
        other for segment, other in meetings if other and colour_of(board, other) != colour_of(board, segment)
    ]
    return len(segments) > 1 and not open_ends


def segments_of(board: Board) -> list[Segment]:
    return [(cell, corner) for cell, placed in board.items() for corner in placed]


def locked_in(board: Board) -> set[Segment]:
    """Every segment whose chain is a mechanism now."""
    return {segment for segment in segments_of(board) if is_mechanism(board, chain(board, segment))}


def modified(old: Placed, new: Placed) -> list[int]:
    """The corners of the new tile whose arc the old one did not have."""
    return [corner for corner, colour in new.items() if old.get(corner) != colour]


def is_legal(board: Board, locked: set[Segment], cell: Cell, placed: Placed) -> bool:
    held = [corner for corner in board[cell] if (cell, corner) in locked]
    return all(placed.get(corner) == board[cell][corner] for corner in held)


@dataclass(frozen=True)
class Worth:
    """What a swap brings."""

    points: dict[str, int]
    completed: tuple[str, ...]  # colours of the mechanisms, sorted
    board: Board  # after it


def worth_of(board: Board, cell: Cell, placed: Placed) -> Worth:
    after = {**board, cell: placed}
    points = dict.fromkeys(COLOURS, 0)
    completed: list[set[Segment]] = []
    for corner in modified(board[cell], placed):
        segments = chain(after, (cell, corner))
        points[placed[corner]] += len(segments)
        if is_mechanism(after, segments) and segments not in completed:
            completed.append(segments)
    colours = sorted(colour_of(after, next(iter(segments))) for segments in completed)
    return Worth(points, tuple(colours), after)


def codes(rows: int, columns: int) -> Iterator[tuple[int, int, Cell]]:
    """Every swap that can be written, in the order of its code: (slot, rotation, cell)."""
    for number in range(12 * rows * columns):
        choice, place = divmod(number, rows * columns)
        yield *divmod(choice, NUM_ROTATIONS), divmod(place, columns)


def legal_swaps(board: Board, locked: set[Segment], hand: Sequence[str]) -> list[tuple[int, int, Cell]]:
    """All legal swaps, the ones that look like others included."""
    rows, columns = (1 + max(axis) for axis in zip(*board, strict=True))
    return [
        (slot, rotation, cell)
        for slot, rotation, cell in codes(rows, columns)
        if is_legal(board, locked, cell, turned(hand[slot], rotation))
    ]


def first_of_each(swaps: Sequence[tuple[int, int, Cell]], hand: Sequence[str]) -> list[tuple[int, int, Cell]]:
    """Of the swaps that lay the same arcs into the same cell, the first."""
    kept: dict[object, tuple[int, int, Cell]] = {}
    for slot, rotation, cell in swaps:
        look = tuple(sorted(turned(hand[slot], rotation).items()))
        kept.setdefault((look, cell), (slot, rotation, cell))
    return list(kept.values())


@dataclass
class Table:
    """Everything that changes in an episode, changed in place."""

    board: Board
    hands: list[list[str]]
    rounds: int
    lever: int
    supply: dict[str, int]
    points: list[dict[str, int]]
    nuts: list[dict[str, int]]

    def finals(self) -> list[dict[str, int]]:
        return [
            {colour: points[colour] + NUT_POINTS * nuts[colour] for colour in COLOURS}
            for points, nuts in zip(self.points, self.nuts, strict=True)
        ]


@dataclass(frozen=True)
class Row:
    """One swap as it went."""

    round: int
    seat: int
    bonus: bool
    points: dict[str, int]
    completed: tuple[str, ...]
    nuts: tuple[str, ...]
    levers: int
    taken: str


def new_table(board: Board, hands: Sequence[Sequence[str]], rounds: int, lever: int, nuts: int) -> Table:
    return Table(
        board=dict(board),
        hands=[list(hand) for hand in hands],
        rounds=rounds,
        lever=lever,
        supply=dict.fromkeys(COLOURS, nuts),
        points=[dict.fromkeys(COLOURS, 0) for _ in hands],
        nuts=[dict.fromkeys(COLOURS, 0) for _ in hands],
    )


def swap(table: Table, seat: int, choice: tuple[int, int, Cell]) -> tuple[Worth, list[str], int, str]:
    """Carries out one swap: its worth, the nuts, the levers passed, the tile taken."""
    slot, rotation, cell = choice
    worth = worth_of(table.board, cell, turned(table.hands[seat][slot], rotation))
    taken = tile_of(table.board[cell])
    table.hands[seat][slot] = taken
    table.board = worth.board
    levers = 0
    for colour, points in worth.points.items():
        old = table.points[seat][colour]
        table.points[seat][colour] = old + points
        levers += old < table.lever <= old + points
    nuts = []
    for colour in worth.completed:
        if table.supply[colour]:
            table.supply[colour] -= 1
            table.nuts[seat][colour] += 1
            nuts.append(colour)
    return worth, nuts, levers, taken


def play(table: Table, choices: Iterator[tuple[int, int, Cell]]) -> list[Row]:
    """The whole turn loop; a seat without a legal swap loses the turn.

    Raises:
        StopIteration: when there are fewer choices than swaps.
    """
    rows = []
    for round_ in range(table.rounds):
        for seat in range(len(table.hands)):
            pending, bonus = 1, False
            while pending:
                pending -= 1
                if legal_swaps(table.board, locked_in(table.board), table.hands[seat]):
                    worth, nuts, levers, taken = swap(table, seat, next(choices))
                    rows.append(
                        Row(round_, seat, bonus, worth.points, worth.completed, tuple(nuts), levers, taken)
                    )
                    pending += levers
                    bonus = True
    return rows
