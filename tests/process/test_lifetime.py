"""Order of things: respawn with history, reuse, results, and a worker that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from process_stage import BAD, Stage, alive, faults

from cogeval.agents.process.child import nursery

LOGGING = """
import json, os, sys, time
log = open(sys.argv[2], "a")
asked = 0
for line in sys.stdin:
    message = json.loads(line)
    log.write(json.dumps({"pid": os.getpid(), **message}) + "\\n")
    log.flush()
    if message["type"] == "hello":
        resumed = message.get("resumed", False)
        print('{"type": "ready", "reuse": true}', flush=True)
    elif message["type"] == "observation":
        asked += 1
        if sys.argv[1] == "hangs" and asked == 2 and not resumed:
            time.sleep(600)
        print(json.dumps({"type": "action", "action": message["default"]}), flush=True)
"""


class Logging:
    """A program that keeps every message that it gets."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.log = stage, folder / "log.jsonl"
        self.program = folder / "logging_program.py"
        self.program.write_text(LOGGING)

    def seated(self, manner: str = "good", **settings: object):
        command = [sys.executable, str(self.program), manner, str(self.log), self.stage.mark]
        return self.stage.seated(kind="process", command=command, files=[str(self.program)], **settings)

    def messages(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def logging(stage: Stage, tmp_path: Path) -> Logging:
    return Logging(stage, tmp_path)


def test_messages_come_in_order_and_the_episode_seed_is_not_among_them(stage, logging):
    seed = 7_210_345_987_654_321
    episode = stage.play(logging.seated(), seed=seed)
    messages = logging.messages()
    kinds = [message["type"] for message in messages]
    assert kinds == ["hello", *["observation"] * (len(kinds) - 3), "result", "bye"]
    assert str(seed) not in logging.log.read_text()
    hello, result = messages[0], messages[-2]
    assert (hello["protocol"], hello["game"], hello["seat"], hello["seats"]) == (1, "cogz", 0, 2)
    assert hello["parameters"] == dict(stage.game.parameters)
    outcome = episode.results.seats[0]
    assert (result["score"], result["rank_key"]) == (outcome.score, list(outcome.rank_key))
    assert result["statistics"] == dict(outcome.statistics)
    assert not faults(episode)


def test_a_process_that_was_given_up_is_followed_by_one_that_knows_the_past(stage, logging):
    episode = stage.play(logging.seated("hangs"), on_fault="pass", decision_s=0.4)
    assert [fault.fault for fault in faults(episode)] == ["timeout"], "one hang, one fault"
    first, second = [message for message in logging.messages() if message["type"] == "hello"]
    assert first["pid"] != second["pid"]
    assert "resumed" not in first
    assert second["resumed"] is True
    seen = [message for message in logging.messages() if message["type"] == "observation"]
    assert [entry["observation"] for entry in second["history"]] == [m["observation"] for m in seen[:2]]
    assert [entry["answer"] for entry in second["history"]] == [{"action": seen[0]["default"]}, None]


@pytest.mark.parametrize(("reuse", "num_processes"), [(True, 1), (False, 2)])
def test_a_process_that_may_be_reused_plays_the_next_episode(stage, logging, reuse, num_processes):
    seated = logging.seated(reuse=reuse)
    for seed in (1, 2):
        assert not faults(stage.play(seated, seed=seed))
    hellos = [message for message in logging.messages() if message["type"] == "hello"]
    assert len(hellos) == 2
    assert len({message["pid"] for message in hellos}) == num_processes
    stage.put_away(seated)


def test_a_kept_process_that_died_is_replaced_at_no_cost(stage, logging):
    seated = logging.seated(reuse=True)
    stage.play(seated, seed=1)
    (kept,) = alive(stage.mark)
    kept.kill()
    kept.wait(5)
    assert not faults(stage.play(seated, seed=2))
    stage.put_away(seated)


def test_a_process_sees_the_variables_that_were_allowed_and_no_others(stage, tmp_path, monkeypatch):
    monkeypatch.setenv("COGEVAL_TEST_ALLOWED", "yes")
    monkeypatch.setenv("COGEVAL_TEST_SECRET", "no")
    shown = tmp_path / "env"
    script = f"env > {shown}; pwd >> {shown}; ls -A >> {shown}; exit 5"
    seated = stage.seated(kind="process", command=["bash", "-c", script], env=["COGEVAL_TEST_ALLOWED"])
    (fault,) = faults(stage.play(seated))
    assert "exited with code 5" in fault.detail
    text = shown.read_text()
    assert "COGEVAL_TEST_ALLOWED=yes" in text
    assert "COGEVAL_TEST_SECRET" not in text
    (home,) = [line.removeprefix("HOME=") for line in text.splitlines() if line.startswith("HOME=")]
    assert text.splitlines()[-1] == home, "its directory is empty and its own"
    assert not Path(home).exists()


WORKER = """
import sys
from process_stage import Stage
stage = Stage()
stage.mark = sys.argv[1]
stage.play(stage.bad("announces"), decision_s=600.0)
"""


def test_nothing_is_left_when_the_worker_is_killed(stage):
    env = {**os.environ, "PYTHONPATH": str(BAD.parent)}
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, stage.mark], env=env, stderr=subprocess.PIPE, text=True
    )
    try:
        children = []
        while len([p for p in children if stage.mark in p.cmdline()]) < 2:  # the program and its child
            assert worker.poll() is None, worker.stderr.read()
            children = psutil.Process(worker.pid).children(recursive=True)
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
    _, left = psutil.wait_procs(children, timeout=5)
    assert not left


@pytest.mark.parametrize("manner", ["patricide", "stops_its_supervisor"])
def test_an_agent_that_kills_or_stops_its_supervisor_leaves_nothing(stage, manner):
    episode = stage.play(stage.bad(manner), decision_s=2)
    (fault,) = faults(episode)
    assert fault.fault in ("exception", "timeout")
    _, left = psutil.wait_procs(alive(stage.mark), timeout=5)
    assert not left


def test_a_nursery_that_died_is_replaced(stage, logging):
    first = nursery(False)
    first.close()
    assert not faults(stage.play(logging.seated()))
