"""What a start may meet: no process or descriptor is forgotten, and what the machine lacks is no fault."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest
from process_stage import Stage, alive, faults

from cogeval.agents import build_agent
from cogeval.agents.process import leftovers, seat
from cogeval.agents.process.child import Child, nursery
from cogeval.agents.process.launch import Launch
from cogeval.agents.process.owned import place_file
from cogeval.agents.process.reading import json_object, read_answer
from cogeval.agents.process.seat import ProcessAgent
from cogeval.core.agent import Seated
from cogeval.core.replies import malformed
from cogeval.errors import HostError

PROGRAM = """
import json, os, sys, time
manner = sys.argv[1]
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        ready = {"type": "fault", "detail": " "} if manner == "faults" else {"type": "ready", "reuse": True}
        print(json.dumps(ready), flush=True)
    elif message["type"] == "observation" and manner == "deep":
        if "history" in globals():
            sys.exit(3)
        history = True
        print('{"type": "action", "reply": {"a": ' + "[" * 980 + "]" * 980 + "}}", flush=True)
    elif message["type"] == "observation":
        print(json.dumps({"type": "action", "action": message["default"]}), flush=True)
    elif message["type"] == "bye" and manner == "hangs":
        time.sleep(600)
"""
TALKING = """
while IFS= read -r line; do
  case $line in
    *'"type":"hello"'*) echo '{"type":"ready","reuse":true}' ;;
    *'"type":"observation"'*) echo '{"type":"fault","detail":"no idea"}' ;;
    *'"type":"bye"'*) echo 'bye yourself' ;;
  esac
done
"""
SELF_CHANGING = """
import json, sys
from pathlib import Path
me = Path("mine.py")
assert me.read_text()[-1] != "#", "another episode was here"
me.write_text(me.read_text() + "#")
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print('{"type": "ready"}', flush=True)
    elif message["type"] == "observation":
        print(json.dumps({"type": "action", "action": message["default"]}), flush=True)
"""


def seated(stage: Stage, manner: str, **settings: object) -> Seated:
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, manner, stage.mark]
    return stage.seated(kind="process", command=command, **settings)


def num_fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_two_hundred_kept_programs_that_speak_after_bye_leave_no_descriptor(stage: Stage) -> None:
    tried = stage.seated(kind="process", command=["bash", "-c", TALKING, stage.mark], reuse=True)
    stage.play(tried, seed=0)
    before = num_fds()
    for seed in range(1, 201):
        (fault,) = faults(stage.play(tried, seed=seed))
        assert fault.detail == "ProcessError: no idea", "a start failed"
        assert num_fds() <= before
    stage.put_away(tried)


def test_a_start_that_fails_in_an_unforeseen_way_ends_its_process(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: Child) -> bytes:
        raise RuntimeError("unforeseen")

    nursery(False)
    before = num_fds()
    monkeypatch.setattr(Child, "read_line", fail)
    details = [fault.detail or "" for fault in faults(stage.play(seated(stage, "good"), on_fault="pass"))]
    assert not alive(stage.mark)
    assert num_fds() == before
    assert all("RuntimeError: unforeseen" in detail for detail in details), details
    assert "3 times in a row: RuntimeError: unforeseen" in details[3]


@pytest.mark.parametrize("num_opened", [0, 1])
def test_a_lack_of_descriptors_is_no_fault_of_the_seat(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, num_opened: int
) -> None:
    tried, pipe, left = seated(stage, "good"), os.pipe, [None] * num_opened
    nursery(False)
    before = num_fds()

    def scarce() -> tuple[int, int]:
        if not left:
            raise OSError(errno.EMFILE, "Too many open files")
        left.pop()
        return pipe()

    monkeypatch.setattr(os, "pipe", scarce)
    with pytest.raises(HostError, match="Too many open files"):
        stage.play(tried)
    assert num_fds() == before


def test_a_disk_that_fails_under_a_start_is_no_fault_of_the_seat(stage: Stage) -> None:
    launch = Launch((sys.executable,), files=(("memory", "/proc/self/mem"),))  # reading it is an EIO
    with pytest.raises(HostError, match=r"could not begin: .*Input/output error"):
        stage.play(Seated("tried", ProcessAgent(launch, stage.game), deterministic=False))


def test_a_declared_file_that_is_gone_is_named_in_the_fault(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SELF_CHANGING)
    tried = stage.seated(kind="process", command=[sys.executable, "mine.py"], files=["mine.py"])
    (tmp_path / "mine.py").unlink()
    (fault,) = faults(stage.play(tried))
    assert "could not begin: [Errno 2] No such file or directory" in (fault.detail or "")


def test_a_program_changes_its_own_copy_of_a_declared_file_only(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine.py"
    mine.write_text(SELF_CHANGING)
    settings = {"kind": "process", "command": [sys.executable, "mine.py"], "files": ["mine.py", "mine.py"]}
    tried, fingerprint = stage.seated(**settings), build_agent("a", stage.game, settings).fingerprint
    for seed in (1, 2):
        assert not faults(stage.play(tried, seed=seed))
    assert mine.read_text() == SELF_CHANGING
    assert build_agent("a", stage.game, settings).fingerprint == fingerprint


def test_a_copy_has_the_mode_of_its_file_and_a_large_one_is_a_link(tmp_path: Path) -> None:
    large, small, shown = tmp_path / "large", tmp_path / "small", tmp_path / "shown"
    with large.open("wb") as file:
        file.truncate((64 << 20) + 1)
    small.write_text("x")
    small.chmod(0o750)
    place_file(large, shown / "deep" / "large")
    place_file(small, shown / "small")
    assert (shown / "deep" / "large").readlink() == large
    assert not (shown / "small").is_symlink()
    assert stat.S_IMODE((shown / "small").stat().st_mode) == 0o750
    assert (shown / "small").stat().st_ino != small.stat().st_ino


def test_an_answer_too_deep_to_be_told_does_not_keep_the_next_process_from_starting(stage: Stage) -> None:
    episode = stage.play(seated(stage, "deep"), on_fault="pass")
    details = [fault.detail or "" for fault in faults(episode)]
    assert any("exited with code 3" in detail for detail in details), details
    assert not any("could not be started" in detail or "Recursion" in detail for detail in details), details


@pytest.mark.parametrize(
    ("usage", "hint"),
    [
        ('{"cost_usd": 1e308}', "expected usage.cost_usd from 0 to less than 1,000,000, got 1e+308"),
        ('{"cost_usd": -1}', "expected usage.cost_usd from 0 to less than 1,000,000, got -1"),
        (
            f'{{"tokens_in": {2**70}}}',
            "expected usage.tokens_in from 0 to less than 1,099,511,627,776, got 1.18",
        ),
        ('{"tokens_out": "many"}', "Expected `int`, got `str` - at `$.tokens_out`"),
        ('{"tokens_out": 3}', None),
        ("null", None),
    ],
)
def test_a_usage_that_cannot_be_is_named_in_the_hint(stage: Stage, usage: str, hint: str | None) -> None:
    line = f'{{"type": "action", "reply": {{}}, "usage": {usage}}}'.encode()
    said = malformed(read_answer(stage.game, json_object(line) or {}, line.decode()))
    assert (said is None) if hint is None else (hint in (said or "")), said


def test_a_start_that_fails_without_a_word_has_a_reason(stage: Stage) -> None:
    details = [f.detail or "" for f in faults(stage.play(seated(stage, "faults"), on_fault="pass"))]
    assert details[0].endswith("could not be started: it said fault, without a detail")
    assert details[3].endswith("3 times in a row: it said fault, without a detail")


def test_a_kept_program_that_hangs_after_bye_is_replaced_soon_and_at_no_cost(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seat, "_KEPT_S", 0.2)
    tried = seated(stage, "hangs", reuse=True)
    stage.play(tried, seed=1)
    (hanging,) = alive(stage.mark)
    episode = stage.play(tried, seed=2)
    assert not faults(episode)
    assert not hanging.is_running()
    first = next(attempt for attempt in episode.attempts if attempt.seat == 0)
    assert 0.2 <= first.queue_s < 5.0
    stage.put_away(tried)


def test_a_directory_that_cannot_be_locked_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(leftovers, "_locked", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        leftovers.make_folder()
    assert not list(tmp_path.iterdir())
