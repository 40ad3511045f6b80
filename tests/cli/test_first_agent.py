"""docs/first-agent.md from its first line to its last: every file is saved, every command is run."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "first-agent.md").read_text(encoding="utf-8")
COMMANDS = [
    line for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
]
FILES = dict(re.findall(r"this as\s+`([\w/.]+)`:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture
def follow(cogeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Saves the page's files; runs its command that begins so."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    modules = [name.removesuffix(".py") for name in FILES if name.endswith(".py")]
    for module in modules:
        sys.modules.pop(module, None)

    def run(begins: str, *more: str) -> Any:
        (line,) = [line for line in COMMANDS if line.startswith(begins)]
        return cogeval(*shlex.split(line)[1:], *more)

    yield run
    for module in modules:
        sys.modules.pop(module, None)


def test_the_page_saves_what_its_commands_use() -> None:
    assert set(FILES) == {"prospector.py", "mistaken.py", "mine/pool/prospectors.yaml"}
    assert [line.split()[1] for line in COMMANDS] == [
        "try", "check-agent", "check-agent", "check-agent", "run", "compare", "show",
    ]  # fmt: skip


def test_the_agent_is_tried_as_the_page_says(follow) -> None:
    answer = follow("cogeval try")
    assert answer.code == 0, answer.err
    assert "Prospector in seat 0, assayer in seats 1, 2, 3" in answer.out
    assert "Prospector: 2 decisions, 0 faults" in answer.out


def test_the_agent_passes_its_check_alone_and_in_the_pool(follow) -> None:
    alone = follow("cogeval check-agent --target prospector")
    assert (alone.code, alone.err) == (0, "")
    pooled = follow("cogeval check-agent bold")
    assert (pooled.code, pooled.err) == (0, "")
    assert "the same twice" in pooled.out


def test_the_mistake_is_explained_in_the_words_of_the_page(follow) -> None:
    answer = follow("cogeval check-agent --target mistaken")
    assert answer.code == 1
    (shown,) = re.findall(r"```\n(Mistaken .*?)```", PAGE, re.DOTALL)
    assert answer.out == shown


@pytest.mark.cluster
def test_the_run_the_comparison_and_the_ladder_are_as_the_page_reads_them(follow) -> None:
    played = follow("cogeval run", "tracking=off", "cluster.workers=1", "--json")
    assert (played.code, played.json["recorded"], played.json["faults"]) == (0, 200, 0)
    difference = follow("cogeval compare", "--json").json["share"]
    assert difference["low"] < 0 < difference["high"]
    elo = {agent["name"]: agent["elo"] for agent in follow("cogeval show", "--json").json["agents"]}
    assert elo["assayer"] > max(elo["sure"], elo["bold"])
    assert min(elo["sure"], elo["bold"]) > elo["quack"]


def test_a_process_of_its_own_takes_one_more_key_and_nothing_else(follow) -> None:
    assert "`placement: process`" in PAGE
    apart = "pool.agents.bold.placement=process"
    answer = follow("cogeval check-agent bold", f"+{apart}", "game.rounds=3", "--episodes", "1")
    assert (answer.code, answer.err) == (0, "")
