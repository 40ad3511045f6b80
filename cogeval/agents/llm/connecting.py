"""From an endpoint to a provider: the one place that loads an SDK and reads a key.

Invariant: a key is read from the environment where it is used, and goes nowhere but into the SDK.
"""

from __future__ import annotations

import importlib
import importlib.util
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

_PACKAGES: Final = MappingProxyType({"anthropic": "anthropic", "bedrock": "anthropic", "openai": "openai"})

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
    key = _key_of(endpoint, place)
    try:
        module = importlib.import_module(PROVIDERS[endpoint.provider])
    except ModuleNotFoundError as error:
        raise _not_installed(endpoint, place, str(error)) from error
    opened: Callable[[Endpoint, str], Provider] = module.connect
    try:
        return opened(endpoint, key)
    except ValueError as error:
        raise InputError(f"{place}: {error}") from error


def check_connectable(endpoint: Endpoint, place: str) -> None:
    """Finds out what would keep this process from connecting; loads no SDK, which takes a second.

    Args:
        endpoint: where to.
        place: of the agent in the configuration, for messages.

    Raises:
        InputError: when the SDK is not installed or the key not set.
    """
    _key_of(endpoint, place)
    package = _PACKAGES[endpoint.provider]
    if importlib.util.find_spec(package) is None:
        raise _not_installed(endpoint, place, f"No module named '{package}'")


def _key_of(endpoint: Endpoint, place: str) -> str:
    """The key; "" when the endpoint asks for none."""
    if endpoint.api_key_env is None:
        return ""
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
    return key


def _not_installed(endpoint: Endpoint, place: str, why: str) -> InputError:
    return InputError(
        f"{place}: the SDK of provider {endpoint.provider} is not installed ({why}); "
        'pip install "cogeval[llm]"'
    )
