"""Addresses of places: which texts are URIs, and that none of them carries a secret.

Invariant: what passes may be written into manifests, logs and messages. Must not open anything.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from cogeval.errors import InputError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_MISTYPED = re.compile(r"(?i)(s3a?|gs|gcs|abfss?|hdfs|viewfs|file|https?):|[a-z][a-z0-9+.-]+:/")
_SECRET = re.compile(r"(?i)key|secret|token|pass|pwd|sig|cred|auth|sas$")
_HIDDEN = re.compile(r"[;&?,#](?P<name>[^/;&?,#=]+)=|:[^/@]*@")  # in a path: a parameter, user:password@
_PLAIN_VALUE = re.compile(r"[^@;?&#]*")
_OF_USERS: Final = ("hdfs", "viewfs")  # a user there is a name that everybody may know
_OF_CONTAINERS: Final = ("abfs", "abfss")  # container@account
WHERE_KEYS_GO: Final = (
    "keys come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), a "
    "profile or the machine's role"
)


def is_address(text: str) -> bool:
    """True for a URI, False for a path."""
    return _SCHEME.match(text) is not None


def is_mistyped(text: str) -> bool:
    """True for what looks like a URI whose slashes are missing, and would be a directory of that name."""
    return not is_address(text) and _MISTYPED.match(text) is not None


def check_path(text: str) -> None:
    """Refuses a path that somebody may have meant as a URI.

    Raises:
        InputError: it looks like one.
    """
    if is_mistyped(text):
        scheme = text.partition(":")[0]
        raise InputError(
            f"run.root: expected a URI, {scheme}://..., or a path, got {scheme}:... without two slashes; a "
            f"directory of that name is ./{scheme}:..."
        )


def without_secrets(address: str) -> str:
    """A URI with its user information and its parameters left out, wherever they stand, for messages."""
    scheme, _, rest = address.partition("://")
    rest = re.split("[?#;&,]", _plain(rest))[0]
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _plain(text: str) -> str:
    """A text without percent signs of any depth."""
    while (plain := unquote(text)) != text:
        text = plain
    return text


def check_address(address: str) -> None:
    """Refuses a URI with a secret in it: a run would keep it in files that others read.

    Raises:
        InputError: it has a user with a password, or a parameter whose name or value speaks of one; or
            parts that would be dropped or read in more than one way. The message repeats none of them.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        raise InputError("expected a URI as run.root, got one whose host cannot be read") from None
    shown = without_secrets(address)
    what = _secret_in(parts)
    if what is not None:
        raise InputError(
            f"run.root={shown} came with {what}, which the run would keep; take it out: {WHERE_KEYS_GO}"
        )
    if "#" in address:
        raise InputError(
            f"run.root={shown}: expected no # in a URI: what follows it would be dropped, parameters too; "
            "take it out, or write %23 for one in a name"
        )
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if len(set(names)) < len(names):
        raise InputError(f"run.root={shown}: expected every parameter once, got one of them more than once")
    if parts.scheme != "file" and {".", ".."} & set(_plain(f"{parts.netloc}{parts.path}").split("/")):
        raise InputError(f"run.root={shown}: expected a URI without . and .. in its path")


def _secret_in(parts: SplitResult) -> str | None:
    """Names what looks like a secret in a URI without repeating it; None: nothing does."""
    user, at, _ = _plain(parts.netloc).rpartition("@")
    named_users = (*_OF_USERS, *_OF_CONTAINERS)
    if ":" in user or "@" in user or (at and parts.scheme not in named_users):
        return "a key in front of @"
    query = parts.query + ("&" + parts.fragment.rpartition("?")[2] if parts.fragment else "")
    for name, value in parse_qsl(query, keep_blank_values=True):
        if _SECRET.search(_plain(name)):
            return "a parameter that speaks of a key"
        if not _PLAIN_VALUE.fullmatch(_plain(value)):
            return "a parameter whose value has more than an address in it"
    for found in _HIDDEN.finditer(_plain(parts.path)):
        if found["name"] is None or _SECRET.search(found["name"]):
            return "what looks like a key in its path"
    return None


def file_path(address: str) -> Path | None:
    """The path of a ``file://`` URI; None for any other.

    Raises:
        InputError: it names another host, or no absolute path.
    """
    parts = urlsplit(address)
    if parts.scheme.lower() != "file":
        return None
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise InputError(f"expected file:///absolute/path, got {address!r}")
    return Path(unquote(parts.path))
