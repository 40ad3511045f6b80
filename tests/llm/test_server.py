"""The tests' own server does what it is told, in both wire formats, as the official SDKs see it."""

from __future__ import annotations

import asyncio
import json
from email.utils import parsedate_to_datetime
from typing import Any

import anthropic
import openai
import pytest
from server import (
    CUT,
    EMPTY,
    EMPTY_BODY,
    INVALID_UTF8_BODY,
    OK,
    OVERLOADED,
    REFUSAL,
    SERVER_ERROR,
    TEN_MB,
    TRUNCATED,
    UNAUTHORIZED,
    Behaviour,
    ModelServer,
    slow,
    too_many,
)  # fmt: skip

SCHEMA = {"type": "object", "properties": {"action": {"type": "string"}}, "required": ["action"]}


def ask_openai(server: ModelServer, model: str = "m", **more: Any) -> Any:
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="sk-x", max_retries=0) as client:
            return await client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": "What do you do?"}], **more
            )

    return asyncio.run(ask())


def ask_anthropic(server: ModelServer, **more: Any) -> Any:
    async def ask() -> Any:
        async with anthropic.AsyncAnthropic(
            base_url=server.anthropic_url, api_key="sk-x", max_retries=0
        ) as client:
            return await client.messages.create(
                model="m",
                max_tokens=100,
                system="Rules.",
                messages=[{"role": "user", "content": "What do you do?"}],
                **more,
            )

    return asyncio.run(ask())


def test_both_formats_answer_with_json_and_count_tokens(server: ModelServer) -> None:
    said = ask_openai(server, response_format={"type": "json_object", "schema": SCHEMA})
    assert json.loads(said.choices[0].message.content)["action"] == "I wait."
    assert said.usage.prompt_tokens == 4
    reply = ask_anthropic(server)
    assert json.loads(reply.content[0].text)["action"] == "I wait."
    assert (reply.usage.input_tokens, reply.usage.cache_read_input_tokens) == (4, 2)
    assert server.num_requests == 2
    assert server.asks[0].key == "sk-x"
    assert server.asks[1].key == "sk-x"
    assert server.asks[0].schema == SCHEMA
    assert server.asks[1].system == "Rules."


def test_a_forced_tool_is_called(server: ModelServer) -> None:
    tool = {"name": "act", "input_schema": SCHEMA}
    reply = ask_anthropic(server, tools=[tool], tool_choice={"type": "tool", "name": "act"})
    assert reply.content[0].input["action"] == "I wait."
    assert reply.stop_reason == "tool_use"


@pytest.mark.parametrize("dated", [False, True])
def test_too_many_says_when_to_come_back(server: ModelServer, dated: bool) -> None:
    server.behave(too_many(3.0, dated=dated))
    with pytest.raises(openai.RateLimitError) as caught:
        ask_openai(server)
    said = caught.value.response.headers["retry-after"]
    assert parsedate_to_datetime(said).tzinfo if dated else said == "3"
    assert ask_openai(server).choices[0].finish_reason == "stop"


@pytest.mark.parametrize(
    ("behaviour", "status"), [(SERVER_ERROR, 500), (OVERLOADED, 529), (UNAUTHORIZED, 401)]
)
def test_errors_have_their_status_in_both_formats(
    server: ModelServer, behaviour: Behaviour, status: int
) -> None:
    server.behave(behaviour, behaviour)
    with pytest.raises(openai.APIStatusError) as caught:
        ask_openai(server)
    with pytest.raises(anthropic.APIStatusError) as also:
        ask_anthropic(server)
    assert caught.value.status_code == also.value.status_code == status
    if behaviour.is_indiscreet:
        assert "sk-x" in str(caught.value)
        assert "sk-x" in str(also.value)


def test_a_cut_connection_is_a_connection_error(server: ModelServer) -> None:
    server.behave(CUT)
    with pytest.raises(openai.APIError):
        ask_openai(server)


@pytest.mark.parametrize("behaviour", [EMPTY_BODY, INVALID_UTF8_BODY])
def test_a_body_that_is_no_json_is_sent_as_told(server: ModelServer, behaviour: Behaviour) -> None:
    server.behave(behaviour)
    with pytest.raises(Exception, match=r".+"):
        ask_openai(server)


def test_texts_are_sent_as_told(server: ModelServer) -> None:
    server.behave(TEN_MB, EMPTY, TRUNCATED, REFUSAL, slow(0.01))
    assert len(ask_openai(server).choices[0].message.content) > 10_000_000
    assert ask_openai(server).choices[0].message.content == ""
    assert ask_openai(server).choices[0].finish_reason == "length"
    assert ask_openai(server).choices[0].message.refusal
    assert ask_openai(server).choices[0].finish_reason == "stop"


def test_behaviours_of_one_model_leave_the_others_alone(server: ModelServer) -> None:
    server.always(SERVER_ERROR, model="bad")
    server.behave(OK)
    with pytest.raises(openai.InternalServerError):
        ask_openai(server, model="bad")
    assert ask_openai(server, model="good").model == "good-20260101"


def test_a_slow_answer_does_not_outlive_the_server() -> None:
    async def ask(server: ModelServer) -> None:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="sk-x", max_retries=0) as client:
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])

    async def leave() -> None:
        with ModelServer() as server:
            server.always(slow(3600.0))
            waiting = asyncio.ensure_future(ask(server))
            while not server.num_requests:
                await asyncio.sleep(0)
        with pytest.raises(openai.APIConnectionError):
            await waiting

    asyncio.run(asyncio.wait_for(leave(), 20))
