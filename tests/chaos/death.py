"""Ends its own process with SIGKILL at the n-th touch of a file in a run's directory.

Python's audit events tell of every file that is opened for writing, renamed, linked, cut or removed,
whatever call does it: the product needs no hook for this. As a program:
``death.py N DIRECTORY ARGUMENTS...`` is ``cogeval ARGUMENTS...`` that dies so.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_EVENTS = {"os.rename", "os.link", "os.remove", "os.truncate"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def die_at(touch: int, directory: str) -> None:
    """Arms this process for good.

    Args:
        touch: 1 is the next touch; the process dies just before it.
        directory: touches of files below it count.
    """
    left = touch

    def listen(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        is_write = event in _EVENTS or (event == "open" and bool((args[2] or 0) & _WRITING))
        if is_write and not isinstance(args[0], int) and directory in os.fsdecode(args[0]):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(listen)


if __name__ == "__main__":
    from cogeval.cli import main

    die_at(int(sys.argv[1]), sys.argv[2])
    sys.exit(main(sys.argv[3:]))
