from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cogeval.cli.completion import candidates
from cogeval.cli.verbs import VERBS


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cogeval r", ["run", "resume", "rate", "reproduce", "replay"]),
        ("cogeval --h", ["--help"]),
        ("cogeval run game=cogc", ["game=cogchemists"]),
        ("cogeval run game=cogz", ["game=cogz", *(f"game=cogz_{seats}" for seats in range(3, 7))]),
        ("cogeval run game=cogchemists schedule.bl", ["schedule.blocks="]),
        (
            "cogeval run -m pool=cogchemists_baselines,random schedule=ro",
            ["schedule=rotations", "schedule=round_robin"],
        ),
        ("cogeval run --cfg j", ["job"]),
        ("cogeval run --pl", ["--plan"]),
        ("cogeval run --cfg job pool=r", ["pool=random"]),
        ("cogeval show x rating.c", ["rating.confidence="]),
        ("cogeval status x see", []),
        ("cogeval resume x cluster.w", ["cluster.workers="]),
        ("cogeval nonsense r", []),
        ("cogeval run bad=[ se", []),
    ],
)
def test_completes(line: str, expected: list[str]) -> None:
    assert candidates(line, "bash") == expected


def test_every_verb_is_offered_and_hydras_own_keys_are_not() -> None:
    assert candidates("cogeval ", "bash") == list(VERBS)
    offered = candidates("cogeval run ", "bash")
    assert {"game=", "pool=", "seed=", "schedule."} <= set(offered)
    assert not [word for word in offered if word.startswith("hydra")]


def test_runs_are_completed_from_where_they_lie(make_run, tmp_path: Path) -> None:
    make_run(done=0, name="monday")
    make_run(f"run.root={tmp_path}/elsewhere", done=0, name="tuesday")
    assert candidates("cogeval show ", "bash")[:2] == ["monday", "latest"]
    assert candidates("cogeval status mo", "bash") == ["monday"]
    assert candidates(f"cogeval status run.root={tmp_path}/elsewhere tu", "bash") == ["tuesday"]


def test_compare_completes_two_agents_of_the_latest_run_and_then_runs(make_run) -> None:
    make_run(done=0, name="monday")
    assert candidates("cogeval compare ", "bash")[:3] == ["assayer", "quack", "random"]
    assert candidates("cogeval compare quack ", "bash")[:2] == ["assayer", "random"]
    assert candidates("cogeval compare quack as", "bash") == ["assayer"]
    assert candidates("cogeval compare quack assayer mo", "bash") == ["monday"]


def test_a_users_own_options_are_completed(tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / "mine.yaml").write_text("agents: {}\n")
    assert candidates(f"cogeval run --config-dir {tmp_path} pool=mi", "bash") == ["pool=mine"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_can_install_and_uninstall(cogeval, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/cogeval"])
    installed = cogeval("--shell-completion", f"install={shell}")
    assert installed.code == 0
    assert "-sc query=" in installed.out
    assert "cogeval" in installed.out.splitlines()[-1] or "cogeval" in installed.out
    assert cogeval("-sc", f"uninstall={shell}").code == 0


def test_the_flag_alone_says_how_and_wrong_values_are_named(cogeval) -> None:
    assert 'eval "$(cogeval -sc install=bash)"' in cogeval("--shell-completion").out
    assert "unknown shell 'tcsh'" in cogeval("-sc", "install=tcsh").err
    assert cogeval("-sc", "instal=bash").code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
def test_a_real_bash_completes_through_the_installed_function(tmp_path: Path) -> None:
    program = tmp_path / "cogeval"
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom cogeval.cli import main\nsys.exit(main())\n")
    program.chmod(0o755)
    script = """
        eval "$(cogeval -sc install=bash)"
        COMP_LINE="cogeval run schedule.bl"; COMP_POINT=${#COMP_LINE}; COMP_CWORD=2
        hydra_bash_completion
        echo "${COMPREPLY[@]}"
        complete -p cogeval
    """
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, env={**os.environ, "PATH": path}
    )
    assert done.stdout.splitlines() == [
        "schedule.blocks=",
        "complete -o default -o nospace -F hydra_bash_completion cogeval",
    ]
    assert done.stderr == ""
