"""The run directory: made once, found by any of its names, driven by one at a time."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest
from omegaconf import OmegaConf
from store_made import new_run, write_shard

from cogeval.config import conf_dir
from cogeval.core.ranges import from_ranges, to_ranges
from cogeval.errors import InputError, RunError
from cogeval.store.lock import LockHolder
from cogeval.store.places import LocalPlace
from cogeval.store.recover import recover
from cogeval.store.roots import DEFAULT_ROOT, call
from cogeval.store.run import RunDir, new_run_id
from cogeval.store.shards import check_schema_version, checked_json, read_checked_json


def test_a_run_is_made_with_its_manifest_and_configuration(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "deep" / "runs", "r", {"agents": {"a": "f00"}}, "x: 1\n")
    again = RunDir.find("r", tmp_path / "deep" / "runs")
    assert again.manifest["agents"] == {"a": "f00"}
    assert again.manifest["run_id"] == run.run_id == "r"
    assert again.manifest["schema_version"] == 2
    assert again.config_yaml == "x: 1\n"
    assert again.records() == []
    assert again.log_lines() == []


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    new_run(tmp_path, "r")
    with pytest.raises(InputError, match=r"run r exists in .* never overwritten.*cogeval resume r"):
        RunDir.create(tmp_path, "r", {}, "")
    assert RunDir.find("r", tmp_path).config_yaml == "game: made_up\n"


@pytest.mark.parametrize(
    "run_id", ["", ".", "..", "a/b", "../x", "latest", "-x", ".x", "a=b", "a b", "a\n", "\udc80", "x" * 101]
)
def test_a_run_id_is_a_plain_name(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(InputError, match="expected a plain directory name"):
        RunDir.create(tmp_path / "runs", run_id, {}, "")


@pytest.mark.parametrize("root", ["a_file", "a_file/below", "/proc/no/such"])
def test_a_root_that_cannot_be_written_is_named(tmp_path: Path, root: str) -> None:
    (tmp_path / "a_file").write_text("")
    with pytest.raises(InputError, match=rf"expected a directory .* got '.*{root}'.*run\.root=DIR"):
        RunDir.create(tmp_path / root, "r", {}, "")


def test_a_run_is_found_by_id_prefix_path_and_latest(tmp_path: Path) -> None:
    for run_id in ("2025a-1", "2025b-2", "2024z-3"):
        new_run(tmp_path, run_id)
    for ref in ("2025b-2", "2025b", tmp_path / "2025b-2"):
        assert RunDir.find(ref, tmp_path).run_id == "2025b-2"
    assert RunDir.find("latest", tmp_path).run_id == "2024z-3"  # made last, whatever its name
    assert RunDir.find("latest", str(tmp_path)).path == tmp_path / "2024z-3"


def test_a_run_id_that_begins_another_is_exact(tmp_path: Path) -> None:
    new_run(tmp_path, "r1")
    new_run(tmp_path, "r12")
    assert RunDir.find("r1", tmp_path).run_id == "r1"


def test_the_default_root_is_the_one_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert OmegaConf.load(conf_dir() / "config.yaml").run.root == DEFAULT_ROOT
    monkeypatch.chdir(tmp_path)
    new_run(tmp_path / "runs", "mine")
    assert call(Path("runs/mine")) == call(tmp_path / "runs" / "mine") == "mine"
    assert call(Path("other/mine")) == "mine run.root=other"
    assert call(Path("a b/mine")) == "mine 'run.root=\"a b\"'"
    monkeypatch.chdir(tmp_path / "runs" / "mine")
    assert call(Path()) == f"mine run.root={tmp_path}/runs"


def test_a_run_is_called_from_a_directory_that_was_removed_meanwhile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    new_run(tmp_path / "runs", "mine")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert call(tmp_path / "runs" / "mine") == f"mine run.root={tmp_path}/runs"
    assert call(Path("runs/mine")) == "mine"
    assert call(Path("other/mine")) == "mine run.root=other"
    assert call(Path())  # nothing there has a name any more, but the message is made
    assert LocalPlace(Path("other/mine")).name == "mine"


def test_a_run_that_cannot_be_found_is_met_with_those_that_can(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no runs in .*: make one with `cogeval run`"):
        RunDir.find("latest", tmp_path)
    new_run(tmp_path, "2025-aaaa")
    new_run(tmp_path, "2025-bbbb")
    with pytest.raises(
        InputError, match=r"unknown run in .* '2025-bbbc'; known, closest first: 2025-bbbb, 2025-aaaa"
    ):
        RunDir.find("2025-bbbc", tmp_path)
    with pytest.raises(InputError, match="'2025-' could be any of 2025-aaaa, 2025-bbbb"):
        RunDir.find("2025-", tmp_path)
    with pytest.raises(InputError, match="unknown run"):
        RunDir.find("", tmp_path)


def test_a_run_is_found_from_inside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(new_run(tmp_path, "r").path)
    assert RunDir.find(".", "runs").run_id == "r"


def test_a_directory_without_a_manifest_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "half" / "shards").mkdir(parents=True)
    with pytest.raises(InputError, match="no runs"):
        RunDir.find("half", tmp_path)


def test_run_ids_are_unique_and_carry_the_configuration() -> None:
    ids = {new_run_id("0123456789abcdef") for _ in range(50)}
    assert len(ids) == 50
    assert all("-01234567-" in run_id for run_id in ids)


@pytest.mark.parametrize(
    ("version", "way_out"),
    [(0, "read it with the cogeval that wrote it"), (99, "upgrade cogeval"), (None, "read it")],
)
def test_an_unknown_schema_version_names_the_way_out(run: RunDir, version: object, way_out: str) -> None:
    path = run.path / "manifest.json"
    value = read_checked_json(path.read_bytes())
    path.write_bytes(checked_json({**value, "schema_version": version}))
    with pytest.raises(
        InputError, match=rf"expected schema version 2 in .*manifest.json, got {version}; {way_out}"
    ):
        _ = RunDir(run.path).manifest
    check_schema_version(1, "here")


def test_index_ranges_are_half_open_and_ascending() -> None:
    assert to_ranges([5, 1, 2, 3, 9, 2]) == ((1, 4), (5, 6), (9, 10))
    assert from_ranges(((1, 4), (9, 10))).tolist() == [1, 2, 3, 9]
    assert to_ranges([]) == ()
    assert from_ranges(()).tolist() == []


def test_two_drivers_of_one_run_are_refused(run: RunDir) -> None:
    with run.lock():
        expected = (
            f"run run-1 is being driven by process {os.getpid()} on {socket.gethostname()} since 0 min 0 s"
        )
        with pytest.raises(InputError, match=expected), RunDir(run.path).lock():
            pass
        assert (run.path / "lock").exists()
    assert not (run.path / "lock").exists()
    with run.lock():
        pass


def _write_lock(run: RunDir, **changes: object) -> None:
    mine = LockHolder(socket.gethostname(), os.getpid(), psutil.Process().create_time(), time.time(), "t")
    (run.path / "lock").write_text(json.dumps({**msgspec.to_builtins(mine), **changes}))


def test_a_lock_of_a_process_that_has_ended_is_taken_over(run: RunDir) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    _write_lock(run, pid=dead.pid)
    with run.lock() as held:
        assert held.holder.pid == os.getpid()


def test_a_lock_of_an_earlier_process_with_the_same_id_is_taken_over(run: RunDir) -> None:
    _write_lock(run, process_start=12345.0)
    with run.lock():
        pass


TAKER = """
import sys
from pathlib import Path
from cogeval.errors import InputError
from cogeval.store.run import RunDir
print("ready", flush=True)
sys.stdin.readline()
try:
    RunDir(Path(sys.argv[1])).acquire_lock()
    print("held", flush=True)
except InputError:
    print("refused", flush=True)
sys.stdin.readline()  # the holder lives on until all have tried
"""


def test_of_many_that_find_a_stale_lock_one_takes_it(run: RunDir) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    _write_lock(run, pid=dead.pid)
    command = [sys.executable, "-c", TAKER, str(run.path)]
    takers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    for taker in takers:
        assert taker.stdout is not None
        assert taker.stdout.readline() == "ready\n"
    for taker in takers:
        assert taker.stdin is not None
        taker.stdin.write("\n")
        taker.stdin.flush()
    answers = [taker.stdout.readline().strip() for taker in takers if taker.stdout]
    for taker in takers:
        taker.communicate()
    assert sorted(answers) == ["held", *["refused"] * 5]


def test_a_lock_of_another_host_is_respected_and_says_how_to_break_it(run: RunDir) -> None:
    _write_lock(run, host="elsewhere", start=time.time() - 7260)
    with pytest.raises(InputError, match=r"on elsewhere since 2 h 1 min; .*delete .*/lock"), run.lock():
        pass


def test_a_torn_lock_is_nobodys(run: RunDir) -> None:
    (run.path / "lock").write_text('{"host": "el')
    with run.lock():
        pass


def test_a_lock_that_was_taken_over_is_not_released_by_its_old_holder(run: RunDir) -> None:
    held = run.acquire_lock()
    _write_lock(run, token="another")
    held.release()
    assert (run.path / "lock").exists()


def test_a_lock_in_a_directory_that_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("")
    with pytest.raises(InputError, match=r"expected to be able to write .*/a_file"):
        RunDir(tmp_path / "a_file").acquire_lock()


def test_the_log_keeps_its_order_and_survives_a_torn_end(run: RunDir) -> None:
    lines = [{"event": "dispatch", "indexes": [[0, 16]]}, {"event": "lost", "note": 'a "crc":"\u2713'}]
    for line in lines:
        run.append_log(line)
    run.close()
    path = run.path / "ledger.log"
    whole = path.read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:cut])
        again = RunDir(run.path)
        assert again.log_lines() == lines[:1]
        again.append_log({"event": "void"})
        again.close()
        assert again.log_lines() == [lines[0], {"event": "void"}]


def test_a_damaged_line_of_the_log_is_left_out(run: RunDir) -> None:
    for number in range(3):
        run.append_log({"event": "dispatch", "indexes": [[number, number + 1]]})
    path = run.path / "ledger.log"
    path.write_bytes(path.read_bytes().replace(b"[[1,2]]", b"[[7,8]]"))
    assert [line["indexes"][0][0] for line in run.log_lines()] == [0, 2]


def test_committing_the_same_shard_again_changes_nothing(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4), commit=False)
    (sealed,) = recover(run.path)
    first = run.commit(sealed, [0, 1, 2], [3])
    assert run.commit(sealed, range(4)) == first
    assert run.records() == [first]
    assert first.accepted == ((0, 3),)
    assert first.superseded == ((3, 4),)


def test_another_shard_of_a_committed_id_is_refused(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4))
    other = new_run(run.path.parent, "other")
    write_shard(other, "w0-0000", range(4, 8), commit=False)
    (sealed,) = recover(other.path)
    for file in other.shards_path.glob("*.arrow"):
        file.replace(run.shards_path / file.name)
    with pytest.raises(RunError, match="expected shard w0-0000 to be new"):
        run.commit(sealed, sealed.indexes)


def test_a_commit_takes_each_index_of_the_shard_once(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4), commit=False)
    (sealed,) = recover(run.path)
    for accepted, superseded in (([0, 1, 2], []), ([0, 1, 2, 3], [3]), ([0, 1, 2, 3, 4], [])):
        with pytest.raises(ValueError, match="expected the indexes of shard"):
            run.commit(sealed, accepted, superseded)


def test_a_commit_of_files_that_this_host_cannot_see_is_refused(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4), commit=False)
    (sealed,) = recover(run.path)
    (run.shards_path / "w0-0000.seats.arrow").unlink()
    with pytest.raises(
        RunError, match=r"w0-0000\.seats\.arrow to commit it, got 0; is run\.root a directory"
    ):
        run.commit(sealed, sealed.indexes)
    assert run.records() == []


def test_a_run_is_discarded_only_without_shards(tmp_path: Path, run: RunDir) -> None:
    write_shard(run, "w0-0000", range(3), commit=False)
    with pytest.raises(RunError, match="it stays"):
        run.discard()
    assert run.path.is_dir()
    empty = new_run(tmp_path / "runs", "run-2")
    empty.append_log({"event": "dispatch"})
    empty.close()
    empty.discard()
    assert not empty.path.exists()


def test_of_many_runs_ten_are_listed(tmp_path: Path) -> None:
    for i in range(14):
        new_run(tmp_path, f"run-{i:02d}")
    with pytest.raises(InputError, match=r"closest first: run-0\d, .* and 5 more$") as caught:
        RunDir.find("run-0_", tmp_path)
    assert str(caught.value).count("run-") == 11
    with pytest.raises(InputError, match=r"could be any of run-00, .* and 4 more; write more"):
        RunDir.find("run", tmp_path)
