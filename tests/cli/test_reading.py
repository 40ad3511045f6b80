"""Reading commands on runs recorded here: what they count and print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cogeval.core.record import run_digest
from cogeval.store.read import read_tables
from cogeval.store.recover import recover

READING = ("status", "show", "rate", "audit")


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
    way = f"in open shards, which `cogeval resume {run.run_id}` recovers"
    text = " ".join(cogeval("status", "latest").out.split())
    assert "2 of 8 episodes, 2 of them in open shards, 0 void, 6 to play" in text
    assert f"2 episodes {way}" in text
    note = f"2 more episodes {way}"
    for argv in (
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
