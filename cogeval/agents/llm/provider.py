"""What a model service is: one call in, one completion out, and two ways to fail.

Invariant: a provider makes exactly one request for one call; waiting and trying again is the agent's.
Must not know games, seats, quotas or prices.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol

import msgspec

from cogeval.core.game import Json
from cogeval.errors import SeatError

JSON_STYLES: Final = ("schema", "object", "llama", "none")
"""Ways to ask for JSON: a schema, any object, a schema as llama.cpp's server takes it, the prompt alone."""

_CONNECT_S: Final = 10.0  # longest wait for a connection
_SLACK_S: Final = 1.0  # the seat's own deadline comes first, so that it is a timeout and no error
_RETRIED: Final = (408, 409, 425, 429)  # and everything from 500 on
_UNASKED: Final = (503, 529)  # of those from 500 on: the service says that it did not take the call
_UNSENT: Final = (
    "ConnectError", "ConnectTimeout", "LocalProtocolError", "PoolTimeout", "ProxyError",
    "UnsupportedProtocol",
)  # fmt: skip
"""The transport's names for failures before a request is on its way."""

_SPENT: Final = "insufficient_quota"  # a 429 of an account without money: waiting does not help
_MOST_BYTES: Final = 32_000_000  # of a response that is read
_MOST_SAID_BYTES: Final = 1_000_000  # of one that is quoted: an error, or an answer that is no JSON
_SECONDS: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
_MOST_TOKENS: Final = 2**31 - 1  # that a service is believed


class RetryableError(SeatError):
    """The service could not answer now; the same call may succeed later.

    Args:
        what: happened, for people.
        wait_s: seconds that the service asked to wait; None: it did not say.
        is_limit: the account's rate limit is reached.
        may_cost: the call may have reached the model, and may be on the bill.
    """

    def __init__(
        self, what: str, wait_s: float | None = None, *, is_limit: bool = False, may_cost: bool = False
    ) -> None:
        super().__init__(what)
        self.wait_s = wait_s
        self.is_limit = is_limit
        self.may_cost = may_cost


class RefusedError(SeatError):
    """The service will not answer this call, however often it is made.

    Args:
        what: happened, for people.
        may_cost: the call may have reached the model, and may be on the bill.
        status: of HTTP; None: there was none, or a success.
    """

    def __init__(self, what: str, *, may_cost: bool = False, status: int | None = None) -> None:
        super().__init__(what)
        self.may_cost = may_cost
        self.status = status


class Message(msgspec.Struct, frozen=True, gc=False):
    """One turn of a conversation."""

    role: str  # "user" or "assistant"
    text: str


class Call(msgspec.Struct, frozen=True):
    """One question to a model."""

    model: str
    system: str
    messages: tuple[Message, ...]  # the first and the last are the user's
    schema: Mapping[str, Json]  # of the reply
    json_style: str = "schema"  # one of JSON_STYLES
    max_tokens: int = 1024  # of the reply
    sampling: Mapping[str, Json] = {}  # fields of the request's body, as the service calls them
    timeout_s: float | None = None  # think time left; None: unlimited


class Completion(msgspec.Struct, frozen=True, gc=False):
    """What a model answered."""

    text: str
    tokens_in: int = 0  # cached ones included
    tokens_out: int = 0
    tokens_cached: int = 0  # of tokens_in, read from the service's cache
    model: str | None = None  # as the service names it
    finish_reason: str | None = None  # in the service's own words


class Provider(Protocol):
    """A connection to a model service; shared by the agents of a process."""

    async def complete(self, call: Call) -> Completion:
        """Makes one request.

        Raises:
            RetryableError: when the same call may succeed later.
            RefusedError: when it will not.
        """

    async def close(self) -> None:
        """Closes the connection."""


class Response(Protocol):
    """What an SDK's transport gives as soon as a response's headers are there."""

    @property
    def status_code(self) -> int:
        """Of HTTP."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Looked up in lower case."""

    @property
    def url(self) -> object:
        """That was asked."""

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """The body, unpacked."""


class Endpoint(msgspec.Struct, frozen=True):
    """Where a provider's requests go; holds the name of the key, never the key."""

    provider: str
    base_url: str | None = None  # None: the provider's own
    api_key_env: str | None = None  # environment variable; None: no key, or the SDK's own way to credentials
    region: str | None = None  # of Bedrock; None: as the environment says


def timeouts(call: Call) -> tuple[float | None, float]:
    """Seconds that a call may take in all, and to connect."""
    if call.timeout_s is None:
        return None, _CONNECT_S
    limit_s = max(call.timeout_s, 0.0) + _SLACK_S
    return limit_s, min(limit_s, _CONNECT_S)


def retry_after_s(headers: Mapping[str, str], now_s: float | None = None) -> float | None:
    """Seconds that a response asks to wait.

    Args:
        headers: of the response; looked up in lower case.
        now_s: seconds since 1970; None: now.

    Returns:
        0 or more; None when the response does not say, or not in a way that can be read.

    Source: RFC 9110, section 10.2.3; retry-after-ms is what some services send beside it.
    """
    if (wait_s := _seconds(headers.get("retry-after-ms"))) is not None:
        return wait_s / 1000
    value = headers.get("retry-after")
    if (wait_s := _seconds(value)) is not None or value is None:
        return wait_s
    try:
        at_s = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, at_s - (time.time() if now_s is None else now_s))


def _seconds(value: str | None) -> float | None:
    if value is None or _SECONDS.fullmatch(value.strip()) is None:
        return None
    seconds = float(value)
    return seconds if seconds < math.inf else None


async def check_status(response: Response) -> None:
    """Ends every response but a success, before an SDK reads all of it or follows it elsewhere.

    Raises:
        RetryableError: when the same call may succeed later.
        RefusedError: when it will not.
    """
    status = response.status_code
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        to = response.headers.get("location")
        raise RefusedError(
            f"expected an answer from {response.url}, got {status}, a redirect to {to!r}; none is followed: "
            "set base_url to the address that answers itself"
        )
    try:
        body = await read_whole(response.aiter_bytes(), _MOST_SAID_BYTES)
    except SeatError as error:  # what it said matters less than its status
        raise status_failure(status, response.headers, str(error)) from None
    raise status_failure(status, response.headers, _text(body))


HOOKS: Final[Mapping[str, list[Callable[..., Any]]]] = {"response": [check_status]}
"""What the transport of each SDK calls: with them no status but a success reaches the SDK."""


def status_failure(status: int, headers: Mapping[str, str], body: str) -> SeatError:
    """The error that a response other than 200 means.

    Args:
        status: of HTTP.
        headers: looked up in lower case.
        body: the response's text, whole: whoever tells people takes out keys first, then cuts.
    """
    what = f"the service answered {status}: {_words(body)}"
    if status == 429 and _SPENT in body:
        return RefusedError(what)
    if status in _RETRIED or status >= 500:
        may_cost = status >= 500 and status not in _UNASKED
        return RetryableError(what, retry_after_s(headers), is_limit=status == 429, may_cost=may_cost)
    return RefusedError(what, status=status)


def connection_failure(error: Exception) -> SeatError:
    """The error that an SDK's failed connection means; its cause is the transport's own, or ours."""
    cause = error.__cause__
    if isinstance(cause, SeatError):
        return cause
    may_cost = type(cause).__name__ not in _UNSENT
    return RetryableError(f"no answer from the service: {cause or error}", may_cost=may_cost)


def _words(body: str) -> str:
    """What a service says about its error; not cut, or a piece of a key might be left at the cut."""
    words = body
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        error = json.loads(body)["error"]
        words = str(error["message"] if isinstance(error, dict) else error)
    return words.strip() or "nothing"


def _text(content: bytes) -> str:
    """A body as text; bytes that are no UTF-8 become U+FFFD, and a byte order mark is none of it."""
    return content.decode("utf-8-sig", "replace")


def body_of(content: bytes) -> dict[str, Any]:
    """The JSON object that a successful response holds.

    Raises:
        RefusedError: when it is anything else.
    """
    try:
        body = json.loads(_text(content))
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        quoted = f" that begin {_text(content)!r}" if len(content) <= _MOST_SAID_BYTES else ""
        what = f"expected a JSON object from the service, got {len(content):,} bytes{quoted}"
        raise RefusedError(what, may_cost=True)
    return body


async def read_whole(chunks: AsyncIterator[bytes], most: int = _MOST_BYTES) -> bytes:
    """The bytes of a response.

    Args:
        chunks: as they come.
        most: that are read.

    Raises:
        RefusedError: when they do not end: a reply of a few thousand tokens is no tenth of this.
        RetryableError: when they break off.
    """
    whole = bytearray()
    try:
        async for chunk in chunks:
            whole += chunk
            if len(whole) > most:
                break
    except Exception as error:  # noqa: BLE001 - the transport's own, which the SDKs let through
        raise RetryableError(f"the service's answer broke off: {error}", may_cost=True) from None
    if len(whole) > most:
        raise RefusedError(f"the service's answer is longer than {most:,} bytes", may_cost=True)
    return bytes(whole)


def count_of(usage: object, *path: str) -> int:
    """A number of tokens somewhere in what a service reports; 0 when it is not there."""
    for key in path:
        usage = usage.get(key) if isinstance(usage, dict) else None
    return usage if type(usage) is int and 0 < usage <= _MOST_TOKENS else 0


def text_or_none(value: object) -> str | None:
    """The value when it is text."""
    return value if isinstance(value, str) else None
