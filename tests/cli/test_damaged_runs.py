"""Damage to a recorded run: every command says what it costs, and `audit` finds all of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cogeval.cli.resuming import is_complete
from cogeval.store.run import RunDir
from cogeval.store.shards import checked_json, read_checked_json


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
