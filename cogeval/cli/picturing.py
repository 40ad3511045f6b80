"""What a person sees of how a run stands: one table, one of its agents, one line.

Invariant: shows what it is given and looks at no run but for its name.
"""

from __future__ import annotations

from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cogeval.cli.continuing import where_it_played
from cogeval.cli.output import counted, duration, size, warn
from cogeval.cli.program import typed
from cogeval.cli.progress import bar
from cogeval.cli.recorded import open_note_of
from cogeval.cli.settings import called
from cogeval.core.local_quota import dollars
from cogeval.report.layout import Column, Grid, escaped, grid, literal
from cogeval.store.run import RunDir
from cogeval.store.shards import DamagedShard

RUNNING: Final = "running"
COMPLETE: Final = "complete"


def warn_of(facts: dict[str, Any], run: RunDir) -> None:
    """Names damaged shards on stderr."""
    for shard in facts["damaged"]:
        words = (shard[key] for key in ("shard", "file", "problem", "episodes", "elsewhere"))
        warn([DamagedShard(*words).message(called(run))])


def pictured(facts: dict[str, Any], run: RunDir) -> tuple[RenderableType, ...]:
    """The facts as tables.

    Args:
        facts: what `standing` gave.
        run: the run.
    """
    return _lines(facts, run), _agents(facts)


def way_out(facts: dict[str, Any], run: RunDir) -> list[str]:
    """What to type to go on with a run that nobody drives; nothing for others."""
    if facts["state"] == "paused":
        said = f"To go on: cogeval resume {called(run)} limits.spend_usd=DOLLARS"
        return ["", escaped(typed(f"{said}{where_it_played(run)}"))]
    if facts["state"] == "interrupted":
        said = f"To play what is missing: cogeval resume {called(run)}"
        return ["", escaped(typed(f"{said}{where_it_played(run)}"))]
    return []


def line_of(facts: dict[str, Any]) -> str:
    """The facts in one line: state, how far, pace, faults, money."""
    done = facts["recorded"] + facts["open_episodes"] + facts["void"]
    said = [facts["state"], f"{done:,} of {facts['scheduled']:,} episodes"]
    if facts["open_episodes"]:
        said.append(f"{facts['open_episodes']:,} of them in open shards")
    if facts["episodes_per_s"]:
        said.append(_pace(facts))
    said.append(counted(facts["faults"], "fault"))
    if facts["void"]:
        said.append(f"{facts['void']:,} void")
    if facts["damaged"]:
        said.append(counted(len(facts["damaged"]), "damaged shard"))
    if facts["spent_usd"]:
        said.append(dollars(facts["spent_usd"]))
    if facts["state"] == COMPLETE and facts["digest"]:
        said.append(f"digest {facts['digest']}")
    return ", ".join(said)


def progress_bar(facts: dict[str, Any]) -> Table:
    """The facts as a bar."""
    total = max(1, facts["scheduled"])
    done = min(total, facts["recorded"] + facts["open_episodes"] + facts["void"])
    return bar(done, total)


def _lines(facts: dict[str, Any], run: RunDir) -> Table:
    driver, game = facts["driver"], facts["game"]
    where = f", driven by process {driver['pid']} on {driver['host']}" if driver else ""
    parameters = ", ".join(f"{k}={v}" for k, v in game["parameters"].items())
    rows: list[tuple[str, str]] = [
        ("run", facts["run_id"]),
        ("directory", facts["path"]),
        ("state", facts["state"] + where),
        ("game", f"{game['name']} {game['version']} ({parameters})"),
        ("episodes", _episodes(facts)),
        ("digest", _digest(facts, run)),
        (
            "faults",
            f"{counted(facts['faults'], 'fault')} of seats; time decided something in "
            f"{counted(facts['clock_events'], 'episode')}",
        ),
    ]
    if facts["episodes_per_s"]:
        rows.append(("pace", _pace(facts)))
    still_open = open_note_of(run, facts["open_episodes"], is_driven=driver is not None, noun="episode")
    if still_open is not None:
        rows.append(("open", still_open))
    if facts["shards"]:
        rows.append(("on disk", f"{size(facts['bytes'])} in {counted(facts['shards'], 'shard')}"))
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


def _episodes(facts: dict[str, Any]) -> str:
    """How far the run is: what lies in open shards is played, if not yet sealed."""
    num_open, scheduled, void = facts["open_episodes"], facts["scheduled"], f"{facts['void']:,} void"
    if not num_open:
        return (
            f"{facts['recorded']:,} recorded of {scheduled:,} scheduled, {void}, {facts['missing']:,} missing"
        )
    return (
        f"{facts['recorded'] + num_open:,} of {scheduled:,} episodes, {num_open:,} of them in open shards, "
        f"{void}, {max(0, facts['missing'] - num_open):,} to play"
    )


def _digest(facts: dict[str, Any], run: RunDir) -> str:
    if facts["digest"] is not None:
        return str(facts["digest"])
    if not facts["recorded"]:
        return "none: nothing is recorded"
    if facts["state"] == RUNNING:
        return "when the run is complete"
    return typed(f"not known from records; cogeval show {called(run)} computes it")


def _pace(facts: dict[str, Any]) -> str:
    rate = facts["episodes_per_s"]
    said = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"
    return said if facts["left_s"] is None else f"{said}, {duration(facts['left_s'])} to go"


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
        Column("seats", drop=3),
        Column("faults", drop=4),
    ]
    rows = [
        [
            literal(agent["name"], "bold"),
            *(literal(str(agent[column.title])) for column in columns[1:4]),
            *(Text(f" {agent[column.title]:,}") for column in columns[4:]),
        ]
        for agent in facts["agents"]
    ]
    return grid(columns, rows)
