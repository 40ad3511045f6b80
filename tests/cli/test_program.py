"""Commands that messages name are as the user must type them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogeval.cli import program as program_module
from cogeval.cli.app import complain
from cogeval.cli.program import program, typed


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    program.cache_clear()
    yield
    program.cache_clear()


def started(monkeypatch: pytest.MonkeyPatch, script: Path, path: str, *, python: Path | None = None) -> str:
    monkeypatch.setattr(sys, "argv", [str(script), "run"])
    monkeypatch.setenv("PATH", path)
    if python is not None:
        monkeypatch.setattr(program_module.sys, "executable", str(python))
    program.cache_clear()
    return program()


def script_in(directory: Path) -> Path:
    directory.mkdir(parents=True)
    script = directory / "cogeval"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return script


def test_the_name_alone_where_the_shell_finds_it_and_the_path_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ours, other = script_in(tmp_path / ".venv" / "bin"), script_in(tmp_path / "other")
    assert started(monkeypatch, ours, str(ours.parent)) == "cogeval"
    assert started(monkeypatch, Path("cogeval"), str(ours.parent)) == "cogeval"
    assert started(monkeypatch, ours, "/nowhere") == ".venv/bin/cogeval"
    assert started(monkeypatch, ours, str(other.parent)) == ".venv/bin/cogeval"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert started(monkeypatch, ours, "/nowhere") == str(ours)
    monkeypatch.chdir(ours.parent)
    assert started(monkeypatch, ours, "/nowhere") == "./cogeval"
    spaced = script_in(tmp_path / "a b")
    assert started(monkeypatch, spaced, "/nowhere") == f"'{spaced}'"


def test_a_module_that_runs_is_named_by_the_script_beside_its_python_or_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main = tmp_path / "lib" / "cogeval" / "__main__.py"
    ours = script_in(tmp_path / "bin")
    assert started(monkeypatch, main, "/nowhere", python=tmp_path / "bin" / "python") == "bin/cogeval"
    ours.unlink()
    assert (
        started(monkeypatch, main, "/nowhere", python=tmp_path / "bin" / "python") == "bin/python -m cogeval"
    )
    text = "go on with `cogeval resume x`"
    assert typed(text) == "go on with `bin/python -m cogeval resume x`"
    assert typed(typed(text)) == typed(text)
    assert started(monkeypatch, tmp_path / "pytest", "/nowhere") == "cogeval"


def test_only_commands_are_reworded_in_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    started(monkeypatch, script_in(tmp_path / "bin"), "/nowhere")
    complain("cogeval 1.0 stopped; go on with: cogeval resume x, see other/cogeval show or cogeval shows")
    assert capsys.readouterr().err == (
        "cogeval: cogeval 1.0 stopped; go on with: bin/cogeval resume x, see other/cogeval show or "
        "cogeval shows\n"
    )


def test_the_installed_script_names_itself(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("cogeval")
    argv = [str(script)] if script.exists() else [sys.executable, "-m", "cogeval"]
    done = subprocess.run(
        [*argv, "status", "latest"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": ""},
    )
    assert done.returncode == 2
    assert f"make one with `{' '.join(argv)} run`" in done.stderr or f"{script} run" in done.stderr
