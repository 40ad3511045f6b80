"""Reading commands on runs recorded here: what they print, and what damage costs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cogeval.cli.resuming import is_complete
from cogeval.core.record import run_digest
from cogeval.store.read import read_tables
from cogeval.store.recover import recover
from cogeval.store.run import RunDir
from cogeval.store.shards import checked_json, read_checked_json

READING = ("status", "show", "rate", "audit")


def flip_a_bit(run: RunDir, table: str = "seats") -> Path:
    path = min(run.shards_path.glob(f"*.{table}.arrow"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return path


def cut_short(run: RunDir, table: str = "episodes") -> Path:
    path = min(run.shards_path.glob(f"*.{table}.arrow"))
    path.write_bytes(path.read_bytes()[:-100])
    return path


def flip_decisions(run: RunDir) -> Path:
    return flip_a_bit(run, "decisions")


def remove_decisions(run: RunDir) -> Path:
    path = min(run.shards_path.glob("*.decisions.arrow"))
    path.unlink()
    return path


def test_status_counts_what_is_recorded(cogeval, make_run) -> None:
    run = make_run(done=5)
    said = cogeval("status", "latest", "--json").json
    digests = read_tables(run, ("episodes",)).episodes["digest"].to_pylist()
    assert said["run_id"] == run.run_id
    assert said["digest"] == run_digest(digests)
    assert (said["scheduled"], said["recorded"], said["void"], said["missing"]) == (8, 5, 0, 3)
    assert (said["faults"], said["clock_events"], said["state"]) == (0, 0, "interrupted")
    assert [a["name"] for a in said["agents"]] == ["assayer", "quack", "random"]
    text = cogeval("status", run.run_id).out
    assert "5 recorded of 8 scheduled, 0 void, 3 missing" in text
    assert f"To play what is missing: cogeval resume {run.run_id}\n" in text


def test_a_run_without_episodes_has_no_digest_and_no_ladder(cogeval, make_run) -> None:
    run = make_run(done=0)
    assert cogeval("status", "latest", "--json").json["digest"] is None
    assert cogeval("show", "latest", "--json").json["rating"] is None
    assert "no ladder" in cogeval("show", run.run_id).out
    assert cogeval("rate", "latest").code == 0
    answer = cogeval("compare", "quack", "assayer")
    assert answer.code == 2
    assert f"nothing is recorded in {run.run_id} yet, so there is nothing to compare" in answer.err


def test_what_is_flushed_and_not_committed_is_said_with_the_way_to_it(cogeval, make_run) -> None:
    run = make_run(done=2)
    for record in run.shards_path.glob("*.json"):  # killed between the files and their record
        record.unlink()
    said = cogeval("status", "latest", "--json").json
    assert (said["recorded"], said["open_episodes"], len(said["open_shards"])) == (0, 2, 2)
    note = f"2 more episodes in open shards, which `cogeval resume {run.run_id}` recovers"
    for argv in (
        ("status", "latest"),
        ("show", "latest"),
        ("rate", "latest"),
        ("compare", "quack", "assayer"),
    ):
        answer = cogeval(*argv)
        assert note in " ".join((answer.out + answer.err).split()), argv
    with run.lock():
        assert "in open shards, which its driver seals in time" in cogeval("status", "latest").out


def test_second_copies_of_episodes_are_counted_in_the_spend(cogeval, make_run) -> None:
    run = make_run(done=2)
    assert cogeval("status", "latest", "--json").json["superseded"]["num_episodes"] == 0
    assert "superseded" not in cogeval("status", "latest").out
    (run.shards_path / "w1-0000.json").unlink()
    (sealed,) = recover(run.path)
    run.commit(sealed, (), sealed.indexes)
    assert cogeval("status", "latest", "--json").json["superseded"]["num_episodes"] == 1
    assert "1 second copy of episodes, never scored: $0.00, 0 tokens" in cogeval("status", "latest").out


def test_versions_come_as_json_too(cogeval) -> None:
    said = cogeval("version", "--json").json
    assert f"cogeval {said['cogeval']}\npython {said['python']}\n" in cogeval("version").out
    assert "ray" in said["packages"]


def test_void_episodes_are_counted_once_and_not_missing(cogeval, make_run) -> None:
    run = make_run(done=6)
    for _ in range(2):
        run.append_log({"event": "void", "index": 7, "reason": "gone"})
    run.close()
    said = cogeval("status", "latest", "--json").json
    assert (said["void"], said["missing"]) == (1, 1)


def test_a_run_is_named_by_id_beginning_directory_or_latest(cogeval, make_run, tmp_path: Path) -> None:
    make_run(done=1, name="first")
    run = make_run(f"run.root={tmp_path}/other place", done=1, name="second")
    for name in ("first", "fir", "runs/first", "latest"):
        assert cogeval("status", name, "--json").json["run_id"] == "first"
    where = f"run.root='{tmp_path}/other place'"
    assert cogeval("status", "latest", where, "--json").json["run_id"] == "second"
    way_out = f"cogeval resume second 'run.root=\"{tmp_path}/other place\"'"
    assert way_out in cogeval("status", str(run.path)).out


@pytest.mark.parametrize("verb", READING)
def test_json_is_one_object_and_nothing_else(cogeval, make_run, verb: str) -> None:
    make_run()
    answer = cogeval(verb, "latest", "--json")
    assert answer.code == 0
    assert answer.json
    assert answer.err == ""


def test_show_has_ladder_scores_faults_effort_and_seats(cogeval, make_run) -> None:
    make_run()
    text = cogeval("show", "latest").out
    for title in ("Ladder of", "Scores", "Faults", "Effort", "Seat effects"):
        assert title in text
    assert all(len(line) <= 80 for line in text.splitlines())
    said = cogeval("show", "latest", "--json").json
    assert {a["name"] for a in said["agents"]} == {"assayer", "quack", "random"}
    assert sum(a["num_seats"] for a in said["agents"]) == 8 * 4
    assert len(said["seat_effects"]) == 4


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


@pytest.mark.parametrize("damage", [flip_a_bit, cut_short, flip_decisions, remove_decisions])
def test_a_damaged_shard_is_named_left_out_and_can_be_played_again(cogeval, make_run, damage) -> None:
    run = make_run()
    path = damage(run)
    for verb in ("status", "rate", "show"):
        answer = cogeval(verb, "latest", "--json")
        assert answer.code == 0
        assert path.name in answer.err
        assert (
            f"It held 4 episodes, which are left out; `cogeval resume {run.run_id}` plays them again"
            in answer.err
        )
        assert answer.json["recorded"] == 4
    said = cogeval("status", "latest", "--json").json
    assert (said["missing"], said["state"]) == (4, "interrupted")
    assert path.name in cogeval("compare", "quack", "assayer").err
    assert not is_complete(run)  # so resume plays, and playing sets the shard aside


def test_audit_names_what_does_not_hold_and_fails(cogeval, make_run) -> None:
    run = make_run()
    assert "every number holds, recomputed in 2 shards" in cogeval("audit", "latest").out
    flip_a_bit(run, "decisions")
    answer = cogeval("audit", "latest")
    assert answer.code == 1
    assert "damaged" in answer.out
    findings = cogeval("audit", "latest", "--json").json["findings"]
    assert [f["shard"] for f in findings] == ["w0-0000"]


def test_audit_names_the_command_that_mends_with_the_root_of_the_run(cogeval, make_run) -> None:
    run = make_run("run.root=elsewhere", name="mine")
    flip_a_bit(run)
    said = cogeval("audit", "mine", "run.root=elsewhere").out
    assert "`cogeval resume mine run.root=elsewhere` plays them again" in " ".join(said.split())


def copy_a_record(run: RunDir) -> str:
    shutil.copy(run.shards_path / "w0-0000.json", run.shards_path / "w9-0000.json")
    return "w9-0000.json is the record of shard w0-0000 under another name"


def change_the_manifest(run: RunDir) -> str:
    path = run.path / "manifest.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    return "manifest.json cannot be used: it does not match its own checksum"


def change_the_configuration(run: RunDir) -> str:
    path = run.path / "config.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: 1"))
    return "config.yaml has changed since the run began"


def remove_the_shards(run: RunDir) -> str:
    shutil.rmtree(run.shards_path)
    return "shards is missing, and every shard of the run with it"


def remove_the_files_of_a_shard(run: RunDir) -> str:
    for path in run.shards_path.glob("w0-0000.*.arrow"):
        path.unlink()
    return "w0-0000.decisions.arrow is missing"


def accept_twice(run: RunDir) -> str:
    value = read_checked_json((run.shards_path / "w0-0000.json").read_bytes())
    (run.shards_path / "w9-0000.json").write_bytes(checked_json({**value, "shard_id": "w9-0000"}))
    for path in run.shards_path.glob("w0-0000.*.arrow"):
        shutil.copy(path, path.with_name(path.name.replace("w0", "w9")))
    return "4 indexes are accepted twice: 0, 1, 2, ..., in w0-0000, w9-0000"


def accept_beyond_the_schedule(run: RunDir) -> str:
    value = read_checked_json((run.shards_path / "w0-0000.json").read_bytes())
    (run.shards_path / "w0-0000.json").write_bytes(checked_json({**value, "accepted": [[1, 4], [9, 10]]}))
    return "1 indexes are not among the 8 scheduled: 9"


@pytest.mark.parametrize(
    "harm",
    [copy_a_record, change_the_manifest, change_the_configuration, remove_the_shards,
     remove_the_files_of_a_shard, accept_twice, accept_beyond_the_schedule],
)  # fmt: skip
def test_audit_finds_what_was_changed_around_the_tables(
    cogeval, make_run, harm: Callable[[RunDir], str]
) -> None:
    said = harm(make_run())
    answer = cogeval("audit", "latest" if harm is not change_the_manifest else "2", "--json")
    assert answer.code == 1
    assert any(said in finding["message"] for finding in answer.json["findings"])


@pytest.mark.parametrize("harm", [copy_a_record, accept_twice])
def test_a_shard_that_is_there_twice_makes_no_negative_count(
    cogeval, make_run, harm: Callable[[RunDir], str]
) -> None:
    harm(make_run())
    said = cogeval("status", "latest", "--json").json
    assert (said["recorded"], said["missing"]) == (8, 0)


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


def test_faults_are_counted_by_kind_and_think_times_are_the_agents_own(
    cogeval, make_run, tmp_path: Path
) -> None:
    (tmp_path / "clumsy_agent.py").write_text(
        "class Clumsy:\n    def decide(self, request):\n        raise RuntimeError('no idea')\n"
    )
    make_run("+pool.agents.clumsy={_target_: clumsy_agent.Clumsy, deterministic: true}", "schedule.blocks=4")
    said = cogeval("show", "latest", "--json").json
    clumsy = next(a for a in said["agents"] if a["name"] == "clumsy")
    assert clumsy["num_decisions"] > 0
    assert clumsy["faults"] == {"exception": clumsy["num_decisions"]}
    assert clumsy["fallback_share"] == 1
    assert said["faults"] == clumsy["num_faults"] == cogeval("status", "latest", "--json").json["faults"]
    assert "clumsy left 100.0% of its decisions to the fallback" in cogeval("show", "latest").out.replace(
        "\n      ", ""
    )


def test_show_tells_what_went_wrong_most_often_in_one_line_each(cogeval, make_run, tmp_path: Path) -> None:
    (tmp_path / "muddled_agent.py").write_text(
        "from cogeval.core.agent import Reply\n"
        "class Muddled:\n"
        "    num_asked = 0\n"
        "    def decide(self, request):\n"
        "        self.num_asked += 1\n"
        "        if self.num_asked == 1:\n"
        "            raise RuntimeError('once')\n"
        "        if self.num_asked == 2:\n"
        "            raise ValueError(f'{id(self)} never the same')\n"
        "        if self.num_asked < 6:\n"
        "            raise KeyError('\\x1b[2J[red]\\n' + 300 * 'x')\n"
        "        return Reply(42)\n"
    )
    make_run(
        "+pool.agents.muddled={_target_: muddled_agent.Muddled, deterministic: true}", "schedule.blocks=4"
    )
    said = cogeval("show", "latest", "--json").json
    muddled = next(a for a in said["agents"] if a["name"] == "muddled")
    reasons = [(r["kind"], r["num_attempts"], r["detail"][:20]) for r in muddled["fault_reasons"]]
    num = muddled["num_seats"]
    assert reasons[:2] == [
        ("exception", 3 * num, "KeyError: '\\x1b[2J[r"),
        ("exception", num, "RuntimeError: once"),
    ]
    assert [r[0] for r in reasons[2:]] == ["unreadable"]
    assert reasons[2][1] == muddled["faults"]["unreadable"]
    assert all(a["fault_reasons"] == [] for a in said["agents"] if a["name"] != "muddled")
    text = cogeval("show", "latest").out
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    (line,) = [
        line for line in text.splitlines() if "exception" in line and "KeyError" in line and "..." in line
    ]
    assert line.split()[:3] == ["muddled", "exception", str(3 * num)]
    assert "most often exception: KeyError: " in " ".join(text.split())


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


def test_ui_prints_the_command_in_one_line(cogeval, make_run, tmp_path: Path) -> None:
    make_run(done=1)
    answer = cogeval("ui", "--print", "--port", "5999")
    assert answer.out.count("\n") == 1
    assert f"sqlite:///{tmp_path}/mlflow.db" in answer.out
    assert "--port 5999" in answer.out
    assert (
        cogeval("ui", "latest", "tracking.uri=http://host:5000").out == "the pages are at http://host:5000\n"
    )
    assert "nothing is tracked in" in cogeval("ui", "latest").err
    assert "--port: expected a number" in cogeval("ui", "--print", "--port", "x").err


def test_manifest_says_what_was_played_on_what(make_run) -> None:
    manifest = json.loads((make_run(done=0).path / "manifest.json").read_text())
    assert manifest["game"] == {
        "name": "cogchemists",
        "version": manifest["game"]["version"],
        "parameters": {"rounds": 3, "talk": True, "artifacts": True},
    }
    assert (manifest["num_episodes"], manifest["num_blocks"], manifest["seed"]) == (8, 8, 0)
    assert {
        "schema_version",
        "run_id",
        "created",
        "config_digest",
        "schedule_digest",
        "cogeval",
        "python",
    } <= set(manifest)
    assert {"ray", "pyarrow", "numpy", "hydra-core", "mlflow"} <= set(manifest["packages"])
