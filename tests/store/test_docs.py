"""docs/store.md: its columns are the schema's, its code runs."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from store_made import write_shard

from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS

DOCS = (Path(__file__).parents[2] / "docs" / "store.md").read_text()

KINDS = {
    "string": "text",
    "fixed_size_binary[32]": "32 bytes",
    "timestamp[us, tz=UTC]": "timestamp, us, UTC",
    "map<string, double>": "map of text to float64",
    "double": "float64",
    "float": "float32",
}


def kind(field: Any) -> str:
    if pa.types.is_dictionary(field.type):
        return "text, dictionary-encoded"
    return KINDS.get(str(field.type), str(field.type))


@pytest.mark.parametrize("table", SCHEMAS)
def test_the_columns_in_the_docs_are_those_of_the_schema(table: str) -> None:
    section = DOCS.split(f"### {table}\n\n")[1].split("\n\n")[0]
    documented = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()[2:]]
    expected = [
        [field.name, kind(field), "yes" if field.nullable else "", field.metadata[b"doc"].decode()]
        for field in SCHEMAS[table]
    ]
    assert documented == expected


def test_every_column_says_what_it_holds() -> None:
    for schema in SCHEMAS.values():
        for field in schema:
            assert len(field.metadata[b"doc"]) > 10, field.name


def test_the_code_in_the_docs_runs(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks run in order; those for a library that is not installed here are left out."""
    write_shard(run, "w0-0000", range(6), usage=True)
    write_shard(run, "w1-0000", range(6, 10))
    monkeypatch.chdir(run.path.parents[1])
    blocks = re.findall(r"```python\n(.*?)```", DOCS, flags=re.DOTALL)
    names: dict[str, Any] = {}
    num_run = 0
    for block in blocks:
        wanted = re.findall(r"^import (\w+)", block, flags=re.MULTILINE)
        if all(importlib.util.find_spec(module) for module in wanted):
            exec(block, names)
            num_run += 1
    assert num_run >= 3
    assert "brewed" in capsys.readouterr().out
