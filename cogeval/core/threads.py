"""A plain function called beside the event loop, in a thread of its own.

Invariant: a call that never ends keeps neither the loop nor the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

A = TypeVar("A")
F = TypeVar("F")


async def in_thread(
    call: Callable[[A], object], argument: A, failed: Callable[[BaseException], F]
) -> tuple[object, F | None]:
    """Calls a plain function in a thread of its own.

    A pool would do for good agents, but one hanging agent after another would fill it, and then others
    wait in their pending decisions. A thread that is given up is asked to end, which one that computes
    does and one that sleeps does later; a daemon does not keep the process.

    Args:
        call: the function.
        argument: of it.
        failed: says in the thread what an error of it means.

    Returns:
        What it returned, or what its error means.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[tuple[object, F | None]] = loop.create_future()

    def deliver(outcome: tuple[object, F | None]) -> None:
        if not answer.done():
            answer.set_result(outcome)

    def run() -> None:
        outcome: tuple[object, F | None]
        try:
            outcome = call(argument), None
        except BaseException as error:  # noqa: BLE001 - an agent's failure costs its own seat only
            outcome = None, failed(error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, outcome)

    thread = threading.Thread(target=run, name="cogeval-seat", daemon=True)
    thread.start()
    try:
        return await answer
    except asyncio.CancelledError:
        if thread.ident is not None:
            ending = ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ending)
        raise
