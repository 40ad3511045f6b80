"""`cogeval status --watch`: the same again and again, until the run has ended.

Invariant: only reads, and looks at no shard twice; a terminal is redrawn, anything else gets plain lines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Group
from rich.live import Live
from rich.text import Text

from cogeval.cli.app import INTERRUPTED, complain
from cogeval.cli.output import print_json, show
from cogeval.cli.picturing import COMPLETE, RUNNING, line_of, pictured, progress_bar, warn_of, way_out
from cogeval.cli.progress import PLAIN_EVERY_S
from cogeval.cli.standing import standing
from cogeval.report.layout import make_console
from cogeval.store.places import place_at
from cogeval.store.roots import list_runs
from cogeval.store.run import RunDir
from cogeval.store.totals import KnownShards

REDRAW_S: Final = 2.0
GRACE_S: Final = 10.0
"""How long a run without a driver is watched: one may be about to start, or to be resumed."""

DIGEST_S: Final = 10.0
"""How long the digest of a complete run is waited for: its driver rates before it writes it down."""

FIRST_RUN_S: Final = 1.0  # between two looks for a run where there is none

Show = Callable[[dict[str, Any]], None]


def watch(run: RunDir, *, as_json: bool, sleep: Callable[[float], None] = time.sleep) -> int:
    """Shows how a run stands until it is complete, or nobody has driven it for `GRACE_S`.

    Args:
        run: the run.
        as_json: print one JSON object a look.
        sleep: waits for so many seconds.

    Returns:
        The exit code.
    """
    on_terminal = sys.stdout.isatty() and not as_json
    every_s = REDRAW_S if on_terminal else PLAIN_EVERY_S
    try:
        with _drawing(run) if on_terminal else _writing(as_json=as_json) as shown:
            facts, num_looks = _look_on(run, shown, every_s, sleep)
    except KeyboardInterrupt:  # the way to leave: nothing is amiss
        return INTERRUPTED
    warn_of(facts, run)
    if num_looks == 1 and facts["state"] == COMPLETE:
        complain(f"{run.run_id} was complete already; to watch another run, begin it first, or name it")
    if not as_json:
        show(*way_out(facts, run))
    return 0


def wait_for_run(root: str, *, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Waits until there is a run under a root.

    Args:
        root: directory of runs, or a URI.
        sleep: waits for so many seconds.

    Returns:
        False when Ctrl-C ended the wait.
    """
    try:
        if not list_runs(root):
            complain(f"waiting for a run in {place_at(root).where()}")
        while not list_runs(place_at(root)):  # which is patient: the first look has found the store
            sleep(FIRST_RUN_S)
    except KeyboardInterrupt:
        return False
    return True


def _look_on(
    run: RunDir, shown: Show, every_s: float, sleep: Callable[[float], None]
) -> tuple[dict[str, Any], int]:
    """Looks until the run has ended; gives the last look, and how many there were."""
    known = KnownShards()
    idle_s = 0.0
    num_looks = 0
    while True:
        num_looks += 1
        began = time.monotonic()
        facts = standing(run, known, digest=False)
        if facts["state"] == COMPLETE:
            facts = _with_digest(run, known, sleep)
            shown(facts)
            return facts, num_looks
        shown(facts)
        idle_s = 0.0 if facts["state"] == RUNNING else idle_s + every_s
        if idle_s > GRACE_S:
            return facts, num_looks
        sleep(max(0.1, every_s - (time.monotonic() - began)))


def _with_digest(run: RunDir, known: KnownShards, sleep: Callable[[float], None]) -> dict[str, Any]:
    """The last look at a complete run: its digest computed where it is small, else from its log."""
    facts, waited_s = standing(run, known), 0.0
    while facts["digest"] is None and facts["recorded"] and waited_s < DIGEST_S:
        sleep(REDRAW_S)
        waited_s += REDRAW_S
        facts = standing(run, known)
    return facts


@contextmanager
def _drawing(run: RunDir) -> Iterator[Show]:
    """Redraws in place."""
    with Live(console=make_console(sys.stdout), auto_refresh=False) as live:

        def shown(facts: dict[str, Any]) -> None:
            looked = Text(f"last look at {time.strftime('%H:%M:%S')}", style="dim")
            live.update(Group(progress_bar(facts), *pictured(facts, run), looked), refresh=True)

        yield shown


@contextmanager
def _writing(*, as_json: bool) -> Iterator[Show]:
    """Writes a line, or an object, a look."""

    def shown(facts: dict[str, Any]) -> None:
        if as_json:
            print_json(facts)
        else:
            sys.stdout.write(line_of(facts) + "\n")
        sys.stdout.flush()

    yield shown
