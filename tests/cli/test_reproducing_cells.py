"""One cell of a run's tables changed, its checksum renewed: `cogeval reproduce` names column and episode.

What cannot come out again is listed in docs/cli.md, which is held to here as well.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from reproduced_runs import SMALL, SPEAKERS, record

from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS
from cogeval.store.shards import SealedShard, file_name, record_name
from cogeval.store.write import write_files

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
SHARD = "w0-0000"
Row = dict[str, Any]


class Cell(NamedTuple):
    """What is changed: of the first row that fits, one column."""

    column: str
    change: Callable[[Any], Any]
    fits: Callable[[Row], bool] = lambda _: True
    seen: tuple[str, ...] = ()  # columns that may be named; none: the changed one


def more(value: Any) -> Any:
    return value + 1


def no(value: Any) -> Any:
    return not value


def other(value: Any) -> Any:
    return f"{value}x"


def void(_: Any) -> None:
    return None


def said(agent: str, fault: str | None = None) -> Callable[[Row], bool]:
    return lambda row: row["by"] == agent and row["source"] == "agent" and row["fault"] == fault


def instead(row: Row) -> bool:
    return bool(row["source"] != "agent")


def unread(value: str) -> str:
    return value.replace("{", "(")


DECISIONS = (
    Cell("index", lambda _: 99, seen=("decisions",)),
    Cell("phase", more, seen=("decisions",)),
    Cell("phase", lambda _: 2**31 - 1, seen=("decisions",)),
    Cell("seat", lambda seat: 1 - seat, seen=("decisions",)),
    Cell("seat", lambda _: 100, seen=("decisions",)),
    Cell("attempt", more, seen=("decisions",)),
    Cell("kind", other, said("model"), seen=("decisions.fault",)),
    Cell("kind", other, said("greedy_total")),
    Cell("kind", other, instead),
    Cell("source", lambda _: "pass", said("model"), seen=("decisions.fault", "decisions")),
    Cell("source", lambda _: "agent", instead),
    Cell("accepted", no, said("program"), seen=("decisions.accepted", "decisions")),
    Cell("action", other, said("model"), seen=("decisions",)),
    Cell("action", void, said("program"), seen=("decisions.action",)),
    Cell("fault", void, said("program", "illegal")),
    Cell("fault", lambda _: "sleepy", said("fickle", "timeout")),
    Cell("fault", lambda _: "timeout", said("fickle", "exception"), seen=("decisions.detail",)),
    Cell("fault", lambda _: "exception", said("fickle", "timeout")),
    Cell("fault", lambda _: "illegal", said("model", "unreadable")),
    Cell("detail", other, said("model", "unreadable")),
    Cell("detail", other, said("model", "illegal")),
    Cell("detail", other, said("fickle", "illegal")),
    Cell("detail", other, said("fickle", "timeout")),
    Cell("detail", other, said("program", "unreadable")),
    Cell("detail", void, said("fickle", "exception")),
    Cell("detail", lambda _: "so it was", said("fickle")),
    Cell("reply", unread, said("model"), seen=("decisions.fault",)),
    Cell("reply", void, said("model"), seen=("decisions.fault",)),
    Cell("reply", void, said("model", "unreadable"), seen=("decisions.fault",)),
    Cell("reply", lambda text: text.replace('"tile": "', '"tile": "Q'), said("model", "illegal"),
         seen=("decisions.fault",)),
    Cell("reply", unread, said("program"), seen=("decisions.fault",)),
    Cell("reply", lambda _: "so it was", said("greedy_total")),
    Cell("reply", lambda _: "so it was", said("fickle", "exception")),
    Cell("tokens_in", more, said("program")),
    Cell("tokens_in", lambda _: 5, said("greedy_total"), seen=("decisions",)),
    Cell("cost_usd", lambda _: 0.5, said("greedy_total"), seen=("decisions.tokens_in",)),
    Cell("tokens_out", more, said("program")),
    Cell("tokens_out", lambda _: -1, said("program")),
    Cell("tokens_cached", more, said("program")),
    Cell("tokens_cached", void, said("program"), seen=("decisions",)),
    Cell("cost_usd", more, said("program")),
    Cell("model", other, said("program")),
    Cell("finish_reason", other, said("program")),
    Cell("stderr", lambda _: "ouch", said("program")),
)  # fmt: skip
SEATS = (
    Cell("index", lambda _: 99, seen=("seats.agent", "decisions")),
    Cell("block", more),
    Cell("seat", more, seen=("decisions",)),
    Cell("agent", lambda agent: "model" if agent != "model" else "program"),
    Cell("score", more),
    Cell("rank", more),
    Cell("share", lambda share: share / 2 + 0.1),
    Cell("forfeited", no),
    Cell("statistics", lambda pairs: [(name, value + 1) for name, value in pairs]),
    Cell("statistics", lambda pairs: pairs[1:]),
)
EPISODES = (
    Cell("index", lambda _: 99),
    Cell("episode_id", lambda text: text[::-1]),
    Cell("block", more),
    Cell("seed", more),
    Cell("replicate", more),
    Cell("reason", other),
    Cell("phases", more),
    Cell("stopped", no, lambda row: not row["clock_events"]),
    Cell("clock_events", no),
    Cell("digest", lambda digest: digest[::-1]),
)
CELLS = [
    pytest.param(table, cell, id=f"{table}.{cell.column}-{i}")
    for table, cells in (("decisions", DECISIONS), ("seats", SEATS), ("episodes", EPISODES))
    for i, cell in enumerate(cells)
]
BY_THEMSELVES = {  # what is wrong without regard to the rules of now
    *(("episodes", column) for column in ("episode_id", "seed", "stopped", "clock_events", "digest")),
    *(("seats", column) for column in ("score", "rank", "share", "forfeited")),
    ("decisions", "action"),
    ("decisions", "phase"),
}
AUDITED = {
    "decisions": {"think_s", "queue_s"},
    "seats": {
        "num_decisions", "num_fallbacks", "num_faults", "tokens_in", "tokens_out", "tokens_cached",
        "cost_usd", "think_s", "queue_s",
    },
    "episodes": {"faults"},
}  # fmt: skip
UNSEEN = {"decisions": set[str](), "seats": set[str](), "episodes": {"wall_s", "worker", "finished_at"}}


@pytest.fixture(scope="module")
def whole(place: Path) -> RunDir:
    faults = ("+pool.agents.fickle.faults=0.5", "deadlines.decision_s=0.05", "deadlines.retry_s=0.05")
    return record(place, "whole", *SMALL["cogz"], *SPEAKERS, *faults, num=12, shards=1)


@pytest.fixture
def copied(whole: RunDir) -> RunDir:
    path = whole.path.with_name("copied")
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(whole.path, path)
    return RunDir(path)


def rows_of(run: RunDir) -> dict[str, Any]:
    paths = {table: run.shards_path / file_name(SHARD, table) for table in SCHEMAS}
    return {
        table: pa.ipc.open_file(pa.BufferReader(path.read_bytes())).read_all()
        for table, path in paths.items()
    }


def change_cell(run: RunDir, table: str, cell: Cell) -> int:
    """Changes one cell and renews the checksums; gives the episode."""
    tables = rows_of(run)
    names = {(row["index"], row["seat"]): row["agent"] for row in tables["seats"].to_pylist()}
    rows = tables[table].to_pylist()
    told = [{**row, "by": names.get((row["index"], row.get("seat")))} for row in rows]
    where = next(i for i, row in enumerate(told) if cell.fits(row))
    values = [row[cell.column] for row in rows]
    values[where] = cell.change(values[where])
    field = SCHEMAS[table].field(cell.column)
    is_coded = pa.types.is_dictionary(field.type)
    column = pa.array(values, pa.string()).dictionary_encode() if is_coded else pa.array(values, field.type)
    number = SCHEMAS[table].get_field_index(cell.column)
    tables[table] = tables[table].set_column(number, field, column)
    (old,) = run.records()
    indexes = tuple(i for start, stop in old.accepted for i in range(start, stop))
    batches = {name: found.combine_chunks().to_batches() for name, found in tables.items()}
    sealed = write_files(run.shards_path, SHARD, indexes, batches, replace=True)
    (run.shards_path / record_name(SHARD)).unlink()
    run.commit(SealedShard(SHARD, indexes, sealed.files), indexes)
    return int(rows[where]["index"])


def test_the_run_as_it_was_comes_out_the_same(cogeval, whole: RunDir) -> None:
    said = cogeval("reproduce", str(whole.path))
    assert said.code == 0, said.out
    faults = {row["fault"] for row in rows_of(whole)["decisions"].to_pylist()}
    assert faults == {None, "timeout", "exception", "unreadable", "illegal"}


@pytest.mark.parametrize(("table", "cell"), CELLS)
def test_a_changed_cell_is_found_at_its_place(cogeval, copied: RunDir, table: str, cell: Cell) -> None:
    index = change_cell(copied, table, cell)
    said = cogeval("reproduce", str(copied.path), "--json")
    assert said.code == 1
    told = [difference for difference in said.json["differences"] if difference["index"] == index]
    assert told, said.json["differences"]
    named = {difference["column"] for difference in told}
    assert named & {f"{table}.{cell.column}", *cell.seen}, told
    if (table, cell.column) in BY_THEMSELVES:
        assert {difference["cause"] for difference in told} == {"record"}, told
    shown = cogeval("replay", str(copied.path), str(index))
    assert (shown.code, "Traceback" in shown.err) in ((0, False), (2, False)), shown.err


@pytest.mark.parametrize(
    ("table", "column"), sorted((table, column) for table, columns in AUDITED.items() for column in columns)
)
def test_what_never_comes_out_the_same_is_left_to_audit(
    cogeval, copied: RunDir, table: str, column: str
) -> None:
    change_cell(copied, table, Cell(column, more))
    assert cogeval("reproduce", str(copied.path)).code == 0
    assert cogeval("audit", str(copied.path)).code == 1


def test_every_column_is_seen_by_a_test_or_listed_in_the_docs_as_unseen() -> None:
    seen = {(table, cell.values[1].column) for cell in CELLS for table in [cell.values[0]]}
    lines = {
        line.split("|")[1].strip().replace("`", ""): line
        for line in DOCS.read_text().splitlines()
        if line.startswith("| ")
    }
    for table, schema in SCHEMAS.items():
        others = AUDITED[table] | UNSEEN[table]
        assert {name for of, name in seen if of == table} | others == set(schema.names)
        for who, columns in (("audit alone", AUDITED), ("nobody", UNSEEN)):
            for column in columns[table]:
                assert f"`{table}.{column}`" in lines[who], f"{table}.{column} in the line of {who}"


def test_numbers_of_a_models_reply_are_not_in_its_text(cogeval, copied: RunDir) -> None:
    for column in ("tokens_in", "tokens_out", "tokens_cached", "cost_usd"):
        change_cell(copied, "decisions", Cell(column, more, said("model")))
    for column in ("model", "finish_reason"):
        change_cell(copied, "decisions", Cell(column, other, said("model")))
    change_cell(copied, "decisions", Cell("reply", other, said("fickle")))
    assert cogeval("reproduce", str(copied.path)).code == 0
    told = cogeval("replay", str(copied.path), "0", "--json").out
    assert json.loads(told)["digest"]
