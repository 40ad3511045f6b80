"""kill -9 at any moment: no flushed episode is lost, none is doubled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from store_made import add, new_run, new_writer, write_shard

from cogeval.errors import RunError
from cogeval.store.checks import check_run
from cogeval.store.read import read_tables, recorded_indexes
from cogeval.store.recover import hot_shards, open_indexes, recover
from cogeval.store.run import RunDir

HERE = Path(__file__).parent


def resume(run: RunDir) -> list[int]:
    """What the driver does on resume; gives what is recorded then."""
    for sealed in recover(run.path):
        known = set(recorded_indexes(run)[0].tolist())
        run.commit(sealed, set(sealed.indexes) - known, set(sealed.indexes) & known)
    assert hot_shards(run.path) == []
    assert {path.suffix for path in run.shards_path.iterdir()} <= {".arrow", ".json"}
    tables = read_tables(run)
    assert tables.damaged == ()
    assert check_run(run) == []
    return tables.episodes["index"].to_pylist()


def promised(directory: Path) -> set[int]:
    """Indexes whose flush had returned."""
    receipts = directory / "receipts"
    lines = receipts.read_text().split() if receipts.exists() else []
    return {index for line in lines for index in (int(line) - 1, int(line))}


@pytest.mark.parametrize(("mode", "at_least"), [("write", 60), ("recover", 25)])
def test_killed_at_every_touch_of_a_file_nothing_flushed_is_lost_or_doubled(
    tmp_path: Path, mode: str, at_least: int
) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "crash_points.py", mode, tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    num_kills = int(done.stdout)
    assert num_kills >= at_least
    for directory in sorted(tmp_path.iterdir(), key=lambda path: int(path.name)):
        indexes = resume(RunDir(directory / "run-1"))
        assert len(set(indexes)) == len(indexes), directory.name
        assert promised(directory) <= set(indexes), directory.name
        assert resume(RunDir(directory / "run-1")) == indexes  # again: nothing changes


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from store_made import add, new_writer
from cogeval.store.run import RunDir
run = RunDir(Path(sys.argv[2]))
index = 0
for number in range(10_000):
    writer = new_writer(run, f"w0-{number:04d}")
    for _ in range(4):
        for _ in range(3):
            add(writer, index)
            index += 1
        writer.flush()
        print(index, flush=True)
    writer.seal()
"""


@pytest.mark.parametrize("num_receipts", [1, 4, 9])
def test_a_worker_killed_from_outside_loses_nothing_it_reported(run: RunDir, num_receipts: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, HERE, run.path], stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        reported = [int(worker.stdout.readline()) for _ in range(num_receipts)]
        worker.kill()
        reported += [int(line) for line in worker.stdout if line.endswith("\n")]
    indexes = resume(run)
    assert indexes[: max(reported)] == list(range(max(reported)))
    assert len(set(indexes)) == len(indexes)


@pytest.mark.parametrize("stream", ["decisions", "seats", "episodes", "sums"])
def test_streams_cut_anywhere_give_back_the_flushes_before_the_cut(run: RunDir, stream: str) -> None:
    writer = new_writer(run)
    ends = [0]
    path = run.shards_path / f"w0-0000.{stream}.hot"
    for index in range(6):
        add(writer, index)
        if index % 2:
            writer.flush()
            ends.append(path.stat().st_size)
    writer.close()
    whole = {p.name: p.read_bytes() for p in run.shards_path.iterdir()}
    cuts = {end + nudge for end in ends for nudge in (-9, -1, 0, 1, 9)} | set(
        range(0, ends[-1], ends[-1] // 8)
    )
    for cut in sorted(c for c in cuts if 0 <= c <= ends[-1]):
        again = new_run(run.path.parent, f"cut-{cut}")
        for name, data in whole.items():
            (again.shards_path / name).write_bytes(data)
        (again.shards_path / path.name).write_bytes(whole[path.name][:cut])
        num_flushes = sum(end <= cut for end in ends[1:])
        assert resume(again) == list(range(2 * num_flushes)), cut


def test_a_damaged_stream_gives_back_the_flushes_before_the_damage(run: RunDir) -> None:
    writer = new_writer(run)
    path = run.shards_path / "w0-0000.decisions.hot"
    for index in range(6):
        add(writer, index)
        if index % 2:
            writer.flush()
        if index == 3:
            middle = path.stat().st_size - 200
    writer.close()
    data = bytearray(path.read_bytes())
    data[middle] ^= 4
    path.write_bytes(data)
    assert resume(run) == [0, 1]


def test_recovery_of_one_worker_leaves_the_others_alone(run: RunDir) -> None:
    writers = [new_writer(run, f"{worker}-0000") for worker in ("a-w1", "a-w10", "b-w1")]
    for index, writer in enumerate(writers):
        add(writer, index)
        writer.flush()
        writer.close()
    assert [s.shard_id for s in recover(run.path, "a-w1")] == ["a-w1-0000"]
    assert [s.shard_id for s in recover(run.path, "a")] == ["a-w1-0000", "a-w10-0000"]
    assert [s.shard_id for s in recover(run.path)] == hot_shards(run.path)


def test_recovery_can_be_repeated_until_the_commit(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(5), commit=False)
    assert recover(run.path) == recover(run.path)
    assert resume(run) == list(range(5))
    assert recover(run.path) == []


def test_a_worker_that_was_thought_dead_cannot_seal_what_was_recovered(run: RunDir) -> None:
    writer = new_writer(run)
    add(writer, 0)
    writer.flush()
    assert resume(run) == [0]
    add(writer, 1)
    with pytest.raises(RunError, match="w0-0000 was recovered"):
        writer.seal()
    assert resume(run) == [0]
    assert not [path for path in run.shards_path.iterdir() if path.suffix == ".tmp"]


def test_a_shard_id_is_used_once(run: RunDir) -> None:
    writers = [new_writer(run), new_writer(run)]
    for index, writer in enumerate(writers):
        add(writer, index)
    writers[0].flush()
    with pytest.raises(RunError, match="expected a new shard id, got 'w0-0000'"):
        writers[1].flush()
    writers[0].close()
    assert resume(run) == [0]


def test_a_second_copy_of_an_episode_is_superseded(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4))
    write_shard(run, "w1-0000", range(2, 6), commit=False)
    assert resume(run) == list(range(6))
    assert run.records()[1].superseded == ((2, 4),)


def test_open_files_are_closed_after_a_seal(run: RunDir) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    write_shard(run, "w0-0000", range(4))
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_what_recovery_would_find_can_be_counted_before_and_nothing_changes(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(6))
    write_shard(run, "w1-0000", range(6, 9), commit=False)
    writer = new_writer(run, "w2-0000")
    assert open_indexes(run.path).tolist() == [6, 7, 8]
    for index in (11, 9):
        add(writer, index)
        writer.flush()
    add(writer, 12)  # not flushed: nobody could recover it
    before = {path.name: path.stat().st_mtime_ns for path in run.shards_path.iterdir()}
    assert open_indexes(run.path).tolist() == [6, 7, 8, 9, 11]
    assert {path.name: path.stat().st_mtime_ns for path in run.shards_path.iterdir()} == before
    stream = run.shards_path / "w2-0000.episodes.hot"
    stream.write_bytes(stream.read_bytes()[:-10])
    assert open_indexes(run.path).tolist() == [6, 7, 8, 11]
    writer.close()
    found = open_indexes(run.path).tolist()
    assert sorted(set(resume(run)) - set(range(6))) == found
    assert open_indexes(run.path).tolist() == []
