"""Whatever a program does, it costs its own seat only and leaves no process behind."""

from __future__ import annotations

import time

import pytest
from process_stage import Stage, alive, faults

from cogeval.agents.process.owned import PidsGroup

GIVEN_UP = 0.4  # seconds for a decision of a program that will not answer
TIMEOUTS = ("sleeps", "spins", "ignores", "far_child_kept")
ENDINGS = {  # what it does -> what the fault says of it
    "leaves": "exited with code 3; stderr: out of ideas",
    "floods": "wrote a line of more than 64 kB",
    "floods_stderr": "and the end",
    "closes": "closed its output; was killed",
    "child": "exited with code 0",
    "far_child": "exited with code 0",
    "allocates": "MemoryError",
    "opens": "Too many open files",
    "writes": "File too large",
}


@pytest.mark.parametrize("manner", TIMEOUTS)
def test_a_program_that_does_not_answer_is_given_up_and_killed_at_its_deadline(
    stage: Stage, manner: str
) -> None:
    started = time.monotonic()
    episode = stage.play(stage.bad(manner), decision_s=GIVEN_UP)
    passed_s = time.monotonic() - started
    assert not alive(stage.mark)
    assert [fault.fault for fault in faults(episode)] == ["timeout"]
    assert not faults(episode, seat=1)
    (fault,) = faults(episode)
    assert passed_s < fault.queue_s + GIVEN_UP + 1.0, "it was not gone within a second of its deadline"


@pytest.mark.parametrize("manner", ENDINGS)
def test_a_program_that_breaks_off_costs_its_own_seat_and_says_why(stage: Stage, manner: str) -> None:
    limits = {"memory_mb": 256, "open_files": 64, "max_line_kb": 64, "file_mb": 3}
    episode = stage.play(stage.bad(manner, **limits))
    assert not alive(stage.mark)
    (fault,) = faults(episode)
    assert fault.fault == "exception"
    assert fault.detail is not None
    assert ENDINGS[manner] in fault.detail, fault.detail
    assert not faults(episode, seat=1)


def test_what_is_no_json_is_unreadable_and_gets_one_retry(stage: Stage) -> None:
    episode = stage.play(stage.bad("garbage"))
    assert not alive(stage.mark)
    assert faults(episode)[0].fault == "unreadable"
    assert faults(episode)[0].text == "\x00{["
    assert len(faults(episode)) == 2
    assert not faults(episode, seat=1)


def test_a_program_that_speaks_out_of_turn_is_ended(stage: Stage) -> None:
    episode = stage.play(stage.bad("chatty"), on_fault="pass")
    assert not alive(stage.mark)
    assert any("was not asked for" in (fault.detail or "") for fault in faults(episode))


def test_all_output_of_an_episode_is_bounded(stage: Stage) -> None:
    episode = stage.play(stage.bad("floods", max_line_kb=1 << 20, max_output_mb=3))
    (fault,) = faults(episode)
    assert "wrote more than 3 MB" in (fault.detail or "")


def test_processes_that_fork_are_bounded_where_there_is_a_pids_cgroup(stage: Stage) -> None:
    group = PidsGroup()
    if group.path is None:
        pytest.skip("this user may not make a pids cgroup here")
    group.remove()
    episode = stage.play(stage.bad("forks", processes=8))
    (fault,) = faults(episode)
    assert "only 7 children: Resource temporarily unavailable" in (fault.detail or ""), fault.detail


def test_dozens_of_children_in_sessions_of_their_own_end_with_the_episode(stage: Stage) -> None:
    episode = stage.play(stage.bad("forks"), decision_s=1.0)
    assert not alive(stage.mark)
    assert [fault.fault for fault in faults(episode)] == ["timeout"]


def test_a_program_that_exits_at_once_is_started_three_times_and_no_more(stage: Stage) -> None:
    episode = stage.play(stage.bad("exits_at_once"), on_fault="pass")
    details = [fault.detail or "" for fault in faults(episode)]
    assert len(details) == 9, "every decision of the seat is a fault"
    assert all("before it answered hello; exited with code 7" in detail for detail in details[:3]), details
    assert all("the program could not be started 3 times in a row" in detail for detail in details[3:])


def test_a_start_takes_no_think_time_and_is_bounded(stage: Stage) -> None:
    episode = stage.play(stage.bad("no_hello", start_s=0.3))
    (fault,) = faults(episode)
    assert "gave no answer to hello within 0.3 s" in (fault.detail or "")
    assert fault.queue_s >= 0.3 > fault.think_s


def test_an_episode_that_is_cancelled_leaves_nothing(stage: Stage) -> None:
    with pytest.raises(TimeoutError):
        stage.play(stage.bad("sleeps"), decision_s=600.0, cancelled_after_s=0.5)
    assert not alive(stage.mark)
