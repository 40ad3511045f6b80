"""The model agent: its conversation, its back-off, its leases, and what it keeps to itself."""

from __future__ import annotations

import asyncio

import pytest
from fakes import GOOD, PRICE, FakeProvider, Table
from hypothesis import given
from hypothesis import strategies as st

from cogeval.agents.llm.prompts import PromptText
from cogeval.agents.llm.provider import Completion, Message, RefusedError, RetryableError
from cogeval.core.agent import Usage
from cogeval.core.quota import BudgetSpentError

LIMIT = RetryableError("429", is_limit=True)
BROKEN = RetryableError("500")


def run(coroutine):
    return asyncio.run(coroutine)


def test_a_reply_carries_what_the_store_keeps():
    table = Table(GOOD)
    reply = run(table.ask())
    assert reply.payload == {"action": "forage"}
    assert (reply.text, reply.model, reply.finish_reason) == (GOOD.text, "model-20260101", "stop")
    dollars = (600 * PRICE.input + 400 * PRICE.cached_input + 100 * PRICE.output) / 1e6
    assert reply.usage == Usage(1000, 100, 400, dollars)
    assert table.quota.settled == [(table.quota.leased[0], 1100, dollars)]


def test_a_call_says_what_the_game_and_the_settings_say():
    table = Table(GOOD, prompt=PromptText("Before.", "After.", "Last."))
    request = table.request()
    run(table.ask(request))
    (call,) = table.provider.calls
    text = table.game.prompt(request.observation)
    assert call.system == f"Before.\n\n{text.system}\n\nAfter."
    assert call.messages == (Message("user", f"{text.user.strip(chr(10))}\n\nLast."),)
    assert call.schema == table.game.reply_schema(request.decision)
    assert (call.model, call.max_tokens, call.sampling) == ("model", 500, {"temperature": 0.5})
    assert table.quota.leased[0].tokens == (len(call.system) + len(call.messages[0].text)) // 4 + 500


def test_an_unreadable_text_is_left_for_the_episode_to_judge():
    reply = run(Table(Completion("I would rather not.", 10, 5)).ask())
    assert (reply.payload, reply.text) == (None, "I would rather not.")


def test_a_hint_follows_the_reply_that_it_is_about():
    table = Table(Completion("forage!", finish_reason="stop"), GOOD)

    async def twice():
        await table.ask()
        return await table.ask(table.request(hint="expected an object"))

    assert run(twice()).payload == {"action": "forage"}
    first, second = table.provider.calls
    assert second.messages[0] == first.messages[0]
    assert second.messages[1] == Message("assistant", "forage!")
    assert second.messages[2].role == "user"
    assert "expected an object" in second.messages[2].text


@pytest.mark.parametrize("text", ["", " \n"])
def test_no_empty_turn_is_sent_after_an_empty_reply_and_a_cut_is_named(text):
    table = Table(Completion(text, finish_reason="max_tokens"), GOOD)

    async def twice():
        await table.ask()
        await table.ask(table.request(hint="got neither"))

    run(twice())
    (message,) = table.provider.calls[1].messages
    assert message.role == "user"
    assert "got neither" in message.text
    assert "cut off after 500 tokens" in message.text


def test_waits_are_not_think_time():
    table = Table(BROKEN, LIMIT, GOOD, waits_s=7.0)
    request = table.request(budget_s=2.0)
    run(table.ask(request))
    assert request.timer.think_s == pytest.approx(3 * 0.25)
    assert request.timer.queue_s == pytest.approx(6 * 7.0 + sum(table.clock.slept))
    assert [c.timeout_s for c in table.provider.calls] == pytest.approx([2.0, 1.75, 1.5])


@given(st.integers(0, 2**32), st.integers(1, 9))
def test_the_back_off_grows_and_is_spread_within_its_bounds(seed, failures):
    table = Table(*[BROKEN] * failures, GOOD, seed=seed, max_retries=9)
    run(table.ask())
    assert len(table.clock.slept) == failures
    for number, wait_s in enumerate(table.clock.slept):
        longest_s = min(60.0, 2.0**number)
        assert longest_s / 2 <= wait_s <= longest_s
    assert not table.quota.penalties


@given(st.integers(0, 2**32), st.floats(0, 100))
def test_a_service_that_says_when_to_come_back_is_obeyed_and_its_account_held_back(seed, asked_s):
    table = Table(RetryableError("429", asked_s, is_limit=True), GOOD, seed=seed)
    run(table.ask())
    (wait_s,) = table.clock.slept
    assert asked_s <= wait_s <= asked_s + 1.0
    assert table.quota.penalties == [("acc", wait_s)]


def test_tries_are_counted_and_the_last_failure_is_named():
    table = Table(BROKEN, LIMIT, RetryableError("the service answered 503"), max_retries=2)
    with pytest.raises(RefusedError, match="gave up after 3 requests: the service answered 503"):
        run(table.ask())
    assert len(table.provider.calls) == 3
    assert len(table.clock.slept) == 2
    assert [(tokens, cost) for _, tokens, cost in table.quota.settled] == [(0, 0.0)] * 3


def test_a_refusal_is_not_tried_again():
    table = Table(RefusedError("the service answered 401: no"))
    with pytest.raises(RefusedError, match="401"):
        run(table.ask())
    assert len(table.provider.calls) == len(table.quota.settled) == 1


OUTCOMES = st.sampled_from([GOOD, BROKEN, LIMIT, RefusedError("no"), ValueError("odd"), "hang"])


@given(st.lists(OUTCOMES, min_size=1, max_size=6))
def test_every_lease_is_settled_once_whatever_happens(outcomes):
    table = Table(*outcomes, max_retries=3)

    async def played():
        task = asyncio.ensure_future(table.ask())
        await asyncio.wait({task}, timeout=None if "hang" not in outcomes else 0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(played())
    assert [lease for lease, _, _ in table.quota.settled] == table.quota.leased
    assert len(table.quota.leased) == len(table.provider.calls)


def test_a_request_that_is_given_up_keeps_the_tokens_that_were_taken_for_it():
    table = Table("hang")

    async def played():
        task = asyncio.ensure_future(table.ask())
        while not table.provider.calls:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    run(played())
    (lease,) = table.quota.leased
    ((settled, tokens, dollars),) = table.quota.settled
    assert (settled, tokens) == (lease, lease.tokens)
    assert dollars > 0  # the service works on it all the same, and is paid for it


def test_a_service_that_counts_nothing_is_not_booked_as_free():
    table = Table(Completion('{"action": "pass"}'))
    run(table.ask())
    ((lease, tokens, dollars),) = table.quota.settled
    assert tokens == lease.tokens
    assert dollars > 0


def test_a_spent_budget_leaves_as_it_is_for_it_is_the_runs():
    table = Table(GOOD)

    async def spent(account, tokens):
        raise BudgetSpentError("the cap of $5 is reached")

    table.quota.lease = spent
    with pytest.raises(BudgetSpentError):
        run(table.ask())
    assert not table.provider.calls


def test_no_key_leaves_in_an_error_or_a_reply(monkeypatch):
    monkeypatch.setenv("MY_MODEL_KEY", "sk-marked-0123456789")
    echo = "you sent sk-marked-0123456789"
    for failure in (RefusedError(echo), RetryableError(echo), ValueError(echo)):
        with pytest.raises(RefusedError) as caught:
            run(Table(failure, key="MY_MODEL_KEY", max_retries=0).ask())
        assert "marked" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert "<MY_MODEL_KEY>" in str(caught.value)
    said = Completion('{"say": "sk-marked-0123456789"}', model="sk-marked-0123456789", finish_reason=echo)
    reply = run(Table(said, key="MY_MODEL_KEY").ask())
    assert "marked" not in repr(reply)
    assert reply.payload == {"say": "<MY_MODEL_KEY>"}


def test_lone_surrogates_do_not_reach_the_store():
    reply = run(Table(Completion('{"say": "\ud800"}', model="m\udfff")).ask())
    assert reply.text.encode()
    assert reply.model.encode()


def test_the_agents_of_a_factory_share_one_provider():
    table = Table(GOOD)
    assert isinstance(table.provider, FakeProvider)
    bound = table.agent._bound
    assert bound(0, None)._bound.provider is bound(1, None)._bound.provider
