"""Agents for seat actors: one object serves many seats, and some decisions are its last.

Which decisions those are is a draw of `request.seed`, so that they are the same wherever they are made.
"""

import asyncio
import ctypes
import os
import re
import time
from pathlib import Path

from cogeval.core.agent import Reply
from cogeval.core.rng import stream


def drawn(request):
    """A legal action that depends on the request alone."""
    return Reply(request.decision.legal.sample(stream(request.seed, "drawn")))


class Draws:
    """Plays at random, after a while."""

    def __init__(self, seconds=0.0):
        self.seconds = seconds

    async def decide(self, request):
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return drawn(request)


class Counts:
    """Plays at random with the number of its decision so far, which it keeps in its memory."""

    def decide_many(self, requests):
        replies = []
        for request in requests:
            count = int.from_bytes(request.memory, "big")
            action = request.decision.legal.sample(stream(request.seed, "drawn", count))
            replies.append(Reply(action, memory=(count + 1).to_bytes(4, "big")))
        return replies

    def decide(self, request):
        (reply,) = self.decide_many([request])
        return reply


class SometimesWorst:
    """Plays at random, and in one decision of many does its worst, after a line in a file of its process's.

    Args:
        log: a directory.
        one_in: how rare the worst is.
        worst: what it is: sleep, loop, regex, ctypes or exit.
    """

    def __init__(self, log, one_in, worst):
        self.log = Path(log)
        self.one_in = one_in
        self.worst = {
            "sleep": lambda: time.sleep(1000),
            "loop": loop,
            "regex": lambda: re.match(r"(a|aa)+$", "a" * 60 + "b"),  # holds the GIL
            "ctypes": lambda: ctypes.PyDLL(None).sleep(1000),  # this one too
            "exit": lambda: os._exit(9),
        }[worst]

    def decide(self, request):
        if request.seed % self.one_in == 0:
            with (self.log / str(os.getpid())).open("a") as file:
                file.write(f"{request.seed}\n")
            self.worst()
        return drawn(request)


class SometimesBlocks(SometimesWorst):
    """The same in coroutines: its worst keeps the event loop."""

    async def decide(self, request):
        await asyncio.sleep(0.05)
        return super().decide(request)


def loop():
    while True:
        pass


def worst_seeds(log):
    """The seeds of the decisions that did their worst, once for each time."""
    return sorted(int(line) for file in Path(log).iterdir() for line in file.read_text().split())


class TakesLongToMake(Draws):
    """As one that loads weights before it can decide."""

    def __init__(self, seconds=0.0):
        super().__init__()
        time.sleep(seconds)
