"""`cogeval reproduce` after something changed: the rules, an agent, or the reading of replies."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from reproduced_runs import AGENTS, MODULE, SMALL, SPEAKERS, record

from cogeval.errors import ActionError
from cogeval.games.cogz.game import Cogz
from cogeval.store.run import RunDir


def test_changed_code_of_an_agent_is_named(cogeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "moving_agents.py"
    source.write_text(AGENTS)
    steady = [
        f"+pool.agents.{name}._target_=moving_agents.{name.capitalize()}" for name in ("steady", "shaky")
    ]
    source.write_text(AGENTS.replace("class Steady", "class Shaky(Fickle):\n    pass\n\n\nclass Steady"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{MODULE}.py").write_text(AGENTS)
    run = record(tmp_path, "moving", *SMALL["cogz"], *steady, "+pool.agents.steady.deterministic=true", num=8)
    assert cogeval("reproduce", str(run.path)).code == 0
    source.write_text(
        source.read_text().replace("next(iter(request.decision.legal))", "request.decision.default")
    )
    monkeypatch.delitem(sys.modules, "moving_agents")
    importlib.invalidate_caches()
    said = cogeval("reproduce", str(run.path))
    assert said.code == 1
    changed = [line for line in said.err.splitlines() if "changed since the run began" in line]
    assert len(changed) == 2
    assert "agent shaky changed" in changed[0]
    assert changed[0].endswith("; its seats answer from the journal all the same")
    assert "(steady), decisions.action:" in said.out
    assert "  agent     agent steady changed: fingerprint " in said.out
    source.unlink()
    monkeypatch.delitem(sys.modules, "moving_agents")
    assert "'moving_agents.Steady' cannot be imported" in cogeval("reproduce", str(run.path)).err


def test_another_version_of_the_game_is_refused_by_name(
    cogeval, cogz_run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = {**cogz_run.manifest["game"], "version": "0"}
    monkeypatch.setattr(RunDir, "manifest", {**cogz_run.manifest, "game": game})
    said = cogeval("reproduce", str(cogz_run.path))
    assert said.code == 2
    assert "game version changed since the run began: '0'" in said.err
    assert "play it again with the code that recorded it, cogeval " in said.err


def test_changed_rules_and_a_changed_baseline_are_told_apart(
    cogeval, cogz_run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Cogz.results

    def results(self: Cogz, state: Any) -> Any:
        found = real(self, state)
        seats = tuple(msgspec.structs.replace(seat, score=seat.score + 1) for seat in found.seats)
        return msgspec.structs.replace(found, seats=seats)

    with monkeypatch.context() as patched:
        patched.setattr(Cogz, "results", results)
        said = cogeval("reproduce", str(cogz_run.path))
    assert said.code == 1
    assert said.out.startswith("reproduced: 0 of 6 episodes")
    assert "  rules     the rules changed: the recorded actions lead to complete, scores " in said.out
    baseline = Cogz.baseline
    monkeypatch.setattr(Cogz, "baseline", lambda self, _, *rest: baseline(self, "greedy_lowest", *rest))
    told = cogeval("reproduce", str(cogz_run.path), "--json").json
    assert {difference["cause"] for difference in told["differences"]} == {"agent"}
    assert "its fingerprint is the same" in told["differences"][0]["why"]


def test_another_reading_of_replies_is_noticed(cogeval, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = record(place, "read", *SMALL["cogz"], *SPEAKERS)
    before = cogeval("reproduce", str(run.path))
    assert before.code == 0, before.out
    real = Cogz.parse_reply

    def parse_reply(self: Cogz, state: Any, seat: int, reply: Any) -> Any:
        return real(self, state, seat, {**reply, "cell": "A1"})

    def refuse(self: Cogz, state: Any, seat: int, reply: Any) -> Any:
        raise ActionError("expected another reply")

    for reading in (parse_reply, refuse):
        monkeypatch.setattr(Cogz, "parse_reply", reading)
        said = cogeval("reproduce", str(run.path), "--json")
        assert said.code == 1
        told = said.json["differences"]
        assert {(d["agent"], d["cause"]) for d in told} == {("model", "rules")}
        assert told[0]["why"].startswith("the reply is read otherwise now, or its row was changed: ")
        assert told[0]["phase"] is not None


def test_another_wording_of_hints_is_noticed(cogeval, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = record(place, "worded", *SMALL["cogz"], *SPEAKERS)
    monkeypatch.setattr(Cogz, "explain_illegal", lambda *_: "no such luck")
    said = cogeval("reproduce", str(run.path))
    assert said.code == 1
    assert ", decisions.detail:" in said.out
    assert "  now       'no such luck'" in said.out
    assert "  rules     the reply is read otherwise now" in said.out
