"""Whether the Ray that a run plays on is still there: its head, and the Ray of this machine.

Invariant: looks from outside, by connecting to sockets, and never through Ray. Ray would wait a minute
for a head that is gone and then end the process without a word; when the Ray of this machine is gone, it
ends the process at the next touch.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType

_LOOK_S = 0.25  # between two looks
_ANSWER_S = 1.0  # longest wait for a connection
_PATIENCE_S = 8.0  # without an answer before a head counts as lost: one that is restarted is back sooner
_LOCAL_PATIENCE_S = 0.3  # the same for the Ray of this machine, whose socket goes with its process


class Lifeline:
    """Watches from a thread while it is entered.

    Args:
        head: ``HOST:PORT`` of the cluster's head.
        local: path of the socket of the Ray on this machine; None: there is none to watch.
        patience_s: without an answer before the head counts as lost.
    """

    def __init__(self, head: str, local: str | None, *, patience_s: float = _PATIENCE_S) -> None:
        self._head = head
        self._local = local
        self._patience_s = patience_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lifeline", daemon=True)
        self.is_local_lost = False
        self.is_head_lost = False

    def __enter__(self) -> Lifeline:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def is_cut(self) -> bool:
        """True when nothing that plays can be reached any more, or will be soon."""
        return self.is_local_lost or self.is_head_lost

    @property
    def trouble(self) -> str | None:
        """What is lost, for people; None while all is well."""
        if self.is_local_lost:
            return (
                "Ray on this machine has ended (`ray stop`, a kill, no memory), and every worker with it: "
                "what was finished is kept"
            )
        if self.is_head_lost:
            return (
                f"the head of the Ray cluster at {self._head} does not answer any more, and without it no "
                "worker can be reached for long: what was finished is kept, start the cluster again"
            )
        return None

    def look(self) -> bool:
        """Looks once, now; True when both answer."""
        return answers_at(self._head) and (self._local is None or _answers(self._local))

    def _watch(self) -> None:
        head_at = local_at = time.monotonic()  # of the last answers
        while not self._ended.wait(_LOOK_S):
            began = time.monotonic()
            if self._local is None or _answers(self._local):
                local_at = began
            elif began - local_at > _LOCAL_PATIENCE_S:
                self.is_local_lost = True
            if answers_at(self._head):
                head_at = began
            elif began - head_at > self._patience_s:
                self.is_head_lost = True


def answers_at(address: str) -> bool:
    """True when something listens at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except (OSError, ValueError):
        return False
    return True


def _answers(path: str) -> bool:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as probe:
        probe.settimeout(_ANSWER_S)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True
