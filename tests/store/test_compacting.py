"""Merging shards: what is read stays the same, and killed anywhere nothing is lost or doubled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_made import add, new_run, new_writer, write_shard

from cogeval.core.ranges import from_ranges
from cogeval.core.record import run_digest
from cogeval.errors import InputError
from cogeval.store import intact
from cogeval.store.attempts import RecordedEpisode, iter_recorded
from cogeval.store.checks import check_run
from cogeval.store.compact import MOST_DECISIONS, compact, plan_groups
from cogeval.store.read import (
    episode_journal,
    iter_journals,
    read_tables,
    recorded_indexes,
)
from cogeval.store.recover import hot_shards, open_indexes, recover
from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS
from cogeval.store.shards import FileSeal, ShardRecord
from cogeval.store.spend import spend_of
from cogeval.store.totals import complete_entry, logged_digest, spend_facts, totals_of

HERE = Path(__file__).parent


def cost_of_copies(run: RunDir) -> dict[str, float]:
    return spend_facts(totals_of(run).superseded)


def digest(run: RunDir) -> str:
    return run_digest(read_tables(run, ("episodes",)).episodes["digest"].to_pylist())


def killed(*_: Any) -> None:
    """In place of a call in which the process is killed."""
    raise KeyboardInterrupt


def rows(run: RunDir) -> dict[str, list[dict[str, Any]]]:
    """Everything that is recorded, in the order of the schedule."""
    tables = read_tables(run)
    assert tables.damaged == ()
    found = {name: getattr(tables, name).to_pylist() for name in ("episodes", "seats", "decisions")}
    return {name: sorted(part, key=lambda row: row["index"]) for name, part in found.items()}


def copies_and_all(run: RunDir) -> None:
    """Four shards: models' replies in two of them, a second copy of two episodes in the last."""
    write_shard(run, "w0-0000", range(6), usage=True)
    write_shard(run, "w0-0001", range(9, 12))
    write_shard(run, "w1-0000", range(6, 9), usage=True)
    write_shard(run, "w2-0000", range(10, 16), usage=True, commit=False)
    (sealed,) = recover(run.path)
    run.commit(sealed, range(12, 16), (10, 11))


def test_everything_that_is_read_is_the_same_afterwards(run: RunDir) -> None:
    copies_and_all(run)
    before = (
        rows(run),
        digest(run),
        cost_of_copies(run),
        spend_of(run),
        list(iter_journals(run)),
    )
    sums = totals_of(run).sums
    done = compact(run)
    assert (done.num_merged, done.num_made, done.damaged) == (4, 1, ())
    (record,) = run.records()
    assert record.shard_id.startswith("compact-")
    assert record.merged == ("w0-0000", "w1-0000", "w0-0001", "w2-0000")
    assert record.accepted == ((0, 16),)
    after = rows(run), digest(run), cost_of_copies(run), spend_of(run)
    assert after[:2] == before[:2]
    assert after[2] == pytest.approx(before[2])
    assert after[3].spent_usd == pytest.approx(before[3].spent_usd)
    assert sorted(iter_journals(run), key=lambda j: j.index) == sorted(before[4], key=lambda j: j.index)
    assert episode_journal(run, 11).index == 11
    assert totals_of(run).sums.agents == sums.agents
    assert check_run(run) == []
    assert {p.name.split(".")[0] for p in run.shards_path.iterdir()} == {record.shard_id}
    assert recorded_indexes(run)[0].tolist() == list(range(16))
    assert recover(run.path) == []


def test_merging_again_changes_nothing_and_later_shards_join(run: RunDir) -> None:
    copies_and_all(run)
    compact(run)
    names = sorted(p.name for p in run.shards_path.iterdir())
    assert compact(run).num_made == 0
    assert sorted(p.name for p in run.shards_path.iterdir()) == names
    copies = cost_of_copies(run)
    write_shard(run, "w3-0000", range(16, 20))
    before = rows(run)
    assert compact(run).num_merged == 2
    assert rows(run) == before
    assert cost_of_copies(run) == copies
    assert check_run(run) == []


def test_a_run_that_is_driven_is_refused(run: RunDir) -> None:
    copies_and_all(run)
    with run.lock(), pytest.raises(InputError, match="is being driven by process"):
        compact(RunDir(run.path))
    assert len(run.records()) == 4


def test_a_damaged_shard_stays_as_it_is_and_is_named(run: RunDir) -> None:
    copies_and_all(run)
    path = run.shards_path / "w1-0000.decisions.arrow"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    done = compact(run)
    assert [shard.shard_id for shard in done.damaged] == ["w1-0000"]
    assert (done.num_merged, done.num_made) == (3, 1)
    assert recorded_indexes(run)[0].tolist() == [*range(6), *range(9, 16)]
    assert path.exists()


def test_streams_and_shards_without_a_record_are_left_alone(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(3))
    write_shard(run, "w0-0001", range(3, 6))
    writer = new_writer(run, "w1-0000")
    add(writer, 7)
    writer.flush()
    writer.close()
    compact(run)
    assert hot_shards(run.path) == ["w1-0000"]
    assert open_indexes(run.path).tolist() == [7]


def test_the_digest_in_the_log_holds_after_merging(run: RunDir) -> None:
    copies_and_all(run)
    with run.lock():
        run.append_log(complete_entry("d1935", run.records()))
    assert logged_digest(run.log_lines(), run.records()) == "d1935"
    compact(run)
    assert logged_digest(run.log_lines(), run.records()) == "d1935"
    write_shard(run, "w3-0000", range(16, 20))
    assert logged_digest(run.log_lines(), run.records()) is None


def test_the_digest_that_a_killed_merger_did_not_write_is_written_by_the_next(run: RunDir) -> None:
    copies_and_all(run)
    whole = digest(run)
    with run.lock():
        run.append_log(complete_entry(whole, run.records()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunDir, "append_log", killed)
        with pytest.raises(KeyboardInterrupt):
            compact(run)
    assert logged_digest(run.log_lines(), run.records()) is None
    assert compact(run).num_made == 0
    assert logged_digest(run.log_lines(), run.records()) == whole


def test_a_merged_shard_that_is_damaged_gives_way_to_its_sources(tmp_path: Path) -> None:
    """Killed between its record and the end of its sources, then damaged: the sources count again."""
    run = new_run(tmp_path / "runs")
    copies_and_all(run)
    kept = {path.name: path.read_bytes() for path in run.shards_path.iterdir()}
    before = rows(run)
    compact(run)
    for name, data in kept.items():
        (run.shards_path / name).write_bytes(data)
    assert rows(run) == before  # the sources do not count beside what replaced them
    path = min(run.shards_path.glob("compact-*.seats.arrow"))
    path.write_bytes(path.read_bytes()[:-1])
    assert recover(run.path) == []
    assert len(run.records()) == 4
    assert rows(run) == before


@given(
    st.lists(st.integers(1, 60), max_size=20),
    st.integers(20, 100),
)
def test_groups_hold_small_shards_alone_and_never_more_than_the_target(sizes: list[int], target: int) -> None:
    records = [
        ShardRecord(
            f"w0-{i:04d}", {"decisions": FileSeal(1, size, "")}, ((2 * i, 2 * i + 1),), (), f"2026-{i}"
        )
        for i, size in enumerate(sizes)
    ]
    groups = plan_groups(records, target)
    members = [record for group in groups for record in group]
    assert len({record.shard_id for record in members}) == len(members)
    assert all(record.num_bytes < target / 2 for record in members)
    assert all(len(group) > 1 for group in groups)
    assert all(sum(record.num_bytes for record in group) <= target for group in groups)


def test_cheap_decisions_limit_a_group_before_its_size_does() -> None:
    rows = MOST_DECISIONS // 4
    records = [
        ShardRecord(f"w0-{i:04d}", {"decisions": FileSeal(rows, 10, "")}, ((i, i + 1),), (), "2026")
        for i in range(6)
    ]
    assert [len(group) for group in plan_groups(records)] == [4, 2]


def test_a_large_shard_is_read_in_parts_with_all_their_rows(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies_and_all(run)
    compact(run)
    whole = list(iter_journals(run))
    (shard,) = intact.iter_shards(run, {t: tuple(schema.names) for t, schema in SCHEMAS.items()})
    assert isinstance(shard, intact.Shard)
    monkeypatch.setattr(intact, "_PART_EPISODES", 3)
    parts = list(intact.parts_of(shard))
    assert [part.tables["episodes"].num_rows for part in parts] == [3, 3, 3, 3, 3, 1]
    for table, rows in shard.tables.items():
        assert [row for part in parts for row in part.tables[table].to_pylist()] == rows.to_pylist()
    assert list(iter_journals(run)) == whole
    assert [episode_journal(run, i).index for i in range(16)] == list(range(16))
    recorded = [
        episode.index for episode in iter_recorded(run, tuple) if isinstance(episode, RecordedEpisode)
    ]
    assert sorted(recorded) == list(range(16))
    upside_down = shard.tables["seats"].take(list(range(shard.tables["seats"].num_rows))[::-1])
    turned = intact.Shard(shard.record, {**shard.tables, "seats": upside_down})
    assert list(intact.parts_of(turned)) == [turned]


@pytest.mark.parametrize("mode", ["compact", "tidy"])
def test_killed_at_every_touch_of_a_file_nothing_is_lost_or_doubled(tmp_path: Path, mode: str) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "crash_points.py", mode, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )
    assert done.returncode == 0, done.stderr
    num_kills = int(done.stdout)
    assert num_kills >= (40 if mode == "compact" else 12)
    whole = list(range(16))
    for number in range(1, num_kills + 1):
        run = RunDir(tmp_path / str(number) / "run-1")
        assert sorted(read_tables(run).episodes["index"].to_pylist()) == whole, number
        copies = cost_of_copies(run)
        assert copies["num_episodes"] == 2, number
        if number % 2:
            assert recover(run.path) == [], number  # as resume does
        else:
            compact(run)
        assert hot_shards(run.path) == [], number
        found = sorted(from_ranges(pair for r in run.records() for pair in r.accepted).tolist())
        assert found == whole, number
        assert sum(record.num_accepted for record in run.records()) == len(whole), number
        assert cost_of_copies(run) == pytest.approx(copies), number
        assert check_run(run) == [], number
        ids = {record.shard_id for record in run.records()}
        assert {p.name.split(".")[0] for p in run.shards_path.iterdir()} == ids, number


def test_streams_that_a_killed_commit_left_are_no_second_copies_after_two_mergers(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shard(run, "w0-0000", range(6), usage=True)
    with monkeypatch.context() as killed:
        killed.setattr(RunDir, "remove_hot", lambda *_: None)
        write_shard(run, "w1-0000", range(6, 12), usage=True)
    left = {path.name: path.read_bytes() for path in run.shards_path.glob("w1-0000.*.hot")}
    assert len(left) == 4
    spent_usd = spend_of(run).spent_usd
    compact(run)
    assert not list(run.shards_path.glob("*.hot"))
    write_shard(run, "w2-0000", range(12, 18))
    assert compact(run).num_merged == 2
    (record,) = run.records()
    assert set(record.merged) >= {"w0-0000", "w1-0000", "w2-0000"}
    for name, data in left.items():  # as if they came from another host
        (run.shards_path / name).write_bytes(data)
    assert (hot_shards(run.path), open_indexes(run.path).size) == ([], 0)
    assert recover(run.path) == []
    assert not list(run.shards_path.glob("*.hot"))
    assert spend_of(run).spent_usd == pytest.approx(spent_usd)
