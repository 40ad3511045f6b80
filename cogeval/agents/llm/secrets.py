"""Keeps keys out of everything that an agent says, and out of what a run writes down about it.

Invariant: no value of the environment variables named here leaves through `scrub`, in an error or a reply,
and no message of this module quotes what it found.
"""

from __future__ import annotations

import base64
import json
import os
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cogeval.errors import InputError

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

_ESCAPED: Final = re.compile(r"\\(?:u00([2-7][0-9a-fA-F])|(/)|.)", re.DOTALL)
"""An escape of JSON; with a group when it need not be one."""

_OFTEN_ESCAPED: Final = re.compile(r"(?<!\\)\\+(?:u00([2-7][0-9a-fA-F])|(/))")
"""The same where what holds it was escaped again, as a quotation is."""

_LEAST_CHARS: Final = 6  # a shorter value (a local server's "x") hides nothing and would spoil any text


def scrub(text: str, variables: Iterable[str] = ()) -> str:
    """The text with the values of key variables replaced by their names.

    A value that is spelled with escapes of JSON is one too: JSON that is read from the text holds none.

    Args:
        text: any.
        variables: names of environment variables, beside `KEY_VARIABLES`.
    """
    found = {(form, name) for name in {*KEY_VARIABLES, *variables} for form in _forms(name)}
    for escape in (_ESCAPED, _OFTEN_ESCAPED) if found and "\\" in text else ():
        spelled_out = escape.sub(_spelled_out, text)
        if any(form in spelled_out for form, _ in found):
            text = spelled_out
    for form, name in sorted(found, key=lambda f: (-len(f[0]), f)):  # a key may contain another
        if form in text:
            text = text.replace(form, f"<{name}>")
    return text


def _spelled_out(escape: re.Match[str]) -> str:
    """The character that an escape stands for, where it may stand for itself; JSON stays JSON."""
    if escape[1] is None:
        return escape[2] or escape[0]
    character = chr(int(escape[1], 16))
    return f"\\{character}" if character in '"\\' else character


def _forms(name: str) -> set[str]:
    """A variable's value, and how it looks quoted in a URL, escaped in a literal or in base 64."""
    value = os.environ.get(name, "").strip()
    if len(value) < _LEAST_CHARS:
        return set()
    encoded = base64.b64encode(value.encode("utf-8", "replace")).decode().rstrip("=")
    quoted = urllib.parse.quote(value, safe="")
    lines = {line.partition(":")[2].strip() for line in value.splitlines()} if ":" in value else set()
    return {
        form
        for form in {value, quoted, repr(value)[1:-1], json.dumps(value)[1:-1], encoded, *lines}
        if len(form) >= _LEAST_CHARS
    }


_TELLING: Final = re.compile(
    r"(^|_)(key|keys|token|secret|password|passwd|credentials?|auth)(_|$)|apikey", re.IGNORECASE
)
"""In the name of an environment variable whose value is taken for a secret."""

_TELLING_CHARS: Final = 12  # least length of such a value: a shorter one may be an ordinary word
_KEYS: Final = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|glpat|r8)[-_](?=[\w-]*\d)[\w-]{16,}"  # model services and their neighbours
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bABSK[A-Za-z0-9+/=]{40,}"  # AWS
    r"|\bAIza[\w-]{30,}|\bgh[opsu]_\w{30,}|\bgithub_pat_\w{30,}|\bxox[abpr]-[\w-]{10,}"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}|\b[Bb]earer\s+(?=\S*\d)[\w.~+/-]{16,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
"""What a key looks like."""


def refuse_keys(place: str, value: Any) -> None:
    """Looks for keys in a setting, however deep: a run keeps its configuration for ever.

    Args:
        place: of the setting in the configuration.
        value: of it, as plain JSON.

    Raises:
        InputError: it holds what looks like a key, or the value of an environment variable that does; the
            message names the setting and the variable, and quotes neither.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            refuse_keys(place, str(name))  # named by what is around it: the name may be the key
            refuse_keys(f"{place}.{name}", inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            refuse_keys(place, inner)
    elif isinstance(value, str) and (what := _key_in(value)) is not None:
        raise InputError(
            f"{place}: expected no key, got {what}; a run keeps its configuration, so put the key into an "
            "environment variable and name that one: api_key_env: MY_KEY"
        )


def _key_in(text: str) -> str | None:
    """What kind of key a text holds, in words that do not quote it; None: it holds none."""
    for name, value in os.environ.items():
        value = value.strip()
        least = _LEAST_CHARS if name in KEY_VARIABLES else _TELLING_CHARS
        if len(value) >= least and value in text and (name in KEY_VARIABLES or _TELLING.search(name)):
            return f"a text that holds the value of the environment variable {name}"
    return "a text that holds what looks like one" if _KEYS.search(text) else None
