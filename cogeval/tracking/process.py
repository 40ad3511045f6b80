"""The tracker process: takes a message, carries it out, answers, until the pipe closes.

Invariant: it answers every message, with `Failed` when anything at all went wrong, and ends when the
driver does. One thread, nothing else: MLflow's stores are happiest so.
"""

from __future__ import annotations

import os
import sys
import textwrap
from contextlib import suppress
from multiprocessing.connection import Connection

from cogeval.tracking.messages import Begin, Failed, Logged, Update
from cogeval.tracking.places import without_password
from cogeval.tracking.store import RunLog

_REASON_CHARS = 300


def serve(pipe: Connection) -> None:
    """Answers messages until the other end closes.

    Args:
        pipe: a `Begin` comes first, then `Update`s; each but the first gets one answer.
    """
    begin: Begin = pipe.recv()
    log: RunLog | None = None
    while True:
        update: Update = pipe.recv()
        try:
            if log is None:  # also when the store was down the last time
                log = RunLog(begin.settings, begin.run)
            tracked = (
                log.finish(update.summary, update.ended_ms) if update.final else log.update(update.summary)
            )
        except Exception as error:  # noqa: BLE001 - whatever a store does to us, the run goes on
            pipe.send(Failed(_reason(error)))
        else:
            pipe.send(Logged(tracked))


def _reason(error: Exception) -> str:
    """The error in one line, cut short between two words, without passwords."""
    text = without_password(str(error).strip() or type(error).__name__)
    return textwrap.shorten(text, _REASON_CHARS, placeholder=" ...")


def main() -> None:
    """Serves the pipe whose file descriptor is the first argument."""
    with suppress(OSError):
        os.nice(10)  # tracking waits for playing, not the other way round
    with Connection(int(sys.argv[1])) as pipe, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        serve(pipe)


if __name__ == "__main__":
    main()
