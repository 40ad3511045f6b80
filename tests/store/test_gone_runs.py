"""A run whose directory is removed while something writes into it: one clear error, and nothing made anew."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from store_made import add, new_run, new_writer, write_shard

from cogeval.errors import RunError
from cogeval.store.compact import compact
from cogeval.store.places import LocalPlace
from cogeval.store.recover import recover
from cogeval.store.run import RunDir
from cogeval.store.shards import TABLES, DamagedShard, FileSeal, SealedShard, ShardRecord
from cogeval.store.spend import SpendFile

GONE = r"{path} is gone: .* was removed or moved while it was in use; .* start the run anew"


def gone(path: Path) -> str:
    return GONE.format(path=re.escape(str(path)))


def seal() -> dict[str, FileSeal]:
    return {table: FileSeal(1, 1, "0" * 64) for table in TABLES}


def append(run: RunDir) -> None:
    run.append_log({"event": "dispatch"})


def add_record(run: RunDir) -> None:
    run.add(ShardRecord("w0-0000", seal(), ((0, 1),), (), "2026"))


def commit(run: RunDir) -> None:
    run.commit(SealedShard("w0-0000", (0,), seal()), [0])


def set_aside(run: RunDir) -> None:
    run.set_aside(DamagedShard("w0-0000", "f", "is missing", 1))


def flush(run: RunDir) -> None:
    writer = new_writer(run)
    add(writer, 0)
    writer.flush()


def keep_spend(run: RunDir) -> None:
    SpendFile(run.path)


def read_manifest(run: RunDir) -> None:
    _ = run.manifest


WRITES = [append, add_record, commit, set_aside, flush, keep_spend, RunDir.acquire_lock, read_manifest]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("removed", ["run", "root"])
def test_whatever_writes_into_a_run_that_is_gone_names_it_and_makes_nothing(
    run: RunDir, write: Callable[[RunDir], None], removed: str
) -> None:
    path = run.path if removed == "run" else run.path.parent
    shutil.rmtree(path)
    with pytest.raises(RunError, match=gone(run.path)):
        write(run)
    assert not path.exists()


def test_a_run_that_was_made_for_nothing_and_is_gone_is_as_good_as_discarded(run: RunDir) -> None:
    shutil.rmtree(run.path.parent)
    run.discard()
    assert not run.path.parent.exists()


def test_an_open_log_takes_no_line_when_its_run_is_gone(run: RunDir) -> None:
    with run.lock():
        append(run)
        shutil.rmtree(run.path)
        with pytest.raises(RunError, match=gone(run.path)):
            append(run)
    assert not run.path.exists()


def test_a_worker_that_seals_into_a_run_that_is_gone_was_not_recovered(run: RunDir) -> None:
    writer = new_writer(run)
    add(writer, 0)
    writer.flush()
    shutil.rmtree(run.path)
    add(writer, 1)
    writer.flush()  # its files are open
    with pytest.raises(RunError, match=gone(run.path)):
        writer.seal()
    assert not run.path.exists()


@pytest.mark.parametrize("part", ["shards", "manifest.json"])
def test_while_a_directory_is_being_removed_what_is_gone_of_it_is_named(run: RunDir, part: str) -> None:
    writer = new_writer(run)
    add(writer, 0)
    writer.flush()
    shutil.rmtree(run.shards_path)
    if part == "manifest.json":
        (run.path / part).unlink()
        run.shards_path.mkdir()
        (run.shards_path / "w0-0000.decisions.arrow").touch()
    with pytest.raises(RunError, match=gone(run.path / part)):
        writer.seal()


def test_a_worker_whose_shard_was_recovered_still_says_so(run: RunDir) -> None:
    writer = new_writer(run)
    add(writer, 0)
    writer.flush()
    (sealed,) = recover(run.path)
    run.commit(sealed, sealed.indexes)
    with pytest.raises(RunError, match="was recovered while its worker still wrote it"):
        writer.seal()


def test_compact_of_a_run_that_goes_meanwhile_makes_nothing(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        write_shard(run, f"w{number}-0000", range(3 * number, 3 * number + 3))
    monkeypatch.setattr(
        "cogeval.store.compact.added", lambda _: (shutil.rmtree(run.path), None)[1]
    )  # all files are written, and the record is next
    with pytest.raises(RunError, match=gone(run.path)):
        compact(run)
    assert not run.path.exists()


def test_recovery_that_seals_into_a_run_that_goes_meanwhile_names_it(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = new_writer(run)
    add(writer, 0)
    writer.flush()
    writer.close()
    from cogeval.store import recover as recovery

    write = recovery.write_files
    monkeypatch.setattr(recovery, "write_files", lambda *a, **k: (shutil.rmtree(run.path), write(*a, **k))[1])
    with pytest.raises(RunError, match=gone(run.path)):
        recover(run.path)
    assert not run.path.exists()


def test_only_what_is_to_be_new_is_made_with_what_it_lies_in(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path / "root" / "run")
    with pytest.raises(FileNotFoundError):
        place.make()
    assert not (tmp_path / "root").exists()
    place.make(new=True)
    place.sub("shards").make()
    assert (tmp_path / "root" / "run" / "shards").is_dir()
    run = new_run(tmp_path / "deep" / "runs")
    shutil.rmtree(run.path)
    with pytest.raises(FileNotFoundError):
        run.shards.make()  # as resume does for one that lacks only these
    assert not run.path.exists()
