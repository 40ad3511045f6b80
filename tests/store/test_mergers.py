"""No record hides episodes unseen: a merged shard proves that it holds what it replaces, or is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_made import add, new_writer, write_shard

from cogeval.core.ranges import from_ranges, to_ranges
from cogeval.store.checks import check_run
from cogeval.store.compact import compact
from cogeval.store.mergers import judged
from cogeval.store.read import read_tables, recorded_indexes
from cogeval.store.recover import hot_shards, recover
from cogeval.store.run import RunDir
from cogeval.store.shards import (
    TABLES,
    FileSeal,
    ShardRecord,
    checked_json,
    file_name,
    read_checked_json,
    record_name,
    standing,
)
from cogeval.store.totals import totals_of

X, Y, Z = "compact-0000000a-0000", "compact-0000000b-0000", "compact-0000000c-0000"


def forge(run: RunDir, shard_id: str, indexes: range, **changes: Any) -> None:
    """A whole shard of an id that workers do not have, whose record says what it should not."""
    write_shard(run, f"{shard_id.replace('compact', 'forged')}", indexes)
    forged = shard_id.replace("compact", "forged")
    for table in TABLES:
        run.shards.rename(file_name(forged, table), file_name(shard_id, table))
    value = read_checked_json(run.shards.read(record_name(forged)))
    run.shards.remove(record_name(forged))
    data = checked_json({**value, "shard_id": shard_id, **changes})
    run.shards.publish(record_name(shard_id), data, replace=False)


def found(run: RunDir) -> list[int]:
    return sorted(read_tables(run, ("episodes",)).episodes["index"].to_pylist())


def told(run: RunDir) -> dict[str | None, str]:
    """Shard -> rule and message of its only finding."""
    findings = check_run(run)
    assert len({finding.shard_id for finding in findings}) == len(findings)
    return {finding.shard_id: f"{finding.rule}: {finding.message}" for finding in findings}


def test_two_records_that_hide_each_other_are_both_named(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4))
    forge(run, X, range(4, 8), merged=[Y])
    forge(run, Y, range(8, 12), merged=[X])
    for shard_id, way in ((X, f"{X} -> {Y} -> {X}"), (Y, f"{Y} -> {X} -> {Y}")):
        message = told(run)[shard_id]
        assert message.startswith(
            f"intact: shard {shard_id} is damaged: {shard_id}.json names as merged what"
        )
        assert way in message
        assert "It held 4 episodes" in message
    assert found(run) == list(range(4))
    assert {damaged.shard_id for damaged in read_tables(run).damaged} == {X, Y}
    assert {damaged.shard_id for damaged in totals_of(run).damaged} == {X, Y}
    assert {damaged.shard_id for damaged in recorded_indexes(run)[1]} == {X, Y}


def test_a_circle_of_three_is_named_with_its_way_and_what_stands_beside_it_counts(run: RunDir) -> None:
    for shard_id, old, start in ((X, Y, 0), (Y, Z, 4), (Z, X, 8)):
        forge(run, shard_id, range(start, start + 4), merged=[old])
    write_shard(run, "w0-0000", range(12, 16))
    assert f"({Y} -> {Z} -> {X} -> {Y})" in told(run)[Y]
    assert told(run).keys() == {X, Y, Z}
    assert found(run) == list(range(12, 16))


def test_a_circle_is_named_though_its_records_hold_the_same_episodes(run: RunDir) -> None:
    forge(run, X, range(4), merged=[Y])
    forge(run, Y, range(4), merged=[X])
    assert told(run).keys() == {X, Y}
    assert found(run) == []


def test_a_record_that_lacks_episodes_of_what_it_replaces_is_named_and_hides_nothing(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(6))
    write_shard(run, "w1-0000", range(6, 9))
    forge(run, X, range(9, 12), merged=["w1-0000", "w0-0000"])
    message = told(run)[X]
    assert "names w1-0000 as merged into it and lacks 3 of its 3 episodes (6, 7, 8)" in message
    assert "cogeval resume" in message
    assert found(run) == list(range(9))


def test_neither_resume_nor_compact_removes_what_a_false_record_names(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(6))
    write_shard(run, "w1-0000", range(6, 9))
    forge(run, X, range(3), merged=["w0-0000"])
    assert "lacks 3 of its 6 episodes (3, 4, 5)" in told(run)[X]
    forged = {path: path.read_bytes() for path in run.shards_path.glob(f"{X}*")}
    assert recover(run.path) == []
    assert found(run) == list(range(9))
    assert check_run(run) == []  # it was set aside
    for path, data in forged.items():
        path.write_bytes(data)
    done = compact(run)
    assert (done.num_merged, [shard.shard_id for shard in done.damaged]) == (2, [X])
    assert check_run(run) == []
    assert found(run) == list(range(9))


def test_streams_that_a_record_claims_and_does_not_hold_are_recovered(run: RunDir) -> None:
    writer = new_writer(run, "w1-0000")
    for index in range(4, 8):
        add(writer, index)
    writer.flush()
    writer.close()
    forge(run, X, range(4), merged=["w1-0000"])
    assert hot_shards(run.path) == ["w1-0000"]
    (sealed,) = recover(run.path)
    run.commit(sealed, sealed.indexes)
    assert found(run) == list(range(4, 8))
    assert told(run).keys() == {X}  # now it can be proved


def test_a_record_that_holds_other_episodes_under_the_same_indexes_is_found(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4))
    write_shard(run, "w1-0000", range(4, 6))
    kept = {path: path.read_bytes() for path in run.shards_path.glob("w*")}
    compact(run)
    for path, data in kept.items():  # killed before they were removed
        path.write_bytes(data)
    assert check_run(run) == []
    (record,) = run.records()
    changed = run.shards_path / record_name("w0-0000")
    for name in kept:
        if name.name.startswith("w0"):
            name.unlink()
    write_shard(run, "w9-0000", range(4), usage=True)  # other episodes of the same indexes
    value = read_checked_json((run.shards_path / record_name("w9-0000")).read_bytes())
    for table in TABLES:
        run.shards.rename(file_name("w9-0000", table), file_name("w0-0000", table))
    run.shards.remove(record_name("w9-0000"))
    changed.write_bytes(checked_json({**value, "shard_id": "w0-0000"}))
    assert found(run) == list(range(6))
    _, old = _digests_differ(run, record.shard_id)
    assert old.startswith(
        "merged shards are held: 4 episodes of w0-0000 are not the same in it: 0, 1, 2, ..."
    )


def _digests_differ(run: RunDir, shard_id: str) -> tuple[str, str]:
    (pair,) = told(run).items()
    assert pair[0] == shard_id
    return str(pair[0]), pair[1]


def test_a_merged_record_with_second_copies_of_its_own_is_damaged(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4))
    forge(run, X, range(4), merged=["w9-0000"], accepted=[], superseded=[[0, 4]])
    assert "which merging leaves behind" in told(run)[X]
    assert found(run) == list(range(4))


def made(shard_id: str, indexes: frozenset[int], merged: tuple[str, ...]) -> ShardRecord:
    files = {table: FileSeal(1, 1, "") for table in TABLES}
    return ShardRecord(shard_id, files, to_ranges(indexes), (), "2026", merged=merged)


IDS = [f"compact-0000000{n}-0000" for n in range(5)]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.frozensets(st.integers(0, 5), min_size=1), st.sets(st.sampled_from([*IDS, "w0-0000"]))),
        max_size=5,
    )
)
def test_whatever_records_claim_every_episode_counts_or_its_record_is_named(
    claims: list[tuple[frozenset[int], set[str]]],
) -> None:
    records = [
        made(shard_id, indexes, tuple(sorted(merged - {shard_id})))
        for shard_id, (indexes, merged) in zip(IDS, claims, strict=False)
    ]
    believed, damaged = judged(records)
    named = {shard.shard_id for shard in damaged}
    assert {record.shard_id for record in believed} | named == {record.shard_id for record in records}
    assert not {record.shard_id for record in believed} & named
    counted = {i for record in standing(believed) for i in from_ranges(record.accepted).tolist()}
    for record in believed:
        assert set(from_ranges(record.accepted).tolist()) <= counted


@settings(deadline=None)
@given(st.permutations(range(6)), st.integers(1, 5))
def test_what_compact_writes_is_believed_whatever_is_still_there(order: list[int], num: int) -> None:
    sources = [made(f"w{n}-0000", frozenset({2 * n, 2 * n + 1}), ()) for n in range(6)]
    first = made(X, frozenset(range(6)), tuple(f"w{n}-0000" for n in range(3)))
    second = made(Y, frozenset(range(12)), (X, *(f"w{n}-0000" for n in (3, 4, 5, 0, 1, 2))))
    left = [sources[n] for n in order[:num]]
    believed, damaged = judged([*left, first, second])
    assert damaged == []
    assert standing(believed) == [second]


@pytest.mark.parametrize("num", [1, 2])
def test_a_merger_that_was_killed_before_its_end_has_no_finding(run: RunDir, num: int) -> None:
    kept = {}
    for n in range(num + 1):
        write_shard(run, f"w{n}-0000", range(3 * n, 3 * n + 3))
        kept |= {path: path.read_bytes() for path in run.shards_path.iterdir()}
        if n:
            compact(run)
    for path, data in kept.items():
        path.write_bytes(data)
    assert check_run(run) == []
    assert found(run) == list(range(3 * num + 3))
