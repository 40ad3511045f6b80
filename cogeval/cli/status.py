"""How a run stands, and whether its numbers hold.

Invariant: reads only; what is damaged is named, left out and never repaired here.
"""

from __future__ import annotations

from cogeval.cli.app import INTERRUPTED
from cogeval.cli.arguments import Arguments
from cogeval.cli.output import counted, print_json, show, warn
from cogeval.cli.picturing import pictured, warn_of, way_out
from cogeval.cli.program import typed
from cogeval.cli.settings import called, find_runs, run_root
from cogeval.cli.standing import standing
from cogeval.cli.watching import wait_for_run, watch
from cogeval.errors import InputError
from cogeval.report.layout import escaped
from cogeval.store.checks import check_run
from cogeval.store.roots import LATEST
from cogeval.store.run import RunDir
from cogeval.store.spool import out_of_reach
from cogeval.store.totals import computed_digest


def one_run(arguments: Arguments) -> RunDir:
    """The run of a command that takes exactly one; warns of what may lie where this host does not look."""
    if len(arguments.words) > 1:
        raise InputError(f"expected one RUN, got {' '.join(map(repr, arguments.words))}")
    run = find_runs(arguments, arguments.words)[0]
    warn(_out_of_reach(run))
    return run


def _out_of_reach(run: RunDir) -> list[str]:
    """Where open shards of a run that nobody drives, and that is not complete, may lie out of reach."""
    try:
        told = out_of_reach(run.place)
    except InputError:  # a damaged manifest, which the command tells better
        return []
    if not told or run.driver() is not None or any(e.get("event") == "complete" for e in run.log_lines()):
        return []
    return told


def status(arguments: Arguments) -> int:
    """Says how far a run is, once or, with --watch, again and again."""
    as_json, is_watched = arguments.switch("--json"), arguments.switch("--watch")
    if is_watched and arguments.words == [LATEST] and not wait_for_run(run_root(arguments)):
        return INTERRUPTED
    run = one_run(arguments)
    if is_watched:
        return watch(RunDir(run.place.patient()), as_json=as_json)  # a short outage ends no long watch
    facts = standing(run)
    warn_of(facts, run)
    if as_json:
        print_json(facts)
    else:
        show(*pictured(facts, run), *way_out(facts, run))
    return 0


def audit(arguments: Arguments) -> int:
    """Recomputes a run's derived numbers and compares; 1 when anything differs."""
    run = one_run(arguments)
    findings = check_run(run, called(run))
    records = run.records()
    num = len(records)
    digest = computed_digest(run, [record.shard_id for record in records], verify=True)
    if arguments.switch("--json"):
        listed = [{"shard": f.shard_id, "rule": f.rule, "message": f.message} for f in findings]
        print_json({"run_id": run.run_id, "shards": num, "digest": digest, "findings": listed})
    elif findings:
        show(*(escaped(typed(str(finding))) for finding in findings))
    else:
        show(
            f"{run.run_id}: every number holds, recomputed in {counted(num, 'shard')}",
            f"digest {digest or 'none: nothing is recorded'}",
        )
    return 1 if findings else 0
