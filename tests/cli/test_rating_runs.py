"""`rate` and `compare` on runs recorded here: what may be joined, and what is told apart."""

from __future__ import annotations

import pytest


def test_an_anchor_moves_every_rating_alike(cogeval, make_run) -> None:
    make_run()
    free = {a["name"]: a["elo"] for a in cogeval("show", "latest", "--json").json["agents"]}
    for argv in (("show", "rating.anchor=random", "rating.anchor_elo=1000"), ("rate", "--anchor", "random")):
        said = cogeval(argv[0], "latest", "--json", *argv[1:]).json
        fixed = {a["name"]: a["elo"] for a in said["agents"]}
        assert fixed["random"] == (1000 if argv[0] == "show" else 0)
        assert fixed["assayer"] - fixed["random"] == pytest.approx(free["assayer"] - free["random"])
    answer = cogeval("show", "latest", "rating.ancor=quack")
    assert answer.code == 2
    assert "'ancor'; known, closest first: anchor" in answer.err
    assert (
        "unknown anchor agent 'quak'; known, closest first: quack"
        in cogeval("rate", "latest", "--anchor", "quak").err
    )


def test_a_run_of_one_agent_shows_no_empty_table_of_seats(cogeval, make_run) -> None:
    make_run("~pool.agents.quack", "~pool.agents.random", done=4)
    for verb in ("show", "rate"):
        answer = cogeval(verb, "latest")
        assert answer.code == 0
        assert "Seat effects" not in answer.out


def test_rate_counts_an_episode_once_and_joins_blocks_by_seed(cogeval, make_run) -> None:
    make_run("schedule.blocks=6", name="short")
    make_run("schedule.blocks=8", name="long")
    make_run("schedule.blocks=6", "seed=1", name="other")
    alone = cogeval("rate", "long", "--json").json
    both = cogeval("rate", "short", "long", "--json").json
    assert (both["recorded"], both["rating"]["num_blocks"]) == (8, 8)
    assert [a["elo"] for a in both["agents"]] == pytest.approx([a["elo"] for a in alone["agents"]])
    assert both["digest"] is None
    more = cogeval("rate", "long", "other", "long", "--json").json
    assert (more["recorded"], more["rating"]["num_blocks"]) == (14, 14)
    assert more["run_ids"] == ["long", "other"]
    assert "run_id" not in more
    assert (alone["run_id"], alone["run_ids"]) == ("long", ["long"])


def test_agents_of_one_name_with_other_parameters_are_told_apart(cogeval, make_run) -> None:
    make_run(name="old")
    make_run("pool.agents.quack.baseline=assayer", name="new")
    said = cogeval("rate", "old", "new", "--json").json
    names = sorted(a["name"] for a in said["agents"])
    prints = {a["name"]: a["fingerprint"] for a in said["agents"]}
    assert len(names) == 4
    assert [n for n in names if "#" in n] == sorted(f"quack#{prints[n][:6]}" for n in names if "#" in n)
    first = next(n for n in names if "#" in n)
    assert cogeval("rate", "old", "new", "--anchor", first, "--json").json["rating"]["anchor"] == first
    for argv in (("compare", "assayer", "quack", "old", "new"), ("rate", "old", "new", "--anchor", "quack")):
        answer = cogeval(*argv)
        assert answer.code == 2
        assert "agent 'quack' changed between these runs and stands for 2 agents" in answer.err
        assert answer.err.count(" (in old)") == answer.err.count(" (in new)") == 1
        assert f"write {first}" in answer.err or f"or {first}" in answer.err


def test_runs_of_other_games_or_parameters_are_not_mixed(cogeval, make_run) -> None:
    make_run(name="three", done=2)
    make_run("game.rounds=4", name="four", done=2)
    answer = cogeval("rate", "three", "four")
    assert answer.code == 2
    assert "rounds=3" in answer.err
    assert "rounds=4" in answer.err
    assert "rate them apart" in answer.err


def test_compare_gives_the_difference_per_block_with_its_interval(cogeval, make_run) -> None:
    make_run("schedule.blocks=12")
    said = cogeval("compare", "random", "assayer", "--json").json
    assert (said["a"], said["b"]) == ("random", "assayer")
    assert said["share"]["low"] < said["share"]["mean"] < said["share"]["high"]
    back = cogeval("compare", "assayer", "random", "latest", "--json").json
    assert back["share"]["mean"] == pytest.approx(-said["share"]["mean"])
    assert "assayer against random" in cogeval("compare", "random", "assayer").out
    answer = cogeval("compare", "random", "asayer")
    assert answer.code == 2
    assert "unknown agent 'asayer'; known, closest first: assayer" in answer.err
    assert "expected two agents, A and B, got 1" in cogeval("compare", "random").err


def test_compare_with_too_few_agents_names_two_of_the_run(cogeval, make_run) -> None:
    assert "got 0; for example cogeval compare quack assayer\n" in cogeval("compare").err  # no run yet
    make_run("~pool.agents.assayer", "+pool.agents.chance.kind=random", done=1)
    assert "got 0; for example cogeval compare quack random\n" in cogeval("compare").err
    assert "got 1; for example cogeval compare chance quack\n" in cogeval("compare", "chance").err
    elsewhere = cogeval("compare", "chance", "run.root=runs").err
    assert "for example cogeval compare chance quack run.root=runs\n" in elsewhere
