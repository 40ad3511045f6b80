"""How a run stands, and whether its numbers hold.

Invariant: reads only; what is damaged is named, left out and never repaired here.
"""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from cogeval.cli.arguments import Arguments
from cogeval.cli.output import counted, print_json, show
from cogeval.cli.program import typed
from cogeval.cli.recorded import (
    RunEpisodes,
    driver_of,
    num_missing,
    num_open,
    num_void,
    open_note,
    read_run,
    scheduled,
    warn_of_damage,
)
from cogeval.cli.settings import called, find_runs
from cogeval.core.local_quota import dollars
from cogeval.errors import InputError
from cogeval.report.layout import Column, Grid, escaped, grid, literal
from cogeval.store.checks import check_run
from cogeval.store.read import superseded_spend
from cogeval.store.recover import hot_shards
from cogeval.store.run import RunDir
from cogeval.store.spend import spend_of


def one_run(arguments: Arguments) -> RunDir:
    """The run of a command that takes exactly one."""
    if len(arguments.words) > 1:
        raise InputError(f"expected one RUN, got {' '.join(map(repr, arguments.words))}")
    return find_runs(arguments, arguments.words)[0]


def status(arguments: Arguments) -> int:
    """Says how far a run is."""
    run = one_run(arguments)
    episodes = read_run(run)
    warn_of_damage([episodes])
    facts = _facts(episodes)
    if arguments.switch("--json"):
        print_json(facts)
    else:
        show(_lines(facts, open_note(episodes)), _agents(facts), *_way_out(facts, run))
    return 0


def audit(arguments: Arguments) -> int:
    """Recomputes a run's derived numbers and compares; 1 when anything differs."""
    run = one_run(arguments)
    findings = check_run(run, called(run))
    num = len(run.records())
    if arguments.switch("--json"):
        listed = [{"shard": f.shard_id, "rule": f.rule, "message": f.message} for f in findings]
        print_json({"run_id": run.run_id, "shards": num, "findings": listed})
    elif findings:
        show(*(escaped(typed(str(finding))) for finding in findings))
    else:
        show(f"{run.run_id}: every number holds, recomputed in {counted(num, 'shard')}")
    return 1 if findings else 0


def _facts(episodes: RunEpisodes) -> dict[str, Any]:
    run = episodes.run
    manifest, missing = run.manifest, num_missing(episodes)
    holder = driver_of(run)
    spend = spend_of(run)
    stopped = "paused" if spend.is_paused else "interrupted"
    state = "running" if holder else stopped if missing or episodes.damaged else "complete"
    keys = ("name", "kind", "version", "fingerprint", "deterministic")
    return {
        "run_id": run.run_id,
        "path": str(run.path),
        "state": state,
        "driver": {"host": holder.host, "pid": holder.pid} if holder else None,
        "created": manifest["created"],
        "game": manifest["game"],
        "digest": episodes.digest,
        "scheduled": scheduled(run),
        "recorded": episodes.num_recorded,
        "void": num_void(episodes),
        "missing": missing,
        "faults": episodes.num_faults,
        "clock_events": episodes.num_clock_events,
        "open_shards": hot_shards(run.path),
        "open_episodes": num_open(episodes),
        "spent_usd": round(spend.spent_usd, 9),
        "cap_usd": spend.cap_usd if state == "paused" else None,
        "superseded": superseded_spend(run),
        "damaged": [
            {"shard": d.shard_id, "file": d.file, "problem": d.problem, "episodes": d.num_episodes}
            for d in episodes.damaged
        ],
        "agents": [{key: agent.get(key) for key in keys} for agent in manifest["agents"]],
    }


def _lines(facts: dict[str, Any], still_open: str | None) -> Table:
    driver, game = facts["driver"], facts["game"]
    where = f", driven by process {driver['pid']} on {driver['host']}" if driver else ""
    parameters = ", ".join(f"{k}={v}" for k, v in game["parameters"].items())
    rows = [
        ("run", facts["run_id"]),
        ("directory", facts["path"]),
        ("state", facts["state"] + where),
        ("game", f"{game['name']} {game['version']} ({parameters})"),
        (
            "episodes",
            f"{facts['recorded']:,} recorded of {facts['scheduled']:,} scheduled, {facts['void']:,} void, "
            f"{facts['missing']:,} missing",
        ),
        ("digest", facts["digest"] or "none: nothing is recorded"),
        (
            "faults",
            f"{counted(facts['faults'], 'fault')} of seats; time decided something in "
            f"{counted(facts['clock_events'], 'episode')}",
        ),
    ]
    if still_open is not None:
        rows.append(("open", still_open))
    if facts["spent_usd"]:
        of = f" of {dollars(facts['cap_usd'])}, its spending cap" if facts["cap_usd"] is not None else ""
        spent = dollars(facts["spent_usd"])
        rows.append(("spent", f"{spent}{of}; unfinished and superseded episodes included"))
    if facts["superseded"]["num_episodes"]:
        rows.append(("superseded", _superseded(facts["superseded"])))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name, style="bold"), literal(value))
    return table


def _superseded(spend: dict[str, float]) -> str:
    """What episodes cost that were played twice because a worker was thought dead."""
    tokens = sum(value for name, value in spend.items() if name.startswith("tokens"))
    return (
        f"{counted(int(spend['num_episodes']), 'second copy', 'second copies')} of episodes, never scored: "
        f"{dollars(spend['cost_usd'])}, {tokens:,.0f} tokens"
    )


def _agents(facts: dict[str, Any]) -> Grid:
    columns = [
        Column("agent", numeric=False),
        Column("kind", numeric=False, drop=1),
        Column("version", numeric=False, drop=2),
        Column("fingerprint", numeric=False),
    ]
    rows = [
        [literal(agent["name"], "bold"), *(literal(str(agent[c.title])) for c in columns[1:])]
        for agent in facts["agents"]
    ]
    return grid(columns, rows)


def _way_out(facts: dict[str, Any], run: RunDir) -> list[str]:
    if facts["state"] == "paused":
        return ["", typed(f"To go on: cogeval resume {called(run)} limits.spend_usd=DOLLARS")]
    if facts["state"] == "interrupted":
        return ["", typed(f"To play what is missing: cogeval resume {called(run)}")]
    return []
