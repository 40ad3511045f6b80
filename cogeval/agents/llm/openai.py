"""Chat completions of any OpenAI-compatible server through the official SDK.

Invariant: the SDK never retries, and never goes to a server or takes a key that the endpoint does not name.
Needs the extra ``cogeval[llm]``; only `connecting` imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from openai import APIConnectionError, AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError, Timeout

from cogeval.agents.llm.provider import (
    HOOKS,
    Call,
    Completion,
    Endpoint,
    RefusedError,
    body_of,
    connection_failure,
    count_of,
    read_whole,
    text_or_none,
    timeouts,
)

_URL: Final = "https://api.openai.com/v1"


class OpenAIProvider:
    """Chat completions.

    Args:
        client: of the SDK, with max_retries=0 and the transport of `_transport`.
        is_own: the server is OpenAI's, which calls the limit of a reply by another name.
    """

    __slots__ = ("_client", "_limit_field")

    def __init__(self, client: AsyncOpenAI, *, is_own: bool) -> None:
        self._client = client
        self._limit_field = "max_completion_tokens" if is_own else "max_tokens"

    async def close(self) -> None:
        """Closes the connection."""
        await self._client.close()

    async def complete(self, call: Call) -> Completion:
        """Makes one request; see `Provider`."""
        limit_s, connect_s = timeouts(call)
        messages: list[Any] = [{"role": m.role, "content": m.text} for m in call.messages]
        if call.system:
            messages.insert(0, {"role": "system", "content": call.system})
        body = {self._limit_field: call.max_tokens, **_response_format(call), **call.sampling}
        try:
            async with self._client.chat.completions.with_streaming_response.create(
                model=call.model,
                messages=messages,
                extra_body=body,
                timeout=Timeout(limit_s, connect=connect_s),
            ) as response:
                content = await read_whole(response.iter_bytes())
        except APIConnectionError as error:
            raise connection_failure(error) from None
        except (OpenAIError, TypeError, ValueError) as error:
            raise RefusedError(f"the SDK made no request: {error}") from None
        return _completion(body_of(content))


def _response_format(call: Call) -> dict[str, Any]:
    if call.json_style == "schema":
        form = {"name": "reply", "strict": True, "schema": _strict(call.schema)}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    if call.json_style == "llama":
        return {"response_format": {"type": "json_object", "schema": dict(call.schema)}}
    return {"response_format": {"type": "json_object"}} if call.json_style == "object" else {}


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A strict schema has no optional fields: a reply then says "" where it would have left one out."""
    return {**schema, "required": list(schema.get("properties", ())), "additionalProperties": False}


def _completion(body: Mapping[str, Any]) -> Completion:
    try:
        choice = body["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
        reason = choice.get("finish_reason")
    except (LookupError, TypeError, AttributeError):
        what = f"expected choices in the service's completion, got the keys {sorted(body)[:10]}"
        raise RefusedError(what, may_cost=True) from None
    if isinstance(refusal, str) and refusal:
        content, reason = refusal, "refusal"
    usage = body.get("usage")
    return Completion(
        text=content if isinstance(content, str) else "",
        tokens_in=count_of(usage, "prompt_tokens"),
        tokens_out=count_of(usage, "completion_tokens"),
        tokens_cached=count_of(usage, "prompt_tokens_details", "cached_tokens"),
        model=text_or_none(body.get("model")),
        finish_reason=text_or_none(reason),
    )


def _transport() -> DefaultAsyncHttpxClient:
    """The SDK's own, which follows no redirect and reads no error to its end."""
    return DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=HOOKS)


def connect(endpoint: Endpoint, key: str) -> OpenAIProvider:
    """Opens a connection.

    Args:
        endpoint: where to.
        key: the API key; "" for a server that asks for none.
    """
    client = AsyncOpenAI(
        api_key=key or "none",
        base_url=endpoint.base_url or _URL,
        max_retries=0,
        http_client=_transport(),
    )
    return OpenAIProvider(client, is_own=endpoint.base_url is None)
