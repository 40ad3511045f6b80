"""Every derived number is recomputed: whichever is changed is reported with its place."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from store_made import write_shard

from cogeval.store.checks import check_run, check_shard
from cogeval.store.columns import bool_column
from cogeval.store.intact import Shard, read_shard
from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS
from cogeval.store.shards import checked_json, read_checked_json


def whole_shard(run: RunDir) -> Shard:
    write_shard(run, "w0-0000", range(4), usage=True)
    (record,) = run.records()
    shard = read_shard(run, record, {table: schema.names for table, schema in SCHEMAS.items()})
    assert isinstance(shard, Shard)
    return shard


def tampered(shard: Shard, table: str, row: int, **changes: Any) -> Shard:
    """The shard with cells of one row changed."""
    rows = shard.tables[table].to_pylist()
    rows[row] = {**rows[row], **changes}
    changed = pa.Table.from_pylist(rows, schema=SCHEMAS[table])
    return Shard(shard.record, {**shard.tables, table: changed})


def test_an_untouched_shard_has_no_findings(run: RunDir) -> None:
    shard = whole_shard(run)
    assert check_shard(shard) == []
    assert check_run(run) == []


@pytest.mark.parametrize(
    ("table", "changes", "rule"),
    [
        ("seats", {"rank": 7}, "seats.rank"),
        ("seats", {"share": 0.123}, "seats.share"),
        ("seats", {"forfeited": True}, "forfeits are last: rank"),
        ("seats", {"num_decisions": 99}, "seats.num_decisions"),
        ("seats", {"num_fallbacks": 99}, "seats.num_fallbacks"),
        ("seats", {"num_faults": 99}, "seats.num_faults"),
        ("seats", {"tokens_in": 1}, "seats.tokens_in"),
        ("seats", {"tokens_out": 1}, "seats.tokens_out"),
        ("seats", {"tokens_cached": 1}, "seats.tokens_cached"),
        ("seats", {"cost_usd": 99.0}, "seats.cost_usd"),
        ("seats", {"think_s": 99.0}, "seats.think_s"),
        ("seats", {"queue_s": 99.0}, "seats.queue_s"),
        ("seats", {"block": 9}, "seats.block"),
        ("seats", {"seat": 1}, "seats 0, 1, 2, ..."),
        ("seats", {"index": 77}, "seats"),
        ("decisions", {"phase": 9}, "phases 0, 1, 2, ..."),
        ("episodes", {"faults": 9}, "episodes.faults"),
        ("episodes", {"stopped": True, "clock_events": False}, "episodes.clock_events"),
        ("episodes", {"index": 77}, "record"),
        ("episodes", {"index": 1}, "one row per episode"),
        ("decisions", {"accepted": False}, "one action per decision"),
        ("decisions", {"source": "pass"}, "seats.num_fallbacks"),
        ("decisions", {"think_s": 55.0}, "seats.think_s"),
        ("decisions", {"index": 77}, "decisions"),
    ],
)
def test_a_changed_cell_is_found(run: RunDir, table: str, changes: dict[str, Any], rule: str) -> None:
    shard = whole_shard(run)
    row = next(
        i
        for i, values in enumerate(shard.tables[table].to_pylist())
        if any(values[name] != value for name, value in changes.items())
        and values.get("accepted", True)
        and values.get("source", "agent") == "agent"
        and values.get("seat") in {None, 0}
        and (rule != "forfeits are last: rank" or values["rank"] == 0)
    )
    findings = check_shard(tampered(shard, table, row, **changes))
    assert rule in {finding.rule for finding in findings}, [str(f) for f in findings]
    assert all(finding.shard_id == "w0-0000" for finding in findings)


def test_a_finding_names_its_place_and_both_values(run: RunDir) -> None:
    shard = whole_shard(run)
    (finding,) = check_shard(tampered(shard, "seats", 4, num_faults=99))
    assert str(finding).startswith(
        "w0-0000: seats.num_faults: 1 of 12 rows differ; episode 1 seat 1: recorded 99, recomputed "
    )


def test_an_episode_in_two_shards_is_found(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4))
    write_shard(run, "w1-0000", range(3, 6))
    (finding,) = check_run(run)
    assert finding.rule == "exactly once"
    assert finding.message == "1 indexes are accepted twice: 3, in w0-0000, w1-0000"


def test_a_record_that_lists_other_episodes_is_found(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4))
    path = run.shards_path / "w0-0000.json"
    value = read_checked_json(path.read_bytes())
    path.write_bytes(checked_json({**value, "accepted": [[0, 5]]}))
    assert [finding.rule for finding in check_run(run)] == ["record"]
    path.write_bytes(checked_json({**value, "superseded": [[3, 4]]}))
    assert [finding.rule for finding in check_run(run)] == ["accepted or superseded"]


def test_a_block_with_two_seeds_is_found(run: RunDir) -> None:
    shard = whole_shard(run)
    write_shard(run, "w1-0000", range(4, 6))
    changed = tampered(shard, "episodes", 0, seed=5)
    path = run.shards_path / "w0-0000.episodes.arrow"
    with pa.ipc.new_file(path, SCHEMAS["episodes"]) as writer:
        writer.write_table(changed.tables["episodes"].unify_dictionaries())
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    seal = msgspec.structs.replace(shard.record.files["episodes"], size=path.stat().st_size, sha256=sha256)
    record = msgspec.structs.replace(shard.record, files={**shard.record.files, "episodes": seal})
    (run.shards_path / "w0-0000.json").write_bytes(checked_json(msgspec.to_builtins(record)))
    assert [finding.rule for finding in check_run(run)] == ["one seed per block"]


def test_a_damaged_log_is_found(run: RunDir) -> None:
    run.append_log({"event": "dispatch"})
    path = run.path / "ledger.log"
    path.write_bytes(path.read_bytes().replace(b"dispatch", b"dispatcH"))
    (finding,) = check_run(run)
    assert str(finding) == "run: log: 1 lines of ledger.log are damaged and left out"


def test_filters_of_superseded_rows_take_the_right_ones(run: RunDir) -> None:
    shard = whole_shard(run)
    record = msgspec.structs.replace(shard.record, accepted=((1, 3),), superseded=((0, 1), (3, 4)))
    rows = Shard(record, shard.tables).accepted("seats")
    assert set(rows["index"].to_pylist()) == {1, 2}
    assert rows.num_rows == bool_column(rows["index"].to_numpy() > 0).true_count
