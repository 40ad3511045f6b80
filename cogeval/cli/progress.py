"""What a person sees while a run is played.

Invariant: everything goes to stderr; a terminal gets a live view, anything else a plain line every few
seconds. The live ladder is fitted to the pairs counted so far and is only shown, never kept.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from cogeval.cli.output import counted, duration
from cogeval.core.local_quota import dollars
from cogeval.ratings import ELO_PER_LOG_UNIT
from cogeval.ratings.cells import cells_from_matrix
from cogeval.ratings.pairwise import Model, fit
from cogeval.ratings.table import FloatArray
from cogeval.report.layout import Column, Grid, grid, literal, make_console

if TYPE_CHECKING:  # it would import ray
    from cogeval.cluster.driver import Progress

PLAIN_EVERY_S: Final = 5.0
STOPPING: Final = "stopping: sealing what is finished"
_MAX_AGENTS = 12  # of the live ladder; the final one has all
_BAR_WIDTH = 30


class View(Protocol):
    """Something that shows progress between `with` and its end."""

    def __call__(self, progress: Progress) -> None:
        """Shows a state."""

    def __enter__(self) -> View:
        """Begins to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the last state standing."""


def make_view(*, quiet: bool, num_faults: int = 0) -> View:
    """The view for this stderr.

    Args:
        quiet: show nothing.
        num_faults: of earlier sessions: like episodes and dollars, faults are the whole run's.
    """
    if quiet:
        return SilentView()
    if sys.stderr.isatty():
        return LiveView(num_faults=num_faults)
    return PlainView(sys.stderr.write, num_faults=num_faults)


class SilentView:
    """Shows nothing."""

    def __call__(self, progress: Progress) -> None:
        """Does nothing."""

    def __enter__(self) -> SilentView:
        """Does nothing."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Does nothing."""


class PlainView:
    """A line now and then.

    Args:
        write: takes a line with its line break.
        clock: seconds since an arbitrary start.
        num_faults: of earlier sessions.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
        *,
        num_faults: int = 0,
    ) -> None:
        self._num_faults = num_faults
        self._stopping = False
        self._write = write
        self._clock = clock
        self._written_at = -math.inf
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Writes a line when the last one is old enough."""
        self._last = progress
        if progress.stopping and not self._stopping:
            self._stopping = True
            self._write(f"{STOPPING}\n")
        elif self._clock() - self._written_at >= PLAIN_EVERY_S:
            self._line(progress)

    def __enter__(self) -> PlainView:
        """Says that workers start, which takes seconds."""
        self._write("starting workers\n")
        self._written_at = self._clock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Writes the last state."""
        if self._last is not None:
            self._line(self._last)

    def _line(self, progress: Progress) -> None:
        self._written_at = self._clock()
        self._write(f"{', '.join(words(progress, self._num_faults))}\n")


class LiveView:
    """A bar, a line of figures and the ladder so far, redrawn in place.

    Args:
        num_faults: of earlier sessions.
    """

    def __init__(self, *, num_faults: int = 0) -> None:
        self._num_faults = num_faults
        console = make_console(sys.stderr)
        starting = Spinner("line", Text("starting workers"))
        self._live = Live(starting, console=console, refresh_per_second=4, transient=False)
        self._last: Progress | None = None
        self._resumed = False

    def __call__(self, progress: Progress) -> None:
        """Redraws; what asked for a stop is answered at once."""
        if self._last is None:
            self._resumed = progress.recorded > 0
        self._last = progress
        view = drawn(progress, resumed=self._resumed, num_faults=self._num_faults)
        parts = [view, *([Text(STOPPING)] if progress.stopping else [])]
        self._live.update(Group(*parts), refresh=progress.stopping)

    def __enter__(self) -> LiveView:
        """Begins to draw."""
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops drawing; the bar stays, the ladder so far goes: the final one follows."""
        last, num_faults = self._last, self._num_faults
        self._live.update(Text("") if last is None else drawn(last, ladder=False, num_faults=num_faults))
        self._live.__exit__(kind, error, trace)


def doing(what: str, *, quiet: bool) -> AbstractContextManager[object]:
    """Says what is being waited for, while it is; on a terminal only."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    return make_console(sys.stderr).status(Text(what), spinner="line")


def words(progress: Progress, num_faults: int = 0) -> list[str]:
    """The figures of a state, the most important first; all are the whole run's.

    Args:
        progress: the state.
        num_faults: of earlier sessions, which the state does not count.
    """
    said = [f"{progress.done:,} of {progress.total:,} episodes"]
    left = progress.total - progress.done
    if progress.episodes_per_s > 0 and left:
        rate = progress.episodes_per_s
        said.append(f"{rate:,.0f}/s now" if rate >= 10 else f"{rate:.1f}/s now")
        said.append(f"{duration(left / rate)} to go")
    said.append(counted(num_faults + progress.tally.num_faults, "fault"))
    if progress.void:
        said.append(f"{progress.void:,} void")
    if progress.spent_usd:
        said.append(dollars(progress.spent_usd))
    return [*said, *lost_words(progress)]


def lost_words(progress: Progress) -> list[str]:
    """What was lost, each kind with its number; nothing when nothing was."""
    lost = [(progress.num_lost_workers, "lost worker"), (progress.num_lost_seat_actors, "lost seat actor")]
    return [counted(num, what) for num, what in lost if num]


def bar(done: int, total: int) -> Table:
    """A bar and its percentage."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_row(ProgressBar(total=total, completed=done, width=_BAR_WIDTH), Text(f"{done / total:4.0%}"))
    return table


def drawn(
    progress: Progress, *, ladder: bool = True, resumed: bool = False, num_faults: int = 0
) -> RenderableType:
    """A state as the live view draws it.

    Args:
        progress: the state.
        ladder: the ladder so far, too.
        resumed: an earlier session recorded episodes, which the ladder so far does not count.
        num_faults: that it recorded.
    """
    drawn_bar = bar(progress.done, max(progress.total, 1))
    parts: list[RenderableType] = [drawn_bar, Text(", ".join(words(progress, num_faults)))]
    if ladder and progress.tally.num_seats.any():
        parts += [Text(), _ladder(progress, "this session" if resumed else "so far")]
    return Group(*parts)


def _ladder(progress: Progress, title: str) -> Grid:
    """The ladder of what this driver saw."""
    tally = progress.tally
    elo = live_elo(tally.wins)
    order = sorted(range(len(elo)), key=lambda i: -elo[i])
    columns = [
        Column(title, numeric=False, min_width=12), Column("Elo"), Column("share", drop=1),
        Column("seats", drop=2),
    ]  # fmt: skip
    rows = []
    for i in order[:_MAX_AGENTS]:
        seats = int(tally.num_seats[i])
        share = f" {tally.share_sum[i] / seats:.3f}" if seats else " -"
        rows.append(
            [literal(progress.names[i], "bold"), Text(f" {elo[i]:+.0f}"), Text(share), Text(f" {seats:,}")]
        )
    return grid(columns, rows)


def live_elo(wins: FloatArray) -> list[float]:
    """Elo of the pairs counted so far, without seats or intervals; the mean is 0.

    Args:
        wins: float [agents, agents], wins of row over column, ties half.
    """
    theta = fit(Model(cells_from_matrix(wins), seats=False)).theta
    return [float(value) for value in (theta - theta.mean()) * ELO_PER_LOG_UNIT]
