"""One seat's replies: what cannot be read or played is asked for once more, then falls back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_seat import faults, of_seat, run
from toy import Bid, Bids, bids, sits

from cogeval.core.agent import Reply, Request, Usage
from cogeval.core.record import ActionCodec
from cogeval.core.seat import Deadlines


def in_turn(replies: Sequence[object]) -> tuple[Callable[[Request], Any], list[Request]]:
    asked: list[Request] = []

    def decide(request: Request) -> Any:
        asked.append(request)
        return replies[len(asked) - 1]

    return decide, asked


@pytest.mark.parametrize("deterministic", [True, False])
def test_an_unreadable_reply_gets_one_retry_with_the_games_hint(deterministic: bool) -> None:
    decide, asked = in_turn([Reply(payload={"sum": 3}), Reply(payload={"amount": 3}, text="3")])
    episode = run(sits(decide, deterministic=deterministic), deadlines=Deadlines(decision_s=9, retry_s=4))
    assert faults(episode) == ["unreadable", None]
    assert [a.accepted for a in episode.attempts] == [False, True]
    assert [a.attempt for a in episode.attempts] == [0, 1]
    assert [r.hint for r in asked] == [None, "write an object with an integer `amount`"]
    assert [r.budget_s for r in asked] == ([None, None] if deterministic else [9, 4])
    assert episode.attempts[1].text == "3"
    assert episode.results.seats[0].score == 3


def test_an_illegal_action_twice_falls_back() -> None:
    decide, asked = in_turn([Reply(Bid(10)), Reply(Bid(-1))])
    episode = run(sits(decide))
    assert faults(episode) == ["illegal", "illegal", None]
    assert [a.action for a in episode.attempts] == [Bid(10), Bid(-1), Bid(7)]
    assert [a.attempt for a in episode.attempts] == [0, 1, 2]
    assert asked[1].hint == "a bid of 10 is not legal: range"


def test_an_exception_on_the_retry_falls_back() -> None:
    asked = []

    def decide(request: Request) -> Any:
        asked.append(request)
        if len(asked) == 2:
            raise ValueError("again")
        return Reply()

    assert faults(run(sits(decide))) == ["unreadable", "exception", None]


class Liar:
    """Equal to nothing and hashable to nothing."""

    def __hash__(self) -> int:
        raise SystemExit("no hash")


class Amount(int):
    """A number that is none of JSON's own."""


ILL_TYPED = [
    [1], {"amount": 1}, object(), 1, "1", b"1", True, float("nan"), Bid, Liar(), (), {1, 2},
    Bid("1"), Bid([1]), Bid({}), Bid(float("nan")), Bid(1.5), Bid(10**6000), Bid(1, say=7),  # type: ignore[arg-type]
    Bid(1, say=b"x"), Bid(Bid(1)), Bid(True),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize("action", ILL_TYPED, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("deterministic", [True, False])
def test_an_ill_typed_action_is_a_fault_and_never_reaches_the_rules(
    action: object, deterministic: bool
) -> None:
    seat = sits(lambda request: Reply(action), deterministic=deterministic)
    episode = run(seat, bids(3), phases=2, deadlines=Deadlines())
    assert set(faults(episode)) <= {"unreadable", "illegal", None}
    assert all(type(a.action) is Bid for a in episode.attempts if a.accepted)
    assert [s.score for s in episode.results.seats] == [14, 6]


@pytest.mark.parametrize("action", [Bid(2.0), Bid(True)], ids=repr)  # type: ignore[arg-type]
def test_what_was_seen_before_does_not_decide_how_an_action_is_read(action: Bid) -> None:
    codec = ActionCodec(Bids())
    for _ in range(2):
        with pytest.raises(msgspec.ValidationError):
            codec.canonical(action)
        assert codec.canonical(Bid(2))[1] == '{"amount":2,"say":""}'
        assert codec.canonical(Bid(1))[1] == '{"amount":1,"say":""}'


@pytest.mark.parametrize("amount", [2, Amount(2)])
def test_equal_actions_are_recorded_as_one(amount: Any) -> None:
    first = run(sits(lambda request: Reply(Bid(amount))))
    assert first.digest == run(bids(2)).digest
    assert type(first.attempts[0].action.amount) is int


@pytest.mark.parametrize("say", ["x" * 60_000, "\ud800", "\x00\u2028", "é" * 5000])
def test_whatever_is_said_is_played_and_recorded(say: str) -> None:
    episode = run(sits(lambda request: Reply(Bid(2, say))), bids(2), phases=2)
    assert [a.action for a in of_seat(episode)] == [Bid(2, say)] * 2


@pytest.mark.parametrize(
    "reply",
    [
        None, 5, Bid(1), {"amount": 1}, Reply(), Reply(payload=[1]), Reply(payload="{}"),  # type: ignore[arg-type]
        Reply(Bid(1), think_s="fast"), Reply(Bid(1), think_s=-1.0), Reply(Bid(1), queue_s=None),  # type: ignore[arg-type]
        Reply(Bid(1), queue_s=float("inf")), Reply(Bid(1), text=b"x"), Reply(Bid(1), model=3),  # type: ignore[arg-type]
        Reply(Bid(1), usage={"tokens_in": 3}), Reply(Bid(1), usage=Usage(tokens_in="many")),  # type: ignore[arg-type]
        Reply(Bid(1), usage=Usage(tokens_in=-1)), Reply(Bid(1), usage=Usage(tokens_out=1 << 70)),
        Reply(Bid(1), usage=Usage(tokens_cached=1 << 40)),
        Reply(Bid(1), usage=Usage(cost_usd=float("nan"))), Reply(Bid(1), usage=Usage(cost_usd=1e308)),
        Reply(Bid(1), usage=Usage(cost_usd=-0.01)), Reply(Bid(1), usage=Usage(cost_usd=float("inf"))),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_reply_that_is_none_is_unreadable(reply: object, deterministic: bool) -> None:
    episode = run(sits(lambda request: reply, deterministic=deterministic), deadlines=Deadlines())
    assert faults(episode) == ["unreadable", "unreadable", None]
    assert episode.results.seats[0].score == 7
    msgspec.json.encode([(a.think_s, a.queue_s, a.usage, a.text, a.model) for a in episode.attempts])


def test_what_a_good_reply_carries_is_recorded() -> None:
    usage = Usage(10, 20, 5, 0.25)
    reply = Reply(Bid(1), None, usage, 0.5, 0.25, "one", "model-1", "stop")
    (a,) = run(sits(lambda request: reply)).attempts
    assert (a.usage, a.queue_s, a.think_s, a.text, a.model, a.finish_reason) == (
        usage, 0.5, 0.25, "one", "model-1", "stop",
    )  # fmt: skip
    assert (a.source, a.accepted, a.kind, a.phase) == ("agent", True, "bid", 0)


@settings(max_examples=60, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_any_payload_is_played_or_a_fault(value: Any) -> None:
    episode = run(sits(lambda request: Reply(payload=value)), bids(1))
    assert episode.results.phases == 1
    episode = run(sits(lambda request: Reply(payload={"amount": value, "say": value})), bids(1))
    assert episode.results.phases == 1
