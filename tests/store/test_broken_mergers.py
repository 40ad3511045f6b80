"""A merged shard that is damaged beside what it replaced: who reads finds what `resume` finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from broken_files import DAMAGES, flip, truncate
from store_made import write_shard

from cogeval.core.ranges import from_ranges
from cogeval.store import totals
from cogeval.store.checks import check_run
from cogeval.store.compact import compact
from cogeval.store.read import episode_journal, iter_journals, read_tables, recorded_indexes
from cogeval.store.recover import recover
from cogeval.store.run import RunDir
from cogeval.store.shards import DamagedShard, ShardRecord, file_name, record_name, set_aside_name
from cogeval.store.totals import KnownShards, computed_digest, totals_of

IDS = [f"w{number}-0000" for number in range(5)]


def killed_compact(run: RunDir) -> ShardRecord:
    """Merges five shards of three episodes, and leaves them, as one that was killed; the merged record."""
    for number, shard_id in enumerate(IDS):
        write_shard(run, shard_id, range(3 * number, 3 * number + 3))
    put_back = kept(run)
    compact(run)
    put_back()
    (record,) = run.records()
    return record


def kept(run: RunDir) -> Callable[[], None]:
    """What puts back all the files that are there now."""
    files = {path: path.read_bytes() for path in run.shards_path.iterdir()}
    return lambda: [path.write_bytes(data) for path, data in files.items()] and None


def file_of(run: RunDir, shard_id: str, table: str = "episodes") -> Path:
    return run.shards_path / file_name(shard_id, table)


def unwanted(*_: object, **__: object) -> None:
    raise AssertionError("no file was to be looked at")


def ids(records: list[ShardRecord] | tuple[ShardRecord, ...]) -> list[str]:
    return [record.shard_id for record in records]


def read(run: RunDir) -> list[int]:
    return sorted(read_tables(run, ("episodes",)).episodes["index"].to_pylist())


damages = pytest.mark.parametrize("damage", DAMAGES)


@damages
@pytest.mark.parametrize("table", ["episodes", "seats", "decisions"])
def test_whoever_reads_falls_back_to_what_a_damaged_merged_shard_replaced(
    run: RunDir, damage: Callable[[Path], None], table: str
) -> None:
    merged = killed_compact(run)
    digest = computed_digest(run, [merged.shard_id])
    damage(file_of(run, merged.shard_id, table))
    assert ids(run.records()) == IDS
    assert read(run) == list(range(15))
    assert [journal.index for journal in iter_journals(run)] == list(range(15))
    assert episode_journal(run, 14).index == 14
    indexes, (broken,) = recorded_indexes(run)
    assert indexes.tolist() == list(range(15))
    assert (broken.shard_id, broken.file) == (merged.shard_id, file_name(merged.shard_id, table))
    assert (broken.num_episodes, broken.num_elsewhere, broken.is_held_elsewhere) == (15, 15, True)
    found = totals_of(run)
    assert (ids(found.records), len(found.recorded), found.sums.episodes) == (IDS, 15, 15)
    assert found.damaged == (broken,)
    assert computed_digest(run, ids(found.records)) == digest
    assert [finding.rule for finding in check_run(run)] == ["intact"]


@damages
def test_resume_finds_what_was_read_before(run: RunDir, damage: Callable[[Path], None]) -> None:
    merged = killed_compact(run)
    damage(file_of(run, merged.shard_id))
    damage(file_of(run, "w3-0000", "seats"))
    (run.shards_path / record_name("w0-0000")).unlink()
    for table in ("episodes", "seats", "decisions"):
        file_of(run, "w0-0000", table).unlink()
    whole = [3, 4, 5, 6, 7, 8, 12, 13, 14]
    before, damaged = recorded_indexes(run)
    assert before.tolist() == whole == read(run)
    assert {shard.shard_id: shard.num_elsewhere for shard in damaged} == {merged.shard_id: 9, "w3-0000": 0}
    assert len(totals_of(run).recorded) == 9
    assert recover(run.path) == []
    after, damaged = recorded_indexes(run)
    assert after.tolist() == whole == read(run)
    assert [shard.shard_id for shard in damaged] == ["w3-0000"]
    assert (run.shards_path / set_aside_name(merged.shard_id)).exists()


def test_of_two_mergers_that_are_damaged_the_last_intact_shards_count(run: RunDir) -> None:
    first = killed_compact(run)
    compact(run)  # ends it
    write_shard(run, "w9-0000", range(15, 18))
    put_back = kept(run)
    compact(run)
    put_back()
    (second,) = run.records()
    assert set(second.merged) == {first.shard_id, "w9-0000", *IDS}
    flip(file_of(run, second.shard_id))
    assert ids(run.records()) == [first.shard_id, "w9-0000"]
    for number, shard_id in enumerate(IDS):  # as if its first merger had been killed too
        write_shard(run, shard_id, range(3 * number, 3 * number + 3))
    assert ids(run.records()) == [first.shard_id, "w9-0000"]
    truncate(file_of(run, first.shard_id))
    assert ids(run.records()) == [*IDS, "w9-0000"]
    before, damaged = recorded_indexes(run)
    assert {shard.shard_id: shard.num_elsewhere for shard in damaged} == {
        first.shard_id: 15,
        second.shard_id: 18,
    }
    assert recover(run.path) == []
    after, damaged = recorded_indexes(run)
    assert (before.tolist(), after.tolist(), damaged) == (list(range(18)), list(range(18)), ())


@damages
def test_a_look_at_sizes_sees_what_sizes_show(
    run: RunDir, damage: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "SMALL_BYTES", 0)
    merged = killed_compact(run)
    damage(file_of(run, merged.shard_id))
    found = totals_of(run)
    assert not found.is_small
    assert ids(found.records) == ([merged.shard_id] if damage is flip else IDS)
    assert (len(found.recorded), found.sums.episodes) == (15, 15)


def test_an_intact_merged_shard_is_looked_at_once_and_only_beside_what_it_replaced(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = killed_compact(run)
    known = KnownShards()
    assert ids(totals_of(run, known).records) == [merged.shard_id]
    with monkeypatch.context() as no_more:
        no_more.setattr("cogeval.store.totals.find_damage", unwanted)
        assert ids(totals_of(run, known).records) == [merged.shard_id]
    assert recover(run.path) == []
    with monkeypatch.context() as no_more:
        no_more.setattr("cogeval.store.damage.find_damage", unwanted)
        assert ids(run.records()) == [merged.shard_id]


@damages
def test_compact_counts_the_shards_that_a_damaged_one_hid(
    run: RunDir, damage: Callable[[Path], None]
) -> None:
    merged = killed_compact(run)
    damage(file_of(run, merged.shard_id))
    done = compact(run)
    assert (done.num_before, done.num_merged, done.num_made) == (5, 5, 1)
    assert [shard.shard_id for shard in done.damaged] == [merged.shard_id]
    (again,) = run.records()
    assert from_ranges(again.accepted).tolist() == list(range(15)) == read(run)
    assert check_run(run) == []


@pytest.mark.parametrize(
    ("num_elsewhere", "said"),
    [
        (0, "15 episodes, which are left out; `cogeval resume R` plays them again"),
        (
            6,
            "6 of which count, for shards merged into it are still there; `cogeval resume R` plays the other",
        ),
        (
            15,
            "which all count, for the shards merged into it are still there; `cogeval resume R` or compact",
        ),
    ],
)
def test_a_damaged_shard_says_what_is_left_out_and_no_more(num_elsewhere: int, said: str) -> None:
    shard = DamagedShard("compact-0-0000", "f", "is missing", 15, num_elsewhere)
    assert said in shard.message("R")
    assert shard.is_held_elsewhere == (num_elsewhere == 15)
