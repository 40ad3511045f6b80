"""Addresses of places: which texts are URIs, and that none of them carries a secret.

Invariant: what passes may be written into manifests, logs and messages. Must not open anything.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from cogeval.errors import InputError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SECRET = re.compile(r"(?i)key|secret|token|passw|sig|credential|auth")
WHERE_KEYS_GO: Final = (
    "keys come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), a "
    "profile or the machine's role"
)


def is_address(text: str) -> bool:
    """True for a URI, False for a path."""
    return _SCHEME.match(text) is not None


def without_secrets(address: str) -> str:
    """A URI with its user information and the values of its parameters left out, for messages."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def check_address(address: str) -> None:
    """Refuses a URI with a secret in it: a run would keep it in files that others read.

    Raises:
        InputError: it has a user with a password, or a parameter whose name speaks of one; the message
            does not repeat it.
    """
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise InputError(f"expected a URI as run.root: {error}") from error
    user, at, _ = parts.netloc.rpartition("@")
    has_password = ":" in unquote(user) or (at and parts.scheme == "s3")
    named = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if _SECRET.search(name)]
    if has_password or named:
        what = f"the parameter {named[0]!r}" if named else "a key in front of @"
        raise InputError(
            f"run.root={without_secrets(address)} came with {what}, which the run would keep; take it out: "
            f"{WHERE_KEYS_GO}"
        )


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
