"""What a program writes to stderr is kept with the attempts that fail, capped, and without secrets."""

from __future__ import annotations

import asyncio

import pytest
from process_stage import faults

from cogeval.agents import build_agent
from cogeval.agents.process.launch import Launch
from cogeval.core.episode import Fallback, play
from cogeval.games import make_game

KEY = 'sk-marked/"key"\\of-the-tests-\u00fc-0123456789'
VARIABLE = "COGEVAL_TEST_API_KEY"


def test_stderr_of_a_decision_that_takes_too_long_is_kept(stage) -> None:
    (fault,) = faults(stage.play(stage.bad("moans_and_sleeps"), decision_s=0.4))
    assert (fault.fault, fault.stderr) == ("timeout", "where was I?\n")


def test_stderr_of_a_program_that_goes_on_is_kept_once_and_capped(stage) -> None:
    failed = faults(stage.play(stage.bad("moans"), on_fault="pass"))
    kept = [fault.stderr or "" for fault in failed]
    assert {fault.fault for fault in failed} == {"unreadable"}
    assert [text.split()[-1] for text in kept[:2]] == ["1", "2"]
    assert all(text.count("no idea") == 1 for text in kept[:2]), "told twice"
    assert sum(map(len, kept)) == 65_536
    assert failed[-1].stderr is None, "there was no room any more"


def test_of_a_long_stderr_the_end_is_kept(stage) -> None:
    (fault,) = faults(stage.play(stage.bad("floods_stderr")))
    assert fault.stderr is not None
    assert 60_000 < len(fault.stderr) <= 65_536
    assert fault.stderr.endswith("x\nand the end\n")


def test_an_episode_without_faults_keeps_nothing(stage) -> None:
    episode = stage.play(build_agent("calm", stage.game, {"_target_": "placed_agents.Drawer",
                                                          "placement": "process"}).seated)  # fmt: skip
    assert not faults(episode)
    assert all(attempt.stderr is None for attempt in episode.attempts)


@pytest.mark.parametrize("manner", ["tells", "tells_and_leaves", "says_a_fault"])
def test_a_secret_that_a_program_tells_is_kept_nowhere(stage, monkeypatch, manner) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    failed = faults(stage.play(stage.bad(manner, env=[VARIABLE])))
    said = repr(failed)
    assert f"<{VARIABLE}>" in said
    assert "sk-marked" not in said
    assert "of-the-tests" not in said
    assert "sk-marked".encode("utf-16-be").hex() not in said
    assert "\\\\u0073\\\\u006b" not in said, "letter by letter"


def test_only_variables_that_look_like_secrets_are_taken_for_them() -> None:
    names = ("MY_API_KEY", "HF_TOKEN", "DB_PASSWORD", "GH_PAT", "HOME", "DEPTH", "LD_PRELOAD", "PATH")
    assert Launch(("x",), env=names).secrets == names[:4]


@pytest.mark.parametrize("on_fault", ["forfeit", "pass"])
def test_an_agent_that_cannot_be_made_says_so_with_its_traceback(on_fault) -> None:
    game = make_game("cogz")
    settings = {"_target_": "placed_agents.Unborn", "placement": "process"}
    seats = [build_agent("unborn", game, settings).seated, build_agent("c", game, {"kind": "random"}).seated]
    episode = asyncio.run(play(game, 1, seats, fallback=Fallback(on_fault)))
    first = faults(episode)[0]
    assert first.detail is not None
    assert first.stderr is not None
    assert first.detail.startswith("UnmadeError: the agent could not be made: OSError: no weights")
    assert 'raise OSError("no weights")' in first.stderr
    assert not faults(episode, seat=1)
