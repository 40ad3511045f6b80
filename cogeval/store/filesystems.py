"""From a URI to a file system of pyarrow.fs.

Invariant: credentials come from the surroundings (environment, profile, role), never from the URI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

import pyarrow as pa
from pyarrow import fs

from cogeval.errors import InputError, unknown_name
from cogeval.store.addresses import check_address
from cogeval.store.failures import said

_FLAT: Final = ("s3", "gcs", "abfs")  # prefixes exist with what is under them
_CONNECT_S = 10.0
_RETRIES = "retry_limit_seconds"
_RETRY_S = 60.0
_HASTY_CONNECT_S = 3.0  # for who only reads: see `Opened`
_HASTY_RETRY_S = 8.0


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """What was opened by an address.

    Args:
        file_system: of pyarrow.fs.
        directory: as the file system takes it.
        base: what to put before a directory for its URI.
        parameters: of the URI, in order.
        is_flat: its directories need not be made.
        is_hasty: for who only reads, and wants to know soon that nothing answers.
        uri: the address, as it was given.
    """

    file_system: Any
    directory: str
    base: str
    parameters: tuple[tuple[str, str], ...]
    is_flat: bool
    is_hasty: bool = False
    uri: str = ""

    @property
    def endpoint(self) -> str:
        """What is asked, for a message."""
        named = dict(self.parameters).get("endpoint_override")
        return f"endpoint {named}" if named else f"the store of {self.base}{self.directory}"


def open_file_system(uri: str, *, is_hasty: bool = False) -> Opened:
    """Opens the file system that a URI means; asks nothing of it.

    Args:
        uri: its address.
        is_hasty: give up soon when nothing answers, and leave other tries to the caller.

    Raises:
        InputError: there is none, a parameter is unknown, or a secret is in it.
    """
    check_address(uri)
    parts = urlsplit(uri)
    parameters = tuple(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    try:
        if parts.scheme == "s3":
            file_system, directory = _s3(parts, dict(parameters), is_hasty=is_hasty)
        else:
            file_system, directory = fs.FileSystem.from_uri(_limited(parts, parameters, is_hasty=is_hasty))
    except (pa.ArrowException, ValueError, OSError, NotImplementedError) as error:
        raise InputError(
            f"run.root: expected a URI that pyarrow.fs opens, got {uri!r}: {said(error)}"
        ) from None
    lead = "/" if directory.startswith("/") else ""
    directory = lead + "/".join(filter(None, directory.split("/")))
    if directory in ("", "/"):
        raise InputError(f"run.root: expected a bucket or directory in the URI, got {uri!r}")
    shown = "/".join(filter(None, f"{parts.netloc}{unquote(parts.path)}".split("/")))
    if not shown.endswith(directory):
        raise InputError(f"run.root: expected a URI with its directory at its end, got {uri!r}")
    base = f"{parts.scheme}://{shown[: len(shown) - len(directory)]}"
    return Opened(file_system, directory, base, parameters, file_system.type_name in _FLAT, is_hasty, uri)


def _s3(parts: SplitResult, parameters: dict[str, str], *, is_hasty: bool) -> tuple[Any, str]:
    """Opens S3 ourselves: a URI cannot say how long to wait, nor that small objects go in one request."""
    for name in parameters:
        if name not in _S3_PARAMETERS:
            raise unknown_name("parameter of an s3:// URI", name, _S3_PARAMETERS)
    options = {name: _S3_PARAMETERS[name](value) for name, value in parameters.items()}
    if is_hasty:
        options["retry_strategy"] = fs.AwsStandardS3RetryStrategy(max_attempts=1)
    connect_s = _HASTY_CONNECT_S if is_hasty else _CONNECT_S
    file_system = fs.S3FileSystem(connect_timeout=connect_s, allow_delayed_open=True, **options)
    return file_system, f"{parts.netloc}{unquote(parts.path)}"


def _limited(parts: SplitResult, parameters: tuple[tuple[str, str], ...], *, is_hasty: bool) -> str:
    """The URI with an end to the tries of a file system that has 15 minutes for them, and tells nobody."""
    if parts.scheme not in ("gs", "gcs") or _RETRIES in dict(parameters):
        return parts.geturl()
    retry_s = _HASTY_RETRY_S if is_hasty else _RETRY_S
    return parts._replace(query=urlencode((*parameters, (_RETRIES, f"{retry_s:g}")), safe="/:")).geturl()


def _switch(value: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0"):
        raise ValueError(f"expected true or false, got {value!r}")
    return value.lower() in ("true", "1")


_S3_PARAMETERS: Final[dict[str, Callable[[str], Any]]] = {
    "region": str,
    "scheme": str,
    "endpoint_override": str,
    "anonymous": _switch,
    "allow_bucket_creation": _switch,
    "force_virtual_addressing": _switch,
    "tls_ca_file_path": str,
}
