"""Anthropic's Messages API through its official SDK, directly or on Amazon Bedrock.

Invariant: the SDK never retries, and never goes to a server or takes a key that the endpoint does not name.
Needs the extra ``cogeval[llm]``; only `connecting` imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from anthropic import (
    AnthropicError,
    APIConnectionError,
    AsyncAnthropic,
    AsyncAnthropicBedrock,
    DefaultAsyncHttpxClient,
    Timeout,
)

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

_URL: Final = "https://api.anthropic.com"


class AnthropicProvider:
    """Messages API.

    Args:
        client: of the SDK, with max_retries=0 and the transport of `_transport`.
    """

    __slots__ = ("_client",)

    def __init__(self, client: AsyncAnthropic | AsyncAnthropicBedrock) -> None:
        self._client = client

    async def close(self) -> None:
        """Closes the connection."""
        await self._client.close()

    async def complete(self, call: Call) -> Completion:
        """Makes one request; see `Provider`."""
        limit_s, connect_s = timeouts(call)
        try:
            async with self._client.messages.with_streaming_response.create(
                model=call.model,
                max_tokens=call.max_tokens,
                system=call.system,
                messages=[{"role": _role(m.role), "content": m.text} for m in call.messages],
                extra_body=_extra(call),
                timeout=Timeout(limit_s, connect=connect_s),
            ) as response:
                content = await read_whole(response.iter_bytes())
        except APIConnectionError as error:
            raise connection_failure(error) from None
        except (AnthropicError, TypeError, ValueError, RuntimeError, ImportError) as error:
            raise RefusedError(f"the SDK made no request: {error}") from None
        return _completion(body_of(content))


def _role(role: str) -> Any:
    return role  # the SDK's type is a literal


def _extra(call: Call) -> dict[str, Any]:
    """Fields of the body beyond those that every model needs; the user's own come last."""
    extra: dict[str, Any] = {}
    sampling = dict(call.sampling)
    if call.json_style == "schema":
        form = {"type": "json_schema", "schema": dict(call.schema)}
        given = sampling.pop("output_config", {})
        extra["output_config"] = {"format": form, **given}
    return {**extra, **sampling}


def _completion(body: Mapping[str, Any]) -> Completion:
    blocks = body.get("content")
    if not isinstance(blocks, list):
        what = f"expected content in the service's message, got the keys {sorted(body)[:10]}"
        raise RefusedError(what, may_cost=True)
    texts = [text_or_none(b.get("text")) for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    usage = body.get("usage")
    cached = count_of(usage, "cache_read_input_tokens")
    return Completion(
        text="".join(text for text in texts if text is not None),
        tokens_in=count_of(usage, "input_tokens") + cached + count_of(usage, "cache_creation_input_tokens"),
        tokens_out=count_of(usage, "output_tokens"),
        tokens_cached=cached,
        model=text_or_none(body.get("model")),
        finish_reason=text_or_none(body.get("stop_reason")),
    )


def _transport() -> DefaultAsyncHttpxClient:
    """The SDK's own, which follows no redirect and reads no error to its end."""
    return DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=HOOKS)


def connect(endpoint: Endpoint, key: str) -> AnthropicProvider:
    """Opens a connection.

    Args:
        endpoint: where to.
        key: the API key; "" for a server that asks for none, on Bedrock for the credentials of AWS.

    Raises:
        ValueError: when Bedrock's region is not known.
    """
    if endpoint.provider == "bedrock":
        return AnthropicProvider(
            AsyncAnthropicBedrock(
                aws_region=endpoint.region,
                api_key=key or None,
                base_url=endpoint.base_url,
                max_retries=0,
                http_client=_transport(),
            )
        )
    base_url = endpoint.base_url or _URL
    return AnthropicProvider(
        AsyncAnthropic(api_key=key or "none", base_url=base_url, max_retries=0, http_client=_transport())
    )
