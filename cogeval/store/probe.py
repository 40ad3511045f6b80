"""Finds out whether every node of a cluster reads and writes the same run directory.

Invariant: what is proved is what the store needs: a node sees what the driver wrote, and the driver sees what
the node wrote. Must not know how a node is asked.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from cogeval.errors import InputError, RunError, few
from cogeval.store.places import Place, PlaceLike, place_at

Ask = Callable[[str, str], Iterable[tuple[str, str | None]]]
"""Takes the arguments of `answer`, calls it on each node, and gives each node's name with its answer."""

_PREFIX: Final = ".probe-"  # of the names of tokens, and of the answers to them
_MOST_NAMED = 5


def probe(run: PlaceLike, ask: Ask) -> None:
    """Refuses a run directory that not every node shares. An object store needs no probe.

    Args:
        run: the run's place.
        ask: calls `answer` on each node.

    Raises:
        InputError: some node does not see it, or what it writes is not seen here; the message names them.
    """
    place = place_at(run)
    with _token(place) as name:
        answers = ask(place.resolved().uri, name)
        apart = sorted(node for node, answered in answers if not is_proved(place, answered))
    if apart:
        raise InputError(
            f"expected run.root to be a directory that every node shares, but {place.where()} is another "
            f"one, or cannot be written, on {few(apart, _MOST_NAMED)}; give a shared directory or an object "
            "store with run.root=DIR_OR_URI"
        )


@contextmanager
def lasting_token(run: PlaceLike) -> Iterator[str | None]:
    """Leaves a token for whoever starts while a run is played; None: an object store needs none.

    Args:
        run: the run's place, whose lock is held: tokens of drivers that were killed are removed.

    Raises:
        OSError: the directory cannot be written.
    """
    place = place_at(run)
    if place.path is None:
        yield None
        return
    _remove(place, _PREFIX)
    with _token(place) as name:
        yield name


def is_proved(run: PlaceLike, answered: str | None) -> bool:
    """True when what `answer` gave is here; it is removed."""
    place = place_at(run)
    if answered is None or place.size(answered) is None:
        return False
    _remove(place, answered)
    return True


@contextmanager
def _token(place: Place) -> Iterator[str]:
    token = secrets.token_hex(8)
    name = f"{_PREFIX}{token}"
    try:
        place.publish(name, token.encode(), replace=False)
        yield name
    finally:
        _remove(place, name)


def _remove(place: Place, prefix: str) -> None:
    for left in place.names(f"{prefix}*"):
        with contextlib.suppress(OSError):
            place.remove(left)


def answer(uri: str, name: str) -> str | None:
    """What a node says to the probe.

    Args:
        uri: of the run's place.
        name: of the token.

    Returns:
        The name of what it has written; None when it does not see the token, or cannot write.
    """
    place = place_at(uri)
    reply = f"{name}-{secrets.token_hex(4)}"
    try:
        token = place.read(name)
        if name != f"{_PREFIX}{token.decode()}":
            return None
        place.publish(reply, token, replace=False)
    except (OSError, UnicodeDecodeError, RunError):
        return None
    return reply
