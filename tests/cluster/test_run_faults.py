"""What else goes wrong: a second driver, a directory that nobody may write, a clock that jumps."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from cluster_runs import column, digest, new_run

from cogeval.cli.recorded import void_reasons
from cogeval.cli.resuming import pardon
from cogeval.cluster.driver import drive
from cogeval.cluster.host import EpisodeHost
from cogeval.cluster.plan import ClusterOptions
from cogeval.errors import InputError
from cogeval.schedule.log import attempts_from_log
from cogeval.store.checks import check_run
from cogeval.store.read import read_tables

TWO = ClusterOptions(workers=2)
HOLD = """
import sys
from cogeval.store.run import RunDir
with RunDir(sys.argv[1]).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other_driver():
    """Starts a process that holds a run's lock."""
    started = []

    def hold(run):
        words = [sys.executable, "-c", HOLD, str(run.path)]
        holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(holder)
        assert holder.stdout.readline() == "held\n"
        return holder

    yield hold
    for holder in started:
        holder.kill()
        holder.communicate()


def test_a_second_driver_is_refused_with_the_host_process_and_age_of_the_first(tmp_path, other_driver):
    run, plan = new_run(tmp_path)
    holder = other_driver(run)
    with pytest.raises(InputError) as refused:
        drive(plan, run, TWO)
    said = str(refused.value)
    assert f"is being driven by process {holder.pid} on {socket.gethostname()} since 0 min" in said
    assert f"stop it (kill {holder.pid})" in said


def test_the_lock_of_a_driver_that_was_killed_is_taken_over(tmp_path, other_driver):
    run, _ = new_run(tmp_path)
    holder = other_driver(run)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with run.lock() as lock:
        assert lock.holder.pid == os.getpid()


def test_a_clock_that_is_set_does_not_make_a_living_driver_look_dead(tmp_path, other_driver, monkeypatch):
    run, plan = new_run(tmp_path)
    holder = other_driver(run)
    for jump_s in (-86_400.0, 3600.0):
        with monkeypatch.context() as jump:
            set_clock(jump, jump_s)
            with pytest.raises(InputError, match=rf"process {holder.pid} .* since \d+ (h|min)"):
                drive(plan, run, TWO)


def set_clock(patch, jump_s):
    """What a process sees after the system's clock was set: the boot, and all starts, have moved too."""
    now, boot, started = time.time, psutil.boot_time, psutil.Process.create_time
    patch.setattr(time, "time", lambda: now() + jump_s)
    patch.setattr(psutil, "boot_time", lambda: boot() + jump_s)
    patch.setattr(psutil.Process, "create_time", lambda self: started(self) + jump_s)


def played(run, plan):
    """Plays a run in this process and commits it."""

    async def session():
        host = EpisodeHost(plan, "w0")
        host.give(range(len(plan.schedule)))
        finished, sealed = 0, []
        while finished < len(plan.schedule):
            receipt = await host.report(0.2)
            finished += len(receipt.finished)
            sealed += receipt.sealed
        return [*sealed, *(await host.drain()).sealed]

    with run.lock():
        for shard in asyncio.run(session()):
            run.commit(shard, shard.indexes)


def test_a_clock_that_jumps_changes_no_episode_and_blames_nobody(tmp_path, monkeypatch):
    agents = {"waits": {"_target_": "misbehaving_agents.Waits", "seconds": 0.01}}
    quiet, plan = new_run(tmp_path / "quiet", agents)
    played(quiet, plan)
    now, looks = time.time, []

    def jumping():
        looks.append(1)
        return now() + (-1) ** len(looks) * 86_400.0

    monkeypatch.setattr(time, "time", jumping)
    run, same_plan = new_run(tmp_path / "jumping", agents)
    played(run, same_plan)
    assert looks
    assert digest(run) == digest(quiet)
    tables = read_tables(run)
    assert not any(column(tables.episodes, "clock_events"))
    assert sum(column(tables.episodes, "faults")) == 0
    assert all(0 <= think_s < 60 for think_s in column(tables.decisions, "think_s"))
    assert check_run(run) == []


@contextlib.contextmanager
def as_somebody():
    """Without the rights of root, who may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_place():
    """A directory that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="cogeval-test-") as place:
        Path(place).chmod(0o755)
        yield Path(place)


def test_a_read_only_run_can_be_read_and_says_so_when_it_shall_be_played(open_place):
    run, plan = new_run(open_place)
    played(run, plan)
    for path in (run.path, run.shards_path):
        path.chmod(0o555)
    try:
        with as_somebody():
            assert check_run(run) == []
            assert len(digest(run)) == 64
            with pytest.raises(
                InputError, match=r"expected to be able to write .* to lock the run, got: Perm"
            ):
                drive(plan, run, TWO)
    finally:
        for path in (run.path, run.shards_path):
            path.chmod(0o755)


def test_a_directory_that_becomes_read_only_ends_the_run_and_is_named(open_place):
    run, plan = new_run(open_place)
    run.shards_path.chmod(0o555)

    async def fatal():
        host = EpisodeHost(plan, "w0")
        host.give([0, 1, 2])
        receipts = [await host.report(0.2) for _ in range(3)]
        return next(receipt.fatal for receipt in receipts if receipt.fatal)

    try:
        with as_somebody():
            said = asyncio.run(fatal())
    finally:
        run.shards_path.chmod(0o755)
    assert "Permission denied" in said
    assert str(run.shards_path) in said


def test_what_is_pardoned_is_missing_again_as_if_never_tried(tmp_path):
    run, _ = new_run(tmp_path)
    with run.lock():
        run.append_log({"event": "dispatch", "worker": "w0", "indexes": [[2, 4]], "alone": False})
        run.append_log({"event": "void", "index": 3, "reason": "lost"})
    assert void_reasons(run) == {3: "lost"}
    pardon(run)
    assert void_reasons(run) == {}
    history = attempts_from_log(run.log_lines())
    assert (history.void, history.attempts, history.num_unreadable) == ({}, {}, 0)
