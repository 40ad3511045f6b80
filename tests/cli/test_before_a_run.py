"""What can be asked before anything is played: versions, games, agents and the plan of a run."""

from __future__ import annotations

from pathlib import Path


def test_versions_come_as_json_too(cogeval) -> None:
    said = cogeval("version", "--json").json
    assert f"cogeval {said['cogeval']}\npython {said['python']}\n" in cogeval("version").out
    assert "ray" in said["packages"]


def test_games_and_agents_list_what_a_run_can_name(cogeval) -> None:
    game, town, tiles = cogeval("games", "--json").json["games"]
    assert (town["name"], town["seats"], town["baselines"]) == ("cogmud", [6, 6], ["factor", "magpie"])
    assert (tiles["name"], tiles["seats"], tiles["baselines"][0]) == ("cogz", [2, 6], "balanced")
    assert (game["name"], game["seats"], game["baselines"]) == ("cogchemists", [4, 4], ["assayer", "quack"])
    assert [p["name"] for p in game["parameters"]] == ["rounds", "talk", "artifacts"]
    said = cogeval("agents", "--json").json
    assert {"baseline", "random"} <= {kind["kind"] for kind in said["kinds"]}
    assert said["baselines"] == {
        "cogchemists": ["assayer", "quack"],
        "cogmud": ["factor", "magpie"],
        "cogz": ["balanced", "greedy_total", "greedy_lowest", "lookahead"],
    }
    assert said["pools"]["cogchemists_baselines"]["quack"] == {"kind": "baseline", "baseline": "quack"}
    assert "game.rounds" in cogeval("games").out
    assert "baselines" in cogeval("agents").out


def test_plan_counts_and_starts_nothing(cogeval, tmp_path: Path) -> None:
    said = cogeval("run", "--plan", "--json", "schedule=rotations", "schedule.blocks=9", "game.rounds=3").json
    assert (said["episodes"], said["blocks"]) == (9 * 4, 9)
    assert (said["model_calls"], said["price_usd_low"], said["price_usd_high"]) == (0, 0, 0)
    assert said["decisions"] == 36 * 4 * 6
    assert said["bytes"] > 0
    text = cogeval("run", "--plan", "schedule.blocks=9").out
    assert "$0.00" in text
    assert "estimated from 9 episodes played here; nothing was started" in text
    assert list(tmp_path.iterdir()) == []


def test_plan_calls_no_agent_that_could_cost_something(cogeval, tmp_path: Path) -> None:
    (tmp_path / "dear_agent.py").write_text(
        "class Dear:\n    def decide(self, request):\n        open('called', 'w')\n"
    )
    answer = cogeval("run", "--plan", "schedule.blocks=2", "+pool.agents.dear={_target_: dear_agent.Dear}")
    assert answer.code == 0
    assert "not known: agents take time of their own" in answer.out
    assert not (tmp_path / "called").exists()
