"""Ladders: of one run with everything around it, or of several runs together.

Invariant: shows what `report` makes of the recorded episodes; computes nothing.
"""

from __future__ import annotations

import msgspec

from cogeval.cli.arguments import Arguments
from cogeval.cli.output import print_json
from cogeval.cli.output import show as write
from cogeval.cli.settings import config_of, find_runs
from cogeval.cli.status import one_run
from cogeval.cli.summing import sum_up, sum_up_all, summary_json
from cogeval.config import RatingConfig
from cogeval.report.tables import effort_table, fault_table, ladder_table, score_table, seat_tables
from cogeval.store.run import RunDir


def show(arguments: Arguments) -> int:
    """Shows one run: ladder, scores, faults, effort, seats."""
    run = one_run(arguments)
    summary = sum_up(run, config_of(run, arguments.overrides).rating)
    if arguments.switch("--json"):
        print_json(summary_json(summary, [run]))
        return 0
    parts = [ladder_table(summary)]
    if summary.ladder is not None:
        parts += [score_table(summary), fault_table(summary), effort_table(summary)]
        parts += seat_tables(summary.ladder)
    write(*parts)
    return 0


def rate(arguments: Arguments) -> int:
    """Rates several runs jointly."""
    runs = find_runs(arguments, arguments.words)
    summary = sum_up_all(runs, rating_of(runs, arguments))
    if arguments.switch("--json"):
        print_json(summary_json(summary, runs))
        return 0
    parts = [ladder_table(summary)]
    if summary.ladder is not None:
        parts += seat_tables(summary.ladder)
    write(*parts)
    return 0


def rating_of(runs: list[RunDir], arguments: Arguments) -> RatingConfig:
    """How to rate runs together: as the first run says, with what the user overrides now.

    An anchor named now may carry a fingerprint (``quack#1a2b3c``), which no configuration knows.
    """
    anchored = [o for o in arguments.overrides if o.startswith("rating.anchor=")]
    others = [o for o in arguments.overrides if o not in anchored]
    rating = config_of(runs[0], others).rating
    anchor = arguments.value("--anchor") or (
        anchored[-1].partition("=")[2].strip("'\"") if anchored else rating.anchor
    )
    return msgspec.structs.replace(rating, anchor=None if anchor in ("null", "") else anchor)
