"""What a person reads when a run fails in the middle, or loses what others make up for."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cogeval.cli import session, tracking
from cogeval.cluster.progress import Outcome, Progress
from cogeval.cluster.signals import terminable
from cogeval.cluster.tally import Tally
from cogeval.config import Experiment
from cogeval.core.quota import BudgetSpentError
from cogeval.errors import RunError
from cogeval.store.files import naming_full_disk
from cogeval.store.run import RunDir

TRACKED = ("tracking.enabled=true", "tracking.uri=http://127.0.0.1:1")


class Tracker:
    """Fails whenever it is asked, and once more when it is closed."""

    def __init__(self, _settings: object, warn: Callable[[str], None], _again: str) -> None:
        self._warn = warn

    def start(self, _run: object) -> None:
        pass

    def wants_update(self) -> bool:
        self._warn("tracking failed: no answer")
        return False

    def close(self, timeout_s: float) -> None:
        self._warn(f"tracking failed: no answer within {timeout_s:g} s")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a run fail in the middle, after its observers were called so often."""
    monkeypatch.setattr(tracking, "MlflowTracker", Tracker)

    def fail(error: BaseException, observed: int = 0) -> None:
        def driven(_run: object, _experiment: object, tracker: Any, *, quiet: bool) -> None:
            for _ in range(observed):
                tracker._tracker.wants_update()
            raise error

        monkeypatch.setattr(session, "_driven", driven)

    return fail


@pytest.mark.parametrize("observed", [0, 1])
def test_the_reason_is_the_last_line_and_at_most_one_of_tracking_comes_before(
    cogeval, make_run, failing, observed: int
) -> None:
    run = make_run(*TRACKED, done=2)
    failing(RunError("the head of the\nRay cluster does not answer"), observed)
    answer = cogeval("resume", "latest", "--quiet")
    assert answer.code == 1
    before, reason = answer.err.splitlines()
    assert before.startswith("cogeval: warning: tracking failed: no answer")
    assert reason == (
        f"cogeval: failed: the head of the Ray cluster does not answer; to go on: cogeval resume {run.run_id}"
    )
    assert answer.out == ""


def test_without_tracking_the_reason_is_the_only_line(cogeval, make_run, failing) -> None:
    make_run(done=2)
    failing(RunError("the head is lost"))
    answer = cogeval("resume", "latest", "--quiet")
    assert answer.err.startswith("cogeval: failed: the head is lost; to go on: cogeval resume ")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(signal.SIGTERM)])
def test_a_signal_before_the_driver_looks_for_one_ends_with_the_command_that_goes_on(
    cogeval, make_run, failing, error: BaseException
) -> None:
    run = make_run(done=2)
    failing(error)
    answer = cogeval("resume", "latest", "--quiet", "cluster.workers=1")
    assert answer.code == 130
    assert answer.err == f"cogeval: interrupted; go on with: cogeval resume {run.run_id} cluster.workers=1\n"


SIGNALLED = """
import os, signal, sys
from cogeval.cli import main, session
session.{where} = lambda *_, **__: os.kill(os.getpid(), signal.SIG{name})
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["TERM", "INT"])
@pytest.mark.parametrize("where", ["check_models", "_driven"])
def test_sigterm_and_ctrl_c_end_what_imports_or_starts_with_the_command_that_goes_on(
    tmp_path: Path, where: str, name: str
) -> None:
    script = SIGNALLED.format(where=where, name=name)
    command = [sys.executable, "-c", script, "run", "run.id=mine", "tracking=off", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "cogeval: interrupted; go on with: cogeval resume mine\n"


def test_a_sweep_that_is_interrupted_as_a_job_starts_says_what_was_not_begun(cogeval, failing) -> None:
    failing(KeyboardInterrupt())
    answer = cogeval("run", "-m", "schedule.blocks=1", "seed=1,2,3", "tracking=off", "--quiet")
    assert answer.code == 130
    last = answer.err.splitlines()[-1]
    assert last.startswith("cogeval: interrupted; go on with: cogeval resume ")
    assert last.endswith("; not begun: 2 jobs")
    assert "job 2 of 3" not in answer.err


def test_who_has_a_handler_of_sigterm_keeps_it_and_others_have_the_default_back() -> None:
    def ours(*_: object) -> None:
        pass

    before = signal.getsignal(signal.SIGTERM)
    try:
        for handler in (ours, signal.SIG_DFL, signal.SIG_IGN):
            signal.signal(signal.SIGTERM, handler)
            with terminable():
                is_kept = signal.getsignal(signal.SIGTERM) is handler
            assert is_kept == (handler is not signal.SIG_DFL)
            assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file"), RunError("a worker cannot write")])
def test_a_run_whose_directory_is_gone_has_failed_for_that_reason(
    cogeval, make_run, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    run = make_run(done=2)

    def driven(*_: object, **__: object) -> None:
        run.path.rename(run.path.with_name("moved"))
        raise error

    monkeypatch.setattr(session, "_driven", driven)
    answer = cogeval("resume", "latest", "--quiet")
    assert answer.code == 1
    assert answer.err == (
        f"cogeval: failed: the run's directory 'runs/{run.run_id}' is not there any more: it, or the working "
        f"directory, was removed or moved while the run was played; put it back, then cogeval resume "
        f"{run.run_id}, or begin the run anew\n"
    )


def test_a_file_that_is_missing_elsewhere_is_no_word_about_the_run(cogeval, make_run, failing) -> None:
    make_run(done=2)
    failing(FileNotFoundError(2, "No such file"))
    assert cogeval("resume", "latest", "--quiet").err.startswith("cogeval: internal error: FileNotFoundError")


@pytest.mark.parametrize("address", [None, "10.0.0.5:6379"])
def test_a_full_disk_names_its_way_out_once(cogeval, make_run, failing, address: str | None) -> None:
    run = make_run(*([f"cluster.address={address}"] if address else []), done=2)
    with pytest.raises(RunError) as full, naming_full_disk(run.path):
        raise OSError(errno.ENOSPC, "No space left on device")
    failing(full.value)
    (said,) = cogeval("resume", "latest", "--quiet", "cluster.workers=1").err.splitlines()
    command = f"cogeval resume {run.run_id} cluster.workers=1"
    assert said.count("cogeval resume") == 1
    assert f"Make room, then go on with `{command}`" in said
    assert ("cluster.address=null" in said) == (address is not None)


def test_money_that_ends_a_run_is_no_failure_of_it(cogeval, make_run, failing) -> None:
    make_run(done=2)
    failing(BudgetSpentError("the cap is reached"))
    answer = cogeval("resume", "latest", "--quiet")
    assert answer.code == BudgetSpentError.exit_code
    assert answer.err.startswith("cogeval: the cap is reached; to go on: cogeval resume ")


def test_a_failed_job_of_a_sweep_is_said_to_have_failed_once(cogeval, failing) -> None:
    failing(RunError("the head is lost"))
    answer = cogeval("run", "-m", "schedule.blocks=1", "seed=1,2", "tracking=off", "--json", "--quiet")
    assert answer.code == 1
    assert answer.err.count("failed: the head is lost") == 2
    assert "failed: failed" not in answer.err
    assert [job["error"].partition(";")[0] for job in answer.json["jobs"]] == ["the head is lost"] * 2


@pytest.mark.parametrize("num_lost", [0, 2])
def test_what_was_lost_is_at_the_end_of_a_run_and_in_its_json(
    cogeval, make_run, monkeypatch: pytest.MonkeyPatch, num_lost: int
) -> None:
    def driven(run: RunDir, experiment: Experiment, *_: object, **__: object) -> Outcome:
        for index in range(6, len(experiment.schedule)):
            run.append_log({"event": "void", "index": index, "reason": "boom"})
        run.close()
        tally = Tally.empty(len(experiment.agents))
        lost = Progress(run.run_id, 8, 6, 0, 2, 0.0, 0, (), tally, num_lost_seat_actors=num_lost)
        return Outcome(True, False, lost, 0.0, 0, 0.0, 0)

    monkeypatch.setattr(session, "_driven", driven)
    make_run(done=6, name="told")
    out = cogeval("resume", "told", "--quiet").out
    assert ("lost           2 lost seat actors; others took their places\n" in out) == (num_lost > 0)
    assert ("lost seat actor" in out) == (num_lost > 0)
    make_run(done=6, name="as-json")
    said = cogeval("resume", "as-json", "--quiet", "--json").json
    assert (said["lost_workers"], said["lost_seat_actors"]) == (0, num_lost)
