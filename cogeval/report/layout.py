"""How tables look on a terminal, in a pipe and in a file: consoles, cells, bars, notes.

Invariant: nothing written here breaks without colour, outside UTF-8 or at 80 columns, and text that
comes from a user or an agent shows literally, whatever is in it. It must not know what is shown.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO

from rich.box import Box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

__all__ = [
    "Column",
    "Grid",
    "IntervalBar",
    "Note",
    "OneLine",
    "escaped",
    "grid",
    "literal",
    "make_console",
    "to_text",
    "with_notes",
]

_RULE_UNDER_HEADER = Box(
    "    \n"
    "    \n"
    " -  \n"  # header rule; cells are parted by one space
    "    \n"
    "    \n"
    "    \n"
    "    \n"
    "    \n",
    ascii=True,
)  # fmt: skip


def make_console(file: IO[str] | None = None) -> Console:
    """A console that reads no markup and no emoji codes in what it prints, and guesses no colours."""
    return Console(file=file, markup=False, emoji=False, highlight=False)


def to_text(content: RenderableType, width: int = 80) -> str:
    """What a file gets: no colour, no trailing spaces, one line break at the end."""
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=False, color_system=None, markup=False, emoji=False,
        highlight=False, legacy_windows=False,
    )  # fmt: skip
    console.print(content)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()).rstrip("\n") + "\n"


def escaped(text: str) -> str:
    r"""The text with everything that could steer a terminal written out (``\x1b``, ``\u202e``)."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def literal(text: str, style: str = "") -> Text:
    """A cell that shows user-supplied text as it is: no markup is read, no control character passed on."""
    return Text(escaped(text), style=style, overflow="fold")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Args:
        title: its header; may hold a line break.
        numeric: right-aligned and never wrapped.
        min_width: characters that a text column keeps when space is short.
        drop: 0: always shown; of the others the highest is left out first when space is short, and with
            it those of the same number.
    """

    title: str
    numeric: bool = True
    min_width: int | None = None
    drop: int = 0


_NAME_WIDTH = 16  # characters that a text column gets, where its cells have them, before others may stay


class Grid:
    """A table with a rule of hyphens under its header and no other lines; see `grid`.

    Where it is drawn decides what is in it: whole columns go before a number is cut or a name broken.

    Args:
        columns: all of them.
        rows: a cell per column.
    """

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[RenderableType]]) -> None:
        self.columns = tuple(columns)
        self.rows = [tuple(row) for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        least, most = self._extents(console, options)
        shown = self._fitting(least, options.max_width)
        yield self._table(shown, _shared_out([(least[i], most[i]) for i in shown], options.max_width))
        gone = [c.title for i, c in enumerate(self.columns) if i not in shown and c.title]
        if gone:
            named = ", ".join(title.replace("-\n", "").replace("\n", " ") for title in gone)
            yield Text(f"on a wider terminal also: {named}", style="dim")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        least, most = self._extents(console, options)
        kept = [i for i, column in enumerate(self.columns) if not column.drop]
        return Measurement(_total([least[i] for i in kept]), _total(most)).with_maximum(options.max_width)

    def _extents(self, console: Console, options: ConsoleOptions) -> tuple[list[int], list[int]]:
        """Per column, the characters that it needs and those that it could fill."""
        wide = options.update(max_width=1000)
        least, most = [], []
        for i, column in enumerate(self.columns):
            header = Text(column.title)
            sizes = [
                Measurement.get(console, wide, cell) for cell in (header, *(row[i] for row in self.rows))
            ]
            most.append(max(size.maximum for size in sizes))
            if column.numeric:
                least.append(most[-1])
            elif any(isinstance(row[i], IntervalBar) for row in self.rows):
                least.append(max(size.minimum for size in sizes))
            else:
                least.append(min(most[-1], max(column.min_width or 0, sizes[0].minimum, _NAME_WIDTH)))
        return least, most

    def _fitting(self, least: Sequence[int], width: int) -> list[int]:
        """The columns that have room, in order."""
        shown = list(range(len(self.columns)))
        for level in sorted({column.drop for column in self.columns if column.drop}, reverse=True):
            if _total([least[i] for i in shown]) <= width:
                break
            shown = [i for i in shown if self.columns[i].drop != level]
        return shown

    def _table(self, shown: Sequence[int], widths: Sequence[int]) -> Table:
        table = Table(box=_RULE_UNDER_HEADER, show_edge=False, pad_edge=False, padding=0, header_style="bold")
        for i, width in zip(shown, widths, strict=True):
            column = self.columns[i]
            table.add_column(
                Text(column.title),
                justify="right" if column.numeric else "left",
                overflow="fold",  # what has no room at all goes on below: nothing is cut
                vertical="top",
                width=width,
            )
        for row in self.rows:
            table.add_row(*(row[i] for i in shown))
        return table


def _total(widths: Sequence[int]) -> int:
    """The characters of a line: cells are parted by one space."""
    return sum(widths) + max(len(widths) - 1, 0)


def _shared_out(extents: Sequence[tuple[int, int]], width: int) -> list[int]:
    """A width per column: what it needs, then what is left over, from the left.

    Args:
        extents: per column, the characters that it needs and those that it could fill.
        width: characters of a line; with fewer than are needed, the widest columns shrink.
    """
    widths = [least for least, _ in extents]
    spare = width - _total(widths)
    for i, (least, most) in enumerate(extents):
        extra = min(most - least, max(spare, 0))
        widths[i] += extra
        spare -= extra
    while spare < 0 and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
        spare += 1
    return widths


def grid(columns: Sequence[Column], rows: Iterable[Sequence[RenderableType]]) -> Grid:
    """A table with a rule of hyphens under its header and no other lines."""
    return Grid(columns, rows)


@dataclass(frozen=True, slots=True)
class Note:
    """A line under a table.

    Args:
        text: shown literally.
        warning: something is wrong with the data rather than worth knowing.
    """

    text: str
    warning: bool = False


def with_notes(title: str, table: Grid, notes: Sequence[Note]) -> Group:
    """A title, a table and the notes under it."""
    parts: list[RenderableType] = [literal(title, "bold"), Text(), table]
    if notes:
        lines = Table.grid(padding=(0, 1, 0, 0))
        lines.add_column(no_wrap=True)
        lines.add_column(overflow="fold")
        for note in notes:
            style = "yellow" if note.warning else "dim"
            lines.add_row(Text("warning:" if note.warning else "note:", style=style), literal(note.text))
        parts += [Text(), lines]
    return Group(*parts)


@dataclass(frozen=True, slots=True)
class OneLine:
    """Text of anybody's in the space of one line: shown literally, its end cut off where it is too long.

    Args:
        text: shown literally.
    """

    text: str

    def within(self, width: int) -> str:
        """The line.

        Args:
            width: most characters that it may take.
        """
        shown = escaped(self.text)
        return shown if cell_len(shown) <= width else set_cell_size(shown, max(width - 3, 0)).rstrip() + "..."

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self.within(options.max_width))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(20, options.max_width), min(cell_len(escaped(self.text)), options.max_width))


@dataclass(frozen=True, slots=True)
class IntervalBar:
    """An interval drawn with characters on an axis that all rows of a column share.

    Args:
        point: where the dot is.
        low: left end; None draws the dot alone.
        high: right end; None draws the dot alone.
        start: value at the left edge of the axis.
        stop: value at its right edge.
        zero: the value that a tick marks in every row.
    """

    point: float
    low: float | None
    high: float | None
    start: float
    stop: float
    zero: float = 0.0

    @staticmethod
    def axis(values: Iterable[float | None]) -> tuple[float, float]:
        """The axis that holds all of the values and 0."""
        known = [0.0, *(value for value in values if value is not None)]
        low, high = min(known), max(known)
        return (low, high) if high > low else (low - 1.0, high + 1.0)

    def characters(self, width: int, fancy: bool) -> str:
        """The bar.

        Args:
            width: number of characters.
            fancy: box-drawing characters rather than ASCII.
        """
        line, dot, tick = ("━", "●", "┊") if fancy else ("-", "o", ".")
        cells = [" "] * width
        cells[self._cell(self.zero, width)] = tick
        if self.low is not None and self.high is not None:
            for i in range(self._cell(self.low, width), self._cell(self.high, width) + 1):
                cells[i] = line
        cells[self._cell(self.point, width)] = dot
        return "".join(cells)

    def _cell(self, value: float, width: int) -> int:
        place = (value - self.start) / (self.stop - self.start)
        return round(min(max(place, 0.0), 1.0) * (width - 1))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fancy = options.is_terminal and not console.is_dumb_terminal and not options.ascii_only
        yield Segment(self.characters(options.max_width, fancy), Style.parse("cyan"))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(8, options.max_width), min(28, options.max_width))
