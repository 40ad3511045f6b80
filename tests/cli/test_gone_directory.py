"""Messages and commands where the working directory has been removed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogeval.cli import main
from cogeval.cli.app import complain
from cogeval.cli.program import program, standing_in, typed
from cogeval.cli.session import _shown
from cogeval.store.run import RunDir


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that one stands in and that is not there any more."""
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    monkeypatch.setenv("PWD", str(place))
    program.cache_clear()
    yield place
    program.cache_clear()


def test_a_command_that_is_started_there_says_so_in_one_line(
    gone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for argv in (["status", "latest"], ["run"], ["games"]):
        assert main(argv) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err == (
            f"cogeval: the working directory {str(gone)!r} does not exist any more; go to one that does, for "
            "example with `cd`\n"
        )


def test_a_directory_that_is_there_is_not_named_as_gone(
    gone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for named in (str(gone.parent), ""):
        monkeypatch.setenv("PWD", named)
        assert main(["status"]) == 2
        assert "cogeval: the working directory does not exist any more" in capsys.readouterr().err


def test_help_needs_no_directory(gone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--help"], ["run", "--help"], ["--version"]):
        assert main(argv) == 0
    assert "cogeval run" in capsys.readouterr().out


def test_the_program_itself_ends_there_with_code_2_and_one_line(tmp_path: Path) -> None:
    command = f'mkdir gone && cd gone && rmdir ../gone && exec "{sys.executable}" -P -m cogeval status'
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"cogeval: the working directory '{tmp_path}/gone' does not exist any more")
    assert "Traceback" not in done.stderr


def test_a_message_that_is_made_there_is_not_lost(
    tmp_path: Path, gone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "bin" / "cogeval"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    for started, named in ((str(script), str(script)), ("bin/cogeval", "bin/cogeval")):
        monkeypatch.setattr(sys, "argv", [started, "run"])
        program.cache_clear()
        assert standing_in() is None
        assert typed("go on with cogeval resume x") == f"go on with {named} resume x"
        complain("no room; cogeval resume x")
        assert capsys.readouterr().err == f"cogeval: no room; {named} resume x\n"


def test_where_a_run_is_can_be_shown_from_there(
    make_run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(done=0, name="mine")
    assert _shown(run) == "runs/mine"
    absolute = RunDir(run.path.absolute())
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert _shown(absolute) == str(tmp_path / "runs" / "mine")
    assert _shown(run) == "runs/mine"
