"""Whether a service has ever answered an agent: one that never did is set up wrongly.

Invariant: a service that has answered once is never given up here; what it refuses then is a fault of that
decision. Must not know games, seats or how requests are made.
"""

from __future__ import annotations

import urllib.parse
from typing import Final

from cogeval.agents.llm.provider import Endpoint

_TELLING: Final = (401, 403, 404)  # statuses of a wrong key, model or address
_ENOUGH: Final = 8  # such answers, and no other, tell that no request will fare better


class Standing:
    """How a service has treated one agent in this process."""

    __slots__ = ("_is_known", "_num_refused")

    def __init__(self) -> None:
        self._is_known = False
        self._num_refused = 0

    def answered(self) -> None:
        """It has answered, or refused something for what it asked."""
        self._is_known = True

    def refused(self, status: int | None) -> bool:
        """Notes a refusal; True: all of the first requests were refused, and none will fare better."""
        if status not in _TELLING:
            self.answered()
        self._num_refused += 1
        return not self._is_known and self._num_refused >= _ENOUGH


def told(place: str, endpoint: Endpoint, model: str, status: int | None, what: str) -> str:
    """What is said of a service that refuses everything.

    Args:
        place: of the agent in the configuration.
        endpoint: that it asks.
        model: that it asks for.
        status: of the last refusal.
        what: that one said, for people.
    """
    server = endpoint.base_url or f"the own server of provider {endpoint.provider}"
    cause = _cause(endpoint, model, status)
    return f"{place}: {server} refused its first {_ENOUGH} requests, all of them; {what}. {cause}"


def _cause(endpoint: Endpoint, model: str, status: int | None) -> str:
    if status == 401 and endpoint.api_key_env is None:
        return "No key is sent there: name its environment variable with api_key_env"
    if status == 401:
        return f"Most likely the key in {endpoint.api_key_env} is not one of this service"
    if status == 403:
        return f"Most likely this key may not use {model}, or the service does not serve this place"
    path = urllib.parse.urlsplit(endpoint.base_url or "").path
    if endpoint.provider == "openai" and endpoint.base_url and "/v1" not in path:
        return "Most likely base_url lacks its /v1"
    if endpoint.provider == "anthropic" and path.rstrip("/").endswith("/v1"):
        return "Most likely base_url has a /v1 too many: this provider adds it"
    return f"Most likely it has no model {model}, or base_url is another path"
