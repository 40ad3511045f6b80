"""From an endpoint to a provider: the one place that loads an SDK and reads a key.

Invariant: a key is read from the environment where it is used, and goes nowhere but into the SDK.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from cogeval.agents.llm.provider import Endpoint, Provider
from cogeval.errors import InputError

PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "anthropic": "cogeval.agents.llm.anthropic",
        "bedrock": "cogeval.agents.llm.anthropic",
        "openai": "cogeval.agents.llm.openai",
    }
)
"""Provider -> the module that speaks to it."""

KEYS: Final[Mapping[str, str | None]] = MappingProxyType(
    {"anthropic": "ANTHROPIC_API_KEY", "bedrock": None, "openai": "OPENAI_API_KEY"}
)
"""Provider -> the environment variable of its key, for its own server; None: the cloud's credentials."""


def connect(endpoint: Endpoint, place: str) -> Provider:
    """Opens a connection.

    Args:
        endpoint: where to.
        place: of the agent in the configuration, for messages.

    Raises:
        InputError: when the SDK is not installed or the key not set.
    """
    key = ""
    if endpoint.api_key_env is not None:
        key = os.environ.get(endpoint.api_key_env, "").strip()
        if not key:
            raise InputError(
                f"{place}: expected a key in the environment variable {endpoint.api_key_env}, got none; "
                "set it where the run's workers start, or name another one with api_key_env"
            )
        if not key.isprintable() or not key.isascii():
            raise InputError(
                f"{place}: expected a key of printable ASCII in {endpoint.api_key_env}, got other characters"
            )
    try:
        module = importlib.import_module(PROVIDERS[endpoint.provider])
    except ModuleNotFoundError as error:
        raise InputError(
            f"{place}: the SDK of provider {endpoint.provider} is not installed ({error}); "
            'pip install "cogeval[llm]"'
        ) from error
    opened: Callable[[Endpoint, str], Provider] = module.connect
    try:
        return opened(endpoint, key)
    except ValueError as error:
        raise InputError(f"{place}: {error}") from error
