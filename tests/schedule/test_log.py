"""The ledger's log: what a resumed run remembers of earlier sessions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogeval.schedule.ledger import MISHAPS, Ledger
from cogeval.schedule.log import attempts_from_log, log_entry
from cogeval.schedule.messages import (
    Command,
    Commit,
    Dispatch,
    Done,
    Event,
    Failed,
    Recover,
    Recovered,
    Returned,
    Room,
    Sealed,
    Stop,
    Void,
    WorkerLost,
)


def lines(*messages: Event | Command) -> list[dict[str, Any]]:
    return [entry for m in messages if (entry := log_entry(m)) is not None]


def test_a_dispatch_is_logged_in_ranges() -> None:
    assert log_entry(Dispatch("w0", (4, 5, 6, 9), False)) == {
        "event": "dispatch", "worker": "w0", "indexes": [[4, 7], [9, 10]], "alone": False,
    }  # fmt: skip


@pytest.mark.parametrize("message", [Room("w", 1), Recover("w"), Done(True), Stop(), Recovered("w"),
                                     Sealed("w", "s", (1,)), Commit("w", "s", (1,), ())])  # fmt: skip
def test_what_shard_records_hold_is_not_logged(message: Event | Command) -> None:
    assert log_entry(message) is None


def test_what_failed_or_was_lost_with_a_worker_is_an_attempt_and_the_rest_a_mishap() -> None:
    history = attempts_from_log(
        lines(
            Dispatch("a", (0, 1, 2), False),
            WorkerLost("a"),
            Dispatch("b", (1, 2), False),
            Failed("b", 2, "disk full"),
            Dispatch("b", (2,), False),
        )
    )
    assert history.attempts == {0: 1, 1: 1, 2: 2}
    assert history.mishaps == {1: 1, 2: 1}  # with the driver


def test_what_was_lost_with_a_node_is_a_mishap() -> None:
    sent = Dispatch("a", (0, 1, 2), False)
    history = attempts_from_log(lines(sent, Failed("a", 2, "disk full"), WorkerLost("a", is_mishap=True)))
    assert (history.attempts, history.mishaps) == ({2: 1}, {0: 1, 1: 1})


def test_a_loss_charges_only_what_that_worker_had() -> None:
    sent = [Dispatch("a", (0, 1), False), Dispatch("b", (2,), False), Returned("a", (1,))]
    history = attempts_from_log(lines(*sent, Dispatch("b", (1,), False), WorkerLost("a"), WorkerLost("z")))
    assert (history.attempts, history.mishaps) == ({0: 1}, {1: 1, 2: 1})


def test_what_was_given_back_unplayed_does_not_count() -> None:
    history = attempts_from_log(lines(Dispatch("a", tuple(range(8)), False), Returned("a", range(5, 8))))
    assert history.mishaps == dict.fromkeys(range(5), 1)
    assert history.attempts == {}


def test_recorded_and_void_indexes_have_no_attempts_left() -> None:
    history = attempts_from_log(lines(Dispatch("a", (0, 1, 2), False), Void(1, "lost")), recorded=[0])
    assert history.mishaps == {2: 1}
    assert history.void == {1: "lost"}


@given(
    st.sampled_from(["event", "indexes", "worker"]),
    st.none() | st.integers() | st.text() | st.lists(st.integers()),
)
def test_an_entry_that_is_none_of_ours_is_counted_and_left_out(key: str, junk: object) -> None:
    whole = lines(Dispatch("a", (0, 1), False), Dispatch("a", (2, 3), True))
    history = attempts_from_log([whole[0], {**whole[1], key: junk}])
    assert {0: 1, 1: 1}.items() <= history.mishaps.items()
    assert history.num_unreadable <= 1


def test_a_driver_that_is_killed_twice_slows_nothing_and_one_that_an_episode_kills_finds_it() -> None:
    log: list[dict[str, Any]] = []
    for session in range(2 * MISHAPS + 1):
        history = attempts_from_log(log)
        ledger = Ledger(40, attempts=history.attempts, mishaps=history.mishaps, void=history.void)
        commands = ledger.handle(Room("w", 40))
        log += lines(*commands)
        sizes = [(len(c.indexes), c.alone) for c in commands if isinstance(c, Dispatch)]
        assert sizes == [[(40, False)], [(16, False)], [(1, True)]][session // MISHAPS]
