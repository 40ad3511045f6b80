"""The providers through the real SDKs against a real server that misbehaves."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import httpx2
import pytest
import server as wire
from anthropic import AsyncAnthropicBedrock
from fakes import Table
from wires import anthropic_message, openai_completion

from cogeval.agents import build_agent
from cogeval.agents.llm.anthropic import AnthropicProvider
from cogeval.agents.llm.provider import (
    Call,
    Message,
    RefusedError,
    RetryableError,
    body_of,
    read_whole,
    retry_after_s,
    status_failure,
)
from cogeval.core.agent import Resources, Seated, bound
from cogeval.core.episode import play
from cogeval.core.seat import Deadlines
from cogeval.errors import InputError
from cogeval.games import make_game

KEY = "sk-marked-0123456789"
SCHEMA = {"type": "object", "properties": {"action": {"type": "string"}}, "required": []}
PATIENT = Deadlines(decision_s=20.0)
PROVIDERS = ("anthropic", "openai")


def call(**changes):
    fields = {"model": "m", "system": "Rules.", "messages": (Message("user", "Go."),), "schema": SCHEMA}
    return Call(**{**fields, "timeout_s": 20.0, **changes})


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("MARKED_KEY", KEY)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def settings(server, provider, **more):
    url = server.anthropic_url if provider == "anthropic" else server.openai_url
    return {
        "kind": "llm",
        "provider": provider,
        "model": "m",
        "base_url": url,
        "api_key_env": "MARKED_KEY",
        **more,
    }


def complete(server, provider, asked=None, **more):
    """One call through the SDK; its connection is closed, so that no test leaves one open."""

    async def once():
        entry = build_agent("x", make_game("cogmud"), settings(server, provider, **more))
        connected = entry.seated.agent.bind(Resources()).provider
        try:
            return await connected.complete(asked or call())
        finally:
            await connected._client.close()

    return asyncio.run(once())


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_answer_is_read_with_all_that_the_service_reports(server, provider):
    server.behave(wire.Behaviour(text='{"action": "I wait."}'))
    answer = complete(server, provider)
    assert answer.text == '{"action": "I wait."}'
    assert answer.model == "m-20260101"
    assert answer.finish_reason == ("end_turn" if provider == "anthropic" else "stop")
    assert (answer.tokens_in, answer.tokens_cached, answer.tokens_out) == (2 + 1, 2, 6)
    (ask,) = server.asks
    assert (ask.system, ask.user, ask.key) == ("Rules.", "Go.", KEY)
    assert ask.body["max_tokens"] == 1024
    assert "temperature" not in ask.body


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_conversation_and_the_sampling_arrive_as_they_were_given(server, provider):
    messages = (Message("user", "Go."), Message("assistant", "No."), Message("user", "Go on."))
    complete(server, provider, call(messages=messages, sampling={"temperature": 0.5, "x": {"y": [1]}}))
    (ask,) = server.asks
    turns = [(m["role"], m["content"]) for m in ask.body["messages"] if m["role"] != "system"]
    assert turns == [("user", "Go."), ("assistant", "No."), ("user", "Go on.")]
    assert (ask.body["temperature"], ask.body["x"]) == (0.5, {"y": [1]})


def test_each_style_asks_for_json_in_its_own_form(server):
    for style in ("schema", "object", "llama", "none"):
        complete(server, "openai", call(json_style=style))
    strict = {**SCHEMA, "required": ["action"], "additionalProperties": False}
    assert [ask.body.get("response_format") for ask in server.asks] == [
        {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": strict}},
        {"type": "json_object"},
        {"type": "json_object", "schema": SCHEMA},
        None,
    ]


def test_anthropic_gets_the_schema_beside_what_the_user_configures(server):
    complete(server, "anthropic", call(sampling={"output_config": {"effort": "low"}}))
    complete(server, "anthropic", call(json_style="none"))
    form = {"type": "json_schema", "schema": SCHEMA}
    assert [ask.body.get("output_config") for ask in server.asks] == [{"format": form, "effort": "low"}, None]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("dated", [False, True])
def test_too_many_requests_say_when_to_come_back_and_the_sdk_does_not_retry(server, provider, dated):
    server.behave(wire.too_many(30.0, dated=dated))
    with pytest.raises(RetryableError) as caught:
        complete(server, provider)
    assert caught.value.is_limit
    assert 27.0 <= caught.value.wait_s <= 30.0
    assert server.num_requests == 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "behaviour", [wire.SERVER_ERROR, wire.OVERLOADED, wire.CUT, wire.too_many(None)], ids=repr
)
def test_a_service_in_trouble_may_be_asked_again(server, provider, behaviour):
    server.behave(behaviour)
    with pytest.raises(RetryableError) as caught:
        complete(server, provider)
    assert caught.value.wait_s is None
    assert server.num_requests == 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "behaviour",
    [wire.UNAUTHORIZED, wire.INVALID_UTF8_BODY, wire.TEN_MB_BODY, wire.EMPTY_BODY, wire.ARRAY_BODY],
    ids=lambda b: str(b.status) + repr((b.body or b"")[:8]),
)
def test_an_answer_that_is_none_is_refused(server, provider, behaviour):
    server.behave(behaviour)
    with pytest.raises(RefusedError):
        complete(server, provider)
    assert server.num_requests == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_server_that_is_not_there_may_come_back(server, provider):
    with socket.socket() as bound_only:
        bound_only.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound_only.getsockname()[1]}"
        with pytest.raises(RetryableError, match="no answer from the service"):
            complete(server, provider, base_url=url)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_refusal_of_the_model_is_an_answer_that_says_so(server, provider):
    server.behave(wire.REFUSAL)
    answer = complete(server, provider)
    assert (answer.text, answer.finish_reason) == ("I cannot help with that.", "refusal")


def test_a_server_without_a_key_is_sent_none_of_ours(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    for provider in PROVIDERS:
        complete(server, provider, api_key_env=None)
    assert KEY not in repr([ask.headers for ask in server.asks])


def test_bedrock_asks_as_anthropic_does_at_a_path_of_its_own(monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    asks = []

    async def answer(request):
        asks.append((request.url.path, request.headers["authorization"], json.loads(request.content)))
        body = {"content": [{"type": "text", "text": "{}"}], "model": "m", "stop_reason": "end_turn"}
        return httpx2.Response(200, json=body)

    async def once():
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
        sdk = AsyncAnthropicBedrock(aws_region="eu-west-1", max_retries=0, http_client=client)
        return await AnthropicProvider(sdk).complete(call(json_style="none", sampling={"temperature": 0.1}))

    assert asyncio.run(once()).text == "{}"
    ((path, authorization, body),) = asks
    assert (path, authorization) == ("/model/m/invoke", f"Bearer {KEY}")
    assert body["messages"] == [{"role": "user", "content": "Go."}]
    assert (body["system"], body["temperature"], body["max_tokens"]) == ("Rules.", 0.1, 1024)
    assert "model" not in body


def test_bedrock_signs_with_its_own_credentials_and_names_the_missing_region(monkeypatch):
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    game = make_game("cogmud")
    entry = build_agent(
        "x", game, {"kind": "llm", "provider": "bedrock", "model": "m", "region": "eu-west-1"}
    )
    client = entry.seated.agent.bind(Resources()).provider._client
    assert str(client.base_url).startswith("https://bedrock-runtime.eu-west-1.amazonaws.com")
    assert client.max_retries == 0
    nowhere = build_agent("x", game, {"kind": "llm", "provider": "bedrock", "model": "m"}).seated.agent
    with pytest.raises(InputError, match="AWS_REGION"):
        nowhere.bind(Resources())


async def played(server, provider, game, deadlines=PATIENT, **more):
    entry = build_agent("x", game, settings(server, provider, **more))
    model = bound(entry.seated, Resources())
    chance = build_agent("chance", game, {"kind": "random"}).seated
    seats: list[Seated] = [model] + [chance] * (game.seats - 1)
    try:
        return await play(game, 5, seats, deadlines=deadlines)
    finally:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)  # requests that were given up
        client = model.agent.provider._client
        busy = [c for c in client._client._transport._pool.connections if not c.is_idle()]
        await client.close()
        assert not busy


def attempts_of(episode):
    return [a for a in episode.attempts if a.seat == 0]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", ["cogchemists", "cogmud", "cogz"])
def test_a_model_plays_an_episode_of_every_game(server, provider, name):
    episode = asyncio.run(played(server, provider, make_game(name)))
    mine = attempts_of(episode)
    assert {a.source for a in mine} == {"agent"}, [a for a in mine if a.source != "agent"][:1]
    assert all(a.usage.tokens_in > 100 and a.model == "m-20260101" and a.text for a in mine)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("behaviour", "fault"),
    [
        (wire.ARRAY, "unreadable"), (wire.EMPTY, "unreadable"), (wire.TRUNCATED, "unreadable"),
        (wire.INJECTION, "unreadable"), (wire.REFUSAL, "unreadable"), (wire.TEN_MB, "unreadable"),
        (wire.INVALID_UTF8, "unreadable"),
    ],
    ids=["array", "empty", "truncated", "injection", "refusal", "ten_mb", "invalid_utf8"],
)  # fmt: skip
def test_a_bad_reply_gets_a_hint_and_a_second_chance(server, provider, behaviour, fault):
    server.behave(behaviour)
    episode = asyncio.run(played(server, provider, make_game("cogmud", turns=6)))
    first, second, *others = attempts_of(episode)
    assert (first.fault, second.fault, second.attempt) == (fault, None, 1)
    assert not [a for a in others if a.fault]
    assert "not accepted" in server.asks[1].user


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_server_that_hangs_costs_a_timeout_and_its_connection_is_closed(server, provider):
    server.behave(wire.slow(60.0))
    started = time.monotonic()
    deadlines = Deadlines(decision_s=0.3, retry_s=0.3)
    episode = asyncio.run(played(server, provider, make_game("cogmud", turns=6), deadlines))
    first = attempts_of(episode)[0]
    assert first.fault == "timeout"
    assert first.think_s == pytest.approx(0.3, abs=0.25)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_marked_key_is_in_nothing_that_an_episode_keeps(server, provider):
    echo = wire.Behaviour(text=json.dumps({"action": f'I say "{KEY}"', "say": KEY, "notes": KEY}))
    server.behave(wire.UNAUTHORIZED, echo, wire.indiscreet(wire.SERVER_ERROR), wire.INVALID_UTF8_BODY)
    episode = asyncio.run(played(server, provider, make_game("cogmud", turns=6), max_retries=0))
    mine = attempts_of(episode)
    assert [a.fault for a in mine if a.source == "agent"][:4] == ["exception", None, "exception", "exception"]
    assert "incorrect API key provided: <MARKED_KEY>" in mine[0].detail
    assert "marked-0123456789" not in repr(episode)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None), ({"retry-after": "7"}, 7.0), ({"retry-after": "1.5"}, 1.5), ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None), ({"retry-after": "inf"}, None), ({"retry-after": "soon"}, None),
        ({"retry-after": "1_0"}, None), ({"retry-after": "\u0661"}, None), ({"retry-after": "1e1"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
    ],
)  # fmt: skip
def test_retry_after_is_read_as_seconds_or_a_date(headers, wait_s):
    assert retry_after_s(headers, now_s=30.0) == wait_s


def test_an_account_without_money_is_not_asked_again():
    spent = json.dumps({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    assert isinstance(status_failure(429, {}, spent), RefusedError)
    assert isinstance(status_failure(404, {}, ""), RefusedError)
    assert str(status_failure(404, {}, "")) == "the service answered 404: nothing"
    assert str(status_failure(529, {}, '{"error": "busy"}')) == "the service answered 529: busy"


@pytest.mark.parametrize("content", [b"", b"[]", b"nonsense", b"[" * 100_000, b"[" * 2_000_000, b"\xff"])
def test_a_body_that_is_no_object_is_quoted_in_short(content):
    """By the agent, once keys are out; a body of megabytes is not quoted at all."""
    with pytest.raises(RefusedError, match="expected a JSON object from the service") as caught:
        body_of(content)
    assert len(str(caught.value)) < 1_000_100
    with pytest.raises(RefusedError, match="expected a JSON object from the service") as told:
        asyncio.run(Table(caught.value, max_retries=0).ask())
    assert len(str(told.value)) <= 300


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [400, 429, 500, 200])
def test_no_answer_is_read_without_end_whatever_its_status(server, provider, status):
    server.behave(wire.Behaviour(status=status, body=b"words " * 10_000, is_endless=True))
    kind = RetryableError if status in (429, 500) else RefusedError
    with pytest.raises(kind, match=r"longer than 1,000,000 bytes|longer than 32,000,000 bytes") as caught:
        complete(server, provider)
    assert status == 200 or f"answered {status}" in str(caught.value)
    # What was read, and what the sockets hold beside it.
    assert server.num_endless_bytes < (33 if status == 200 else 2) * 1_000_000 + 16_000_000


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_error_whose_body_breaks_off_is_that_error(server, provider):
    server.behave(wire.Behaviour(status=403, body=b"x" * 1000, is_cut=True))
    with pytest.raises(RefusedError, match="answered 403: the service's answer broke off") as caught:
        complete(server, provider)
    assert not caught.value.may_cost


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_names_the_setting(server, provider, status):
    with wire.ModelServer() as elsewhere:
        path = "/messages" if provider == "anthropic" else "/chat/completions"
        location = elsewhere.openai_url + path
        server.behave(wire.Behaviour(status=status, location=location))
        with pytest.raises(RefusedError, match="set base_url to") as caught:
            complete(server, provider)
        assert location in str(caught.value)
        assert server.anthropic_url in str(caught.value)
        assert not caught.value.may_cost
        assert (server.num_requests, elsewhere.num_requests) == (1, 0)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_byte_order_mark_before_an_answer_is_passed_over(server, provider):
    write = anthropic_message if provider == "anthropic" else openai_completion
    asked = wire.Ask("/", {}, {"model": "m", "messages": [{"role": "user", "content": "Go."}]}, 0.0)
    body = json.dumps(write(asked, "Hello.", is_truncated=False, is_refusal=False)).encode()
    server.behave(wire.Behaviour(body=b"\xef\xbb\xbf" + body))
    assert complete(server, provider).text == "Hello."


def test_a_block_without_text_says_nothing(server):
    blocks = [{"type": "text", "text": None}, {"type": "text", "text": "Hello."}, {"type": "text"}]
    server.behave(wire.Behaviour(body=json.dumps({"content": blocks}).encode()))
    assert complete(server, "anthropic").text == "Hello."


def test_an_answer_without_end_is_given_up() -> None:
    async def endless():
        while True:
            yield b"x" * 1_000_000

    with pytest.raises(RefusedError, match="longer than 32,000,000 bytes"):
        asyncio.run(read_whole(endless()))
