"""What a person reads when a run fails in the middle, or loses what others make up for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cogeval.cli import session, tracking
from cogeval.cluster.progress import Outcome, Progress
from cogeval.cluster.tally import Tally
from cogeval.config import Experiment
from cogeval.core.quota import BudgetSpentError
from cogeval.errors import RunError
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

    def fail(error: Exception, observed: int = 0) -> None:
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
