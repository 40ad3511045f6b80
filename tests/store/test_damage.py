"""Damage of every kind of file is seen, named, and costs that shard only; a full disk costs nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from store_made import add, new_run, new_writer, write_shard

from cogeval.errors import InputError, RunError
from cogeval.store.checks import check_run
from cogeval.store.files import StoreFull
from cogeval.store.read import read_tables, recorded_indexes
from cogeval.store.recover import hot_shards, recover
from cogeval.store.run import RunDir
from cogeval.store.shards import checked_json, read_checked_json


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def cut_to_nothing(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [cut, cut_to_nothing, flip, remove])
@pytest.mark.parametrize("table", ["episodes", "seats", "decisions"])
def test_a_damaged_table_is_named_left_out_and_played_again(
    run: RunDir, table: str, damage: Callable[[Path], None]
) -> None:
    write_shard(run, "w0-0000", range(4))
    write_shard(run, "w1-0000", range(4, 9))
    damage(run.shards_path / f"w0-0000.{table}.arrow")
    indexes, damaged = recorded_indexes(run)
    assert indexes.tolist() == [4, 5, 6, 7, 8]
    (shard,) = damaged
    message = shard.message("run-1")
    assert f"shard w0-0000 is damaged: w0-0000.{table}.arrow" in message
    assert "held 4 episodes" in message
    assert "`cogeval resume run-1` plays them again" in message
    tables = read_tables(run)
    assert tables.damaged == damaged
    assert tables.episodes["index"].to_pylist() == [4, 5, 6, 7, 8]
    assert [finding.rule for finding in check_run(run)] == ["intact"]

    run.set_aside(shard)  # what resume does, before it plays them again
    assert hot_shards(run.path) == []
    assert recover(run.path) == []
    write_shard(run, "w2-0000", range(4))
    assert sorted(read_tables(run).episodes["index"].to_pylist()) == list(range(9))
    assert check_run(run) == []


@pytest.mark.parametrize("damage", [cut, cut_to_nothing, flip])
def test_a_damaged_record_takes_its_shard_out(run: RunDir, damage: Callable[[Path], None]) -> None:
    write_shard(run, "w0-0000", range(4))
    write_shard(run, "w1-0000", range(4, 9))
    damage(run.shards_path / "w0-0000.json")
    indexes, (shard,) = recorded_indexes(run)
    assert indexes.tolist() == [4, 5, 6, 7, 8]
    assert "shard w0-0000 is damaged: w0-0000.json" in shard.message("run-1")
    assert "unknown number of episodes" in shard.message("run-1")
    assert hot_shards(run.path) == []  # it was committed: nothing to recover
    run.set_aside(shard)
    assert recorded_indexes(run)[1] == ()


@pytest.mark.parametrize("damage", [cut, cut_to_nothing, flip])
def test_every_bit_of_the_manifest_counts(run: RunDir, damage: Callable[[Path], None]) -> None:
    damage(run.path / "manifest.json")
    with pytest.raises(InputError, match=r"manifest\.json cannot be used: it (is cut short|does not match)"):
        _ = RunDir(run.path).manifest


@pytest.mark.parametrize("damage", [cut_to_nothing, flip, remove])
def test_a_changed_configuration_is_refused(run: RunDir, damage: Callable[[Path], None]) -> None:
    damage(run.path / "config.yaml")
    with pytest.raises(InputError, match=r"config\.yaml (has changed since the run began|cannot be read)"):
        _ = RunDir(run.path).config_yaml


def test_a_run_with_a_damaged_manifest_does_not_hide_the_others(run: RunDir) -> None:
    newer = new_run(run.path.parent, "newer")
    flip(newer.path / "manifest.json")
    assert RunDir.find("latest", run.path.parent).run_id == "run-1"


def test_without_verification_a_cut_is_still_seen(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4))
    cut(run.shards_path / "w0-0000.seats.arrow")
    assert len(read_tables(run, verify=False).damaged) == 1


class FullDisk:
    """Lets some bytes through, then there is no room."""

    def __init__(self, room: int, code: int) -> None:
        self.room = room
        self.code = code
        self.write = os.write

    def __call__(self, fd: int, data: bytes) -> int:
        if self.room <= 0:
            raise OSError(self.code, os.strerror(self.code))
        written = self.write(fd, bytes(data)[: self.room])
        self.room -= written
        return written


def final_names(run: RunDir) -> set[str]:
    return {p.name for p in run.shards_path.iterdir() if p.suffix in {".arrow", ".json", ".tmp"}}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("room", [0, 700, 9_000, 40_000, 55_000])
def test_a_full_disk_is_one_error_and_leaves_the_committed_intact(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, room: int, code: int
) -> None:
    write_shard(run, "w0-0000", range(4))
    before = final_names(run)
    disk = FullDisk(room, code)
    monkeypatch.setattr(os, "write", disk)
    writer = new_writer(run, "w1-0000")
    flushed = 4

    def write_until_full() -> None:
        nonlocal flushed
        for index in range(4, 10_000):
            add(writer, index)
            writer.flush()
            flushed = index + 1
            if index == 7 and room == 40_000:
                disk.room = 100
                writer.seal()

    with pytest.raises(StoreFull, match=r"no room to write .*w1-0000.*what is committed is intact.*resume"):
        write_until_full()
    assert issubclass(StoreFull, RunError)
    assert final_names(run) == before
    with pytest.raises(RunError, match="closed"):
        writer.flush()
    monkeypatch.undo()
    assert read_tables(run).episodes["index"].to_pylist() == [0, 1, 2, 3]
    for sealed in recover(run.path):
        run.commit(sealed, sealed.indexes)
    assert read_tables(run).episodes["index"].to_pylist() == list(range(flushed))
    assert check_run(run) == []


def test_a_full_disk_at_the_commit_leaves_a_shard_to_recover(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shard(run, "w0-0000", range(4), commit=False)
    (sealed,) = recover(run.path)
    monkeypatch.setattr(os, "write", FullDisk(30, errno.ENOSPC))
    with pytest.raises(StoreFull, match=r"w0-0000\.json"):
        run.commit(sealed, sealed.indexes)
    with pytest.raises(StoreFull, match=r"ledger\.log"):
        run.append_log({"event": "dispatch", "indexes": [[0, 4]]})
    with pytest.raises(StoreFull, match="lock"):
        run.acquire_lock()
    with pytest.raises(StoreFull, match=r"config\.yaml"):
        new_run(run.path.parent, "another")
    monkeypatch.undo()
    assert run.records() == []
    assert run.log_lines() == []
    assert not (run.path / "lock").exists()
    assert recover(run.path) == [sealed]


LIMITED = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from store_made import add, new_writer
from cogeval.store.files import StoreFull
from cogeval.store.run import RunDir
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
writer = new_writer(RunDir(Path(sys.argv[2])), "w1-0000")
try:
    for index in range(4, 100):
        add(writer, index)
        writer.flush()
except StoreFull:
    print(index)
"""


def test_a_file_size_limit_of_the_system_counts_as_a_full_disk(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4))
    command = [sys.executable, "-c", LIMITED, Path(__file__).parent, run.path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (sealed,) = recover(run.path)
    run.commit(sealed, sealed.indexes)
    assert check_run(run) == []
    assert read_tables(run).episodes.num_rows == int(done.stdout)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"merged": ["w0-0000"]}, "its own shard"),
        ({"merged": ["w1-0000"]}, "names merged shards"),
        ({"accepted": [[0, 3], [2, 4]]}, "not ascending, disjoint"),
        ({"accepted": [[2, 4], [0, 2]]}, "not ascending, disjoint"),
        ({"accepted": [[-5, 10**15]]}, "not ascending, disjoint"),
        ({"accepted": [[3, 3]]}, "not ascending, disjoint"),
        ({"accepted": [[0, 2**63]]}, ""),
        ({"accepted": [[0, 10**15]]}, "more than a shard can hold"),
        ({"superseded": [[7, 6]]}, "not ascending, disjoint"),
        ({"files": {}}, "other tables"),
    ],
)
def test_a_record_that_hides_or_doubles_is_damaged_though_its_checksum_fits(
    run: RunDir, changes: dict[str, object], says: str
) -> None:
    write_shard(run, "w0-0000", range(4))
    write_shard(run, "w1-0000", range(4, 9))
    path = run.shards_path / "w0-0000.json"
    path.write_bytes(checked_json({**read_checked_json(path.read_bytes()), **changes}))
    (finding,) = check_run(run)
    assert (finding.shard_id, finding.rule) == ("w0-0000", "intact")
    assert says in finding.message
    assert recorded_indexes(run)[0].tolist() == [4, 5, 6, 7, 8]
