"""The ledger's rules, one by one."""

from __future__ import annotations

import pytest

from cogeval.schedule.ledger import MISHAPS, SUSPECTS, Ledger
from cogeval.schedule.messages import (
    Commit,
    Counts,
    Dispatch,
    Done,
    Failed,
    Finished,
    Recover,
    Recovered,
    Returned,
    Room,
    Sealed,
    Stop,
    Void,
    WorkerLost,
)


def lose(ledger: Ledger, worker: str) -> list[object]:
    assert ledger.handle(WorkerLost(worker)) == [Recover(worker)]
    ledger.validate()
    return list(ledger.handle(Recovered(worker)))


def test_dispatch_is_in_schedule_order_and_skips_what_is_settled() -> None:
    ledger = Ledger(8, recorded=[0, 3], void=[4, 3])
    assert ledger.counts() == Counts(todo=5, out=0, finished=0, recorded=2, void=1)
    assert ledger.handle(Room("a", 3)) == [Dispatch("a", (1, 2, 5), False)]
    assert ledger.handle(Room("b", 9)) == [Dispatch("b", (6, 7), False)]
    assert ledger.handle(Room("c", 9)) == []


def test_finished_episodes_wait_for_their_seal_and_done_comes_once() -> None:
    ledger = Ledger(2)
    ledger.handle(Room("a", 2))
    assert ledger.handle(Finished("a", (1, 0))) == []
    assert ledger.counts() == Counts(0, 0, 2, 0, 0)
    assert ledger.handle(Sealed("a", "s", (1, 0))) == [Commit("a", "s", (0, 1), ()), Done(True)]
    assert ledger.handle(Room("a", 2)) == []
    assert ledger.is_complete


def test_a_run_with_nothing_to_play_is_done_at_the_first_event() -> None:
    ledger = Ledger(2, recorded=[0, 1])
    assert ledger.is_complete
    assert ledger.handle(Room("a", 1)) == [Done(True)]


def test_lost_episodes_are_sent_again_only_after_recovery_without_what_was_recovered() -> None:
    ledger = Ledger(6)
    ledger.handle(Room("a", 4))
    ledger.handle(Finished("a", (0, 1)))
    assert ledger.handle(WorkerLost("a")) == [Recover("a")]
    assert ledger.handle(WorkerLost("a")) == []
    assert ledger.handle(Room("b", 1)) == [Dispatch("b", (4,), False)]
    assert ledger.counts().out == 5
    assert ledger.handle(Sealed("a", "s", (0,))) == [Commit("a", "s", (0,), ())]
    assert ledger.handle(Recovered("a")) == []
    assert [ledger.attempts(i) for i in range(5)] == [0, 1, 1, 1, 0]
    assert ledger.handle(Room("b", 9)) == [Dispatch("b", (1, 2, 3), False)]


def test_a_worker_with_room_gets_what_comes_back() -> None:
    ledger = Ledger(2)
    ledger.handle(Room("a", 2))
    ledger.handle(Room("b", 5))
    assert lose(ledger, "a") == [Dispatch("b", (0, 1), False)]


def test_a_worker_holds_few_suspects_and_nothing_fresh_beside_them() -> None:
    ledger = Ledger(100)
    ledger.handle(Room("a", 40))
    lose(ledger, "a")
    assert ledger.handle(Room("b", 50)) == [Dispatch("b", tuple(range(SUSPECTS)), False)]
    assert ledger.handle(Finished("b", (0, 1))) == [Dispatch("b", (16, 17), False)]
    assert ledger.handle(Room("c", 50)) == [Dispatch("c", tuple(range(18, 34)), False)]
    assert ledger.handle(Room("d", 50)) == [Dispatch("d", tuple(range(34, 40)), False)]
    assert ledger.handle(Finished("d", range(34, 40))) == [Dispatch("d", tuple(range(40, 84)), False)]


def test_the_last_attempt_is_alone_on_a_worker_that_is_drained_first() -> None:
    ledger = Ledger(50, attempts={7: 2})
    ledger.handle(Room("a", 1))
    ledger.validate()
    assert ledger.counts().out == 1
    assert ledger.handle(Room("a", 5)) == []  # plays 7 alone
    assert ledger.handle(Room("b", 3)) == [Dispatch("b", (0, 1, 2), False)]
    assert ledger.handle(Finished("a", (7,))) == [Dispatch("a", (3, 4, 5, 6, 8), False)]


def test_only_as_many_workers_are_drained_as_wait_to_play_alone() -> None:
    ledger = Ledger(50, attempts={7: 1})
    ledger.handle(Room("a", 2))
    ledger.handle(Room("b", 2))
    ledger.handle(Room("c", 2))
    assert lose(ledger, "a") == []  # it held 7 only: a suspect gets nothing fresh beside it
    ledger.validate()
    assert ledger.attempts(7) == 2
    assert ledger.handle(Room("b", 9)) == []  # drains
    assert ledger.handle(Room("c", 1)) == [Dispatch("c", (4,), False)]
    assert ledger.handle(Finished("b", (0,))) == []
    assert ledger.handle(Finished("b", (1,))) == [Dispatch("b", (7,), True)]


def test_a_node_that_is_lost_charges_nobody_until_it_was_so_again_and_again() -> None:
    ledger = Ledger(40)
    for number in range(MISHAPS):
        assert ledger.attempts(0) == 0
        assert ledger.handle(Room(f"w{number}", 40)) == [Dispatch(f"w{number}", tuple(range(40)), False)]
        ledger.handle(WorkerLost(f"w{number}", is_mishap=True))
        ledger.handle(Recovered(f"w{number}"))
    assert ledger.attempts(0) == 1
    assert ledger.handle(Room("z", 40)) == [Dispatch("z", tuple(range(SUSPECTS)), False)]


def test_what_takes_nodes_with_it_for_ever_is_void_in_the_end() -> None:
    ledger, commands, number = Ledger(1, max_attempts=2), [], 0
    while not ledger.counts().void:
        ledger.handle(Room(f"w{number}", 1))
        ledger.handle(WorkerLost(f"w{number}", is_mishap=True))
        commands = ledger.handle(Recovered(f"w{number}"))
        number += 1
    assert number == 2 * MISHAPS
    assert commands == [Void(0, "lost with a node or the driver 6 times, at last alone"), Done(True)]


def test_a_killer_is_void_only_after_a_loss_alone() -> None:
    ledger = Ledger(3, max_attempts=2)
    ledger.handle(Room("a", 3))
    lose(ledger, "a")
    assert ledger.handle(Room("b", 3)) == [Dispatch("b", (0,), True)]
    assert lose(ledger, "b") == [Void(0, "lost with its worker 2 times, at last alone")]
    assert ledger.handle(Room("c", 3)) == [Dispatch("c", (1,), True)]


def test_with_one_attempt_allowed_a_loss_in_company_is_still_no_proof() -> None:
    ledger = Ledger(2, max_attempts=1)
    assert ledger.handle(Room("a", 2)) == [Dispatch("a", (0, 1), False)]
    assert lose(ledger, "a") == []
    assert ledger.handle(Room("b", 2)) == [Dispatch("b", (0,), True)]


def test_what_finished_and_was_lost_is_never_blamed() -> None:
    ledger = Ledger(2, attempts={0: 5})
    assert ledger.handle(Room("a", 1)) == [Dispatch("a", (0,), True)]
    ledger.handle(Finished("a", (0,)))
    assert lose(ledger, "a") == []
    assert ledger.counts().void == 0


def test_a_failure_is_certain_blame_and_needs_no_isolation() -> None:
    ledger = Ledger(3, max_attempts=2)
    ledger.handle(Room("a", 2))
    assert ledger.handle(Failed("a", 0, "disk full")) == []
    assert ledger.handle(Room("a", 2)) == [Dispatch("a", (0, 2), False)]
    assert ledger.handle(Failed("a", 0, "disk full")) == [Void(0, "disk full")]


def test_a_second_copy_is_superseded() -> None:
    ledger = Ledger(2)
    ledger.handle(Room("a", 2))
    lose(ledger, "a")
    ledger.handle(Room("b", 2))
    assert ledger.handle(Sealed("a", "late", (0,))) == [Commit("a", "late", (0,), ())]
    ledger.validate()
    ledger.handle(Finished("b", (0, 1)))
    assert ledger.handle(Sealed("b", "s", (0, 1))) == [Commit("b", "s", (1,), (0,)), Done(True)]


def test_a_worker_lost_with_a_copy_of_something_recorded_owes_nothing() -> None:
    ledger = Ledger(2)
    ledger.handle(Room("a", 2))
    lose(ledger, "a")
    ledger.handle(Room("b", 2))
    ledger.handle(Sealed("a", "late", (0,)))
    assert lose(ledger, "b") == []
    ledger.validate()
    assert [ledger.attempts(0), ledger.attempts(1)] == [1, 2]
    assert ledger.handle(Room("c", 2)) == [Dispatch("c", (1,), True)]


def test_a_late_seal_takes_a_waiting_retry_off_the_queue() -> None:
    ledger = Ledger(3)
    ledger.handle(Room("a", 3))
    lose(ledger, "a")
    ledger.handle(Sealed("a", "late", (1,)))
    ledger.validate()
    assert ledger.handle(Room("b", 3)) == [Dispatch("b", (0, 2), False)]


def test_a_late_copy_of_a_void_episode_is_superseded() -> None:
    ledger = Ledger(2, max_attempts=1)
    ledger.handle(Room("a", 1))
    ledger.handle(Failed("a", 0, "no"))
    assert ledger.handle(Sealed("z", "late", (0,))) == [Commit("z", "late", (), (0,))]


def test_words_of_a_lost_worker_change_nothing() -> None:
    ledger = Ledger(2)
    ledger.handle(Room("a", 2))
    ledger.handle(WorkerLost("a"))
    for event in (Room("a", 4), Finished("a", (0,)), Failed("a", 0, "no"), Returned("a", (0,))):
        assert ledger.handle(event) == []
    assert ledger.counts().out == 2


def test_streams_of_an_earlier_session_are_taken_before_anything_is_sent() -> None:
    ledger = Ledger(3, attempts={0: 1, 1: 1})
    assert ledger.handle(Sealed("old", "s", (1,))) == [Commit("old", "s", (1,), ())]
    assert ledger.handle(Recovered("old")) == []
    assert ledger.handle(Room("a", 3)) == [Dispatch("a", (0,), False)]


def test_after_stop_nothing_is_sent_and_done_waits_for_what_is_out() -> None:
    ledger = Ledger(5)
    ledger.handle(Room("a", 3))
    assert ledger.handle(Stop()) == []
    assert ledger.handle(Room("b", 3)) == []
    assert ledger.handle(Finished("a", (0,))) == []
    assert ledger.handle(Returned("a", (2,))) == []
    assert ledger.handle(Finished("a", (1,))) == [Done(False)]
    assert ledger.handle(Sealed("a", "s", (0, 1))) == [Commit("a", "s", (0, 1), ())]
    assert ledger.counts() == Counts(3, 0, 0, 2, 0)


def test_after_stop_done_waits_for_recovery() -> None:
    ledger = Ledger(2)
    ledger.handle(Room("a", 1))
    ledger.handle(Stop())
    assert ledger.handle(WorkerLost("a")) == [Recover("a")]
    assert ledger.handle(Recovered("a")) == [Done(False)]


def test_a_stop_when_everything_was_played_still_ends_complete() -> None:
    ledger = Ledger(2)
    ledger.handle(Room("a", 2))
    ledger.handle(Finished("a", (0, 1)))
    assert ledger.handle(Stop()) == []
    assert ledger.handle(Sealed("a", "s", (0, 1))) == [Commit("a", "s", (0, 1), ()), Done(True)]


def test_what_is_returned_unplayed_is_no_attempt() -> None:
    ledger = Ledger(4)
    ledger.handle(Room("a", 4))
    ledger.handle(Returned("a", (2, 3)))
    assert ledger.handle(Room("b", 4)) == [Dispatch("b", (2, 3), False)]
    assert ledger.attempts(2) == 0


def test_input_outside_the_schedule_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"expected indexes below 3, got \[3\]"):
        Ledger(3, recorded=[3])
    with pytest.raises(ValueError, match=r"expected indexes below 3, got \[-1\]"):
        Ledger(3).handle(Sealed("a", "s", (-1,)))
    with pytest.raises(ValueError, match="expected max_attempts of at least 1, got 0"):
        Ledger(3, max_attempts=0)
