"""Two agents side by side, block by block.

Invariant: the comparison is over the blocks that both played, whatever runs they lie in.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict

from cogeval.cli.arguments import Arguments
from cogeval.cli.joining import check_suffix, join
from cogeval.cli.output import print_json, show
from cogeval.cli.recorded import open_note, warn_of_damage
from cogeval.cli.settings import find_runs
from cogeval.cli.showing import rating_of
from cogeval.errors import InputError
from cogeval.ratings import compare as compare_agents
from cogeval.report.tables import comparison_table
from cogeval.store.roots import LATEST


def compare(arguments: Arguments) -> int:
    """Compares agent B with agent A."""
    if len(arguments.words) < 2:
        raise InputError(
            f"expected two agents, A and B, got {len(arguments.words)}; for example {_example(arguments)}"
        )
    a, b, *names = arguments.words
    runs = find_runs(arguments, names or [LATEST])
    joined = join(runs, decisions=False)
    warn_of_damage(joined.runs)
    if not joined.table.num_episodes:
        named = ", ".join(run.run_id for run in runs)
        notes = [note for note in map(open_note, joined.runs) if note is not None]
        raise InputError(
            "; ".join([f"nothing is recorded in {named} yet, so there is nothing to compare", *notes])
        )
    for name in (a, b):
        check_suffix(joined, name)
    rating = rating_of(runs, arguments)
    comparison = compare_agents(joined.table, a, b, confidence=rating.confidence)
    if arguments.switch("--json"):
        print_json({**asdict(comparison), "run_ids": [run.run_id for run in runs]})
    else:
        show(comparison_table(comparison))
    return 0


def _example(arguments: Arguments) -> str:
    """A command that could be meant: two agents of the latest run, the one that was named first."""
    try:
        (run,) = find_runs(arguments, [LATEST])
        known = [str(agent["name"]) for agent in run.manifest["agents"]]
    except InputError:  # no run, or none that can be read: the example is only a form
        known = []
    known.sort(key=lambda name: name not in arguments.words)
    pair = known[:2] if len(known) > 1 else ["quack", "assayer"]
    return shlex.join(["cogeval", "compare", *pair, *arguments.overrides])
