"""What an object store's errors mean, in words that hold no credential.

Invariant: a value of a variable that holds a credential is in no message made here.
"""

from __future__ import annotations

import os
import re

from cogeval.errors import InputError, RunError
from cogeval.store.addresses import WHERE_KEYS_GO

_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_EXPIRED = re.compile(r"(?i)expired_?token|token has expired|token.{0,20}is expired")
_DENIED = re.compile(
    r"(?i)invalid_?access_?key_?id|invalid_?token|invalid_?client_?token|signature_?does_?not_?match|"
    r"access_?denied|unrecognized_?client|unauthorized|request_?time_?too_?skewed|not_?authorized|"
    r"HTTP status 40[13]|status: 40[13]|invalid_grant|"
    r"HTTP status 400.*No response body"  # what a HEAD has to say of an expired token
)
_NO_BUCKET = re.compile(r"(?i)no_?such_?bucket|bucket '[^']*' (not found|does not exist)")
_MOST_CHARS = 300


class StoreUnreachable(RunError):  # noqa: N818 - says what is, as the messages do
    """The object store did not answer, or failed, for as long as we tried."""


class StoreDenied(RunError):  # noqa: N818 - says what is, as the messages do
    """The object store refused the credentials; trying again has no use."""


def said(error: Exception) -> str:
    """What an error says, in one line without credentials."""
    text = " ".join(str(error).split())
    for name in _CREDENTIALS:
        value = os.environ.get(name)
        if value:
            text = text.replace(value, f"({name})")
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 4] + " ..."


def unreachable(
    what: str, where: str, error: Exception, patience_s: float, endpoint: str | None
) -> StoreUnreachable:
    """The error to raise when trying had no success for long enough.

    Args:
        what: that was tried.
        where: on what.
        error: as the file system raised it at last.
        patience_s: for how long, seconds.
        endpoint: what was asked, where nobody was writing: nothing is left to be sent; None: somebody was.
    """
    if endpoint is not None:
        return StoreUnreachable(
            f"no answer from {endpoint} for {patience_s:g} s, to {what} {where}: {said(error)}; check that "
            "endpoint_override and region in run.root are right, that the network leads there from here, and "
            f"that there are credentials ({WHERE_KEYS_GO})"
        )
    return StoreUnreachable(
        f"could not {what} {where} for {patience_s:g} s: {said(error)}; what is committed is intact. When "
        "the store answers again, go on with `cogeval resume` on this host: what was finished and not yet "
        "sent lies on its disk"
    )


def refusal(what: str, where: str, error: Exception, *, reads_only: bool = False) -> RunError | None:
    """The error to raise when trying again has no use; None when it has.

    Args:
        what: that was tried.
        where: on what.
        error: as the file system raised it.
        reads_only: whether nobody was writing: then there is nothing to go on with.
    """
    text = str(error)
    if _NO_BUCKET.search(text):
        return InputError(
            f"expected a bucket that exists, to {what} {where}: {said(error)}; make it, or give another "
            "run.root"
        )
    kept = "what is committed is intact, and what was finished and not yet sent lies on this host's disk"
    keys = f"{WHERE_KEYS_GO[:1].upper()}{WHERE_KEYS_GO[1:]}"
    if _EXPIRED.search(text):
        found = f"the credentials have expired: the store would not {what} {where} ({said(error)})"
        if reads_only:
            return StoreDenied(f"{found}. Renew them, and ask again: {WHERE_KEYS_GO}")
        return StoreDenied(f"{found}; {kept}. Renew them, then go on with `cogeval resume` on this host")
    if _DENIED.search(text):
        found = (
            f"the store would not {what} {where} with these credentials, or they have expired ({said(error)})"
        )
        if reads_only:
            return StoreDenied(f"{found}. {keys}")
        return StoreDenied(f"{found}; {kept}. {keys}; then go on with `cogeval resume` on this host")
    return None
