"""Keeps keys out of everything that an agent says.

Invariant: no value of the environment variables named here leaves through `scrub`, in an error or a reply.
"""

from __future__ import annotations

import base64
import os
import urllib.parse
from collections.abc import Iterable
from typing import Final

KEY_VARIABLES: Final = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "AWS_ACCESS_KEY_ID",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "OPENAI_ADMIN_KEY",
    "OPENAI_API_KEY",
)
"""Environment variables that the SDKs read credentials from."""

_LEAST_CHARS: Final = 6  # a shorter value (a local server's "x") hides nothing and would spoil any text


def scrub(text: str, variables: Iterable[str] = ()) -> str:
    """The text with the values of key variables replaced by their names.

    Args:
        text: any.
        variables: names of environment variables, beside `KEY_VARIABLES`.
    """
    found = {(form, name) for name in {*KEY_VARIABLES, *variables} for form in _forms(name)}
    for form, name in sorted(found, key=lambda f: (-len(f[0]), f)):  # a key may contain another
        if form in text:
            text = text.replace(form, f"<{name}>")
    return text


def _forms(name: str) -> set[str]:
    """A variable's value, and how it looks quoted in a URL, escaped in a literal or in base 64."""
    value = os.environ.get(name, "").strip()
    if len(value) < _LEAST_CHARS:
        return set()
    encoded = base64.b64encode(value.encode("utf-8", "replace")).decode().rstrip("=")
    lines = {line.partition(":")[2].strip() for line in value.splitlines()} if ":" in value else set()
    return {
        form
        for form in {value, urllib.parse.quote(value, safe=""), repr(value)[1:-1], encoded, *lines}
        if len(form) >= _LEAST_CHARS
    }
