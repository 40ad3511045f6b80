"""What a killed nursery leaves behind is put away by the next one, and what a living one owns is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from process_stage import alive, faults

from cogeval.agents.process import child
from cogeval.agents.process.child import Nursery
from cogeval.agents.process.leftovers import FOLDER, make_folder, sweep
from cogeval.agents.process.owned import GROUP, PidsGroup, remove_tree

SLEEPER = "import os, time; os.closerange(3, 64); time.sleep(600)"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A place for directories and one for cgroups (which are directories here) of this test's own."""
    groups = tmp_path / "groups"
    groups.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(PidsGroup, "bases", staticmethod(lambda: [groups]))
    return tmp_path, groups


def owned_by(pid: int) -> list[Path]:
    """Directories and cgroups of a nursery or of the worker that started it."""
    parent = Path(tempfile.gettempdir())
    groups = [path for base in PidsGroup.bases() for path in base.glob(f"{GROUP}{pid}-*")]
    return [*parent.glob(f"{FOLDER}{pid}-*"), *groups]


def test_a_nursery_that_is_killed_leaves_nothing_when_the_next_one_has_started() -> None:
    worker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from cogeval.agents.process.child import Nursery; n = Nursery(False); input()",
        ],
        stdin=subprocess.PIPE,
    )
    try:
        inside = psutil.Process(worker.pid)
        while sum(len(nurse.children()) for nurse in inside.children()) < 2:  # spare supervisors
            assert worker.poll() is None
        (nurse,) = inside.children()
        spares = nurse.children()
        assert owned_by(worker.pid), "its directory"
        for process in (nurse, inside, *spares):
            process.send_signal(signal.SIGKILL)
        psutil.wait_procs(spares, timeout=5)
    finally:
        worker.kill()
        worker.communicate()
    assert owned_by(worker.pid), "nothing was left, so nothing is tried"
    Nursery(False).close()
    assert not owned_by(worker.pid)
    assert not owned_by(nurse.pid)


def test_a_nursery_killed_in_mid_episode_is_followed_by_another_and_both_leave_nothing(stage) -> None:
    first = child.nursery(False)
    os.kill(first._process.pid, signal.SIGKILL)
    first._process.wait()
    assert not faults(stage.play(stage.bad("leaves"), seed=1), seat=1)
    child.close_nurseries()
    assert not owned_by(os.getpid())
    assert not owned_by(first._process.pid)


def test_what_a_living_process_owns_is_never_touched(places) -> None:
    folder, fd = make_folder()
    group = PidsGroup()
    if group.path is None:  # a directory takes any limit, as a file
        pytest.fail("expected a group in a directory of this test's own")
    sweep()
    assert folder.exists()
    assert group.path.exists()
    path = group.path
    os.close(group.lock)
    os.close(fd)
    (path / "pids.max").unlink()
    (path / "cgroup.procs").touch()
    sweep()
    assert not folder.exists()


def test_a_number_that_another_process_has_got_since_is_not_taken_for_the_owner(places) -> None:
    reused = places[0] / f"{FOLDER}{os.getpid()}-x1"
    reused.mkdir()
    sweep()
    assert not reused.exists(), "this process runs, but does not own it"


def test_a_link_of_that_name_is_not_followed(places) -> None:
    folder, groups = places
    precious = folder / "precious"
    precious.mkdir()
    (precious / "kept").touch()
    (folder / f"{FOLDER}1-x").symlink_to(precious)
    (groups / f"{GROUP}1-1").symlink_to(precious)
    sweep()
    assert (precious / "kept").exists()


def test_a_directory_in_which_a_program_forbade_itself_to_write_is_removed(tmp_path) -> None:
    deep = tmp_path / "seat" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    for path in (deep, deep.parent):
        path.chmod(0)
    remove_tree(tmp_path / "seat")
    assert not (tmp_path / "seat").exists()


def test_a_directory_deeper_than_paths_are_long_is_removed(tmp_path) -> None:
    deep = "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\n"
    top = tmp_path / "seat"
    top.mkdir()
    (tmp_path / "kept").touch()
    (top / "link").symlink_to(tmp_path)
    subprocess.run([sys.executable, "-I", "-S", "-c", deep], cwd=top, check=True)
    remove_tree(top)
    assert not top.exists()
    assert (tmp_path / "kept").exists()


@pytest.mark.parametrize("where", ["seat", "seat/link", "seat/a/link", "seat/a/b/link"])
def test_no_link_is_followed_when_a_directory_is_removed(tmp_path, where) -> None:
    """Not even one in the place of the directory itself."""
    precious = tmp_path / "precious"
    (precious / "deep").mkdir(parents=True)
    (precious / "deep" / "kept").touch()
    precious.chmod(0o755)
    link = tmp_path / where
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(precious)
    remove_tree(tmp_path / "seat")
    assert not os.path.lexists(tmp_path / "seat")
    assert (precious / "deep" / "kept").exists()
    assert precious.stat().st_mode & 0o777 == 0o755


def test_a_program_that_puts_a_link_in_the_place_of_its_directory_costs_the_link(stage, tmp_path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "kept").touch()
    script = f'cd /; rm -r "$HOME"; ln -s {precious} "$HOME"; exit 1'
    stage.play(stage.seated(kind="process", command=["bash", "-c", script]))
    assert (precious / "kept").exists()


def test_who_is_left_in_a_cgroup_without_an_owner_is_killed(stage) -> None:
    group = PidsGroup()
    if group.path is None:
        pytest.skip("this user may not make a pids cgroup here")
    path = group.path
    left = subprocess.Popen([sys.executable, "-I", "-S", "-c", SLEEPER, stage.mark])
    group.limit(4)
    (path / "cgroup.procs").write_text(str(left.pid))
    sweep()
    assert alive(stage.mark), "it is owned"
    os.close(group.lock)
    sweep()
    assert left.wait(5) == -signal.SIGKILL
    sweep()
    assert not path.exists()
