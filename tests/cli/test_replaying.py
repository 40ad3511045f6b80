"""`cogeval replay`: one recorded episode, as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from reproduced_runs import SMALL, record

from cogeval.store.run import RunDir


def test_replay_shows_who_decided_what_and_what_came_of_it(cogeval, place: Path) -> None:
    pool = [f"~pool.agents.{name}" for name in ("balanced", "greedy_lowest", "lookahead", "random")]
    faults = ("+pool.agents.fickle.faults=0.5", "deadlines.decision_s=0.02", "deadlines.retry_s=0.02")
    run = record(place, "shown", *SMALL["cogz"], *pool, *faults, num=1, shards=1)
    said = cogeval("replay", str(run.path), "0")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("cogz 1, episode 0 in block 0, seed ")
    assert {"seat 0 fickle, seat 1 greedy_total", "seat 0 greedy_total, seat 1 fickle"} & set(lines)
    for start in (
        "phase 0",
        "    fault  ",
        "      so be it",
        "    took   ",
        "  event  swap ",
        "result (complete)",
    ):
        assert any(line.startswith(start) for line in lines), start
    assert any("  fallback (baseline)  {" in line for line in lines)
    assert any("10 tokens in (1 cached), 3 out, $0.2500; noise-1; finished by stop" in line for line in lines)
    told = cogeval("replay", str(run.path), "0", "--json").json
    assert lines[-1] == f"digest {told['digest']}"
    attempts = [attempt for phase in told["phases"] for attempt in phase["attempts"]]
    assert "so be it" in {attempt["text"] for attempt in attempts}
    assert all(phase["events"] for phase in told["phases"])
    assert len(told["scores"]) == 2


def test_replay_says_what_it_expected(cogeval, cogz_run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(cogz_run.path)
    assert "expected a RUN and an EPISODE" in cogeval("replay", path).err
    assert "expected EPISODE, a place in the schedule from 0, got 'x'" in cogeval("replay", path, "x").err
    assert "episode 99 of run shared is not recorded" in cogeval("replay", path, "99").err
    game = {**cogz_run.manifest["game"], "version": "0"}
    monkeypatch.setattr(RunDir, "manifest", {**cogz_run.manifest, "game": game})
    older = cogeval("replay", path, "0")
    assert older.code == 0
    assert "cogz is 1 now, was 0: events are left out" in older.err
    assert "  event  " not in older.out
