"""Agents that misbehave, for the tests of the cluster; imported by workers through agent_paths."""

import asyncio
import os
import time
from pathlib import Path

from cogeval.core.agent import Reply


class Passes:
    """Takes the do-nothing action at once."""

    def decide(self, request):
        return Reply(request.decision.default)


class Raises:
    def decide(self, request):
        raise RuntimeError("no idea")


class Hangs:
    async def decide(self, request):
        await asyncio.Event().wait()


class Waits:
    """Takes the do-nothing action after a while."""

    def __init__(self, seconds):
        self.seconds = seconds

    async def decide(self, request):
        await asyncio.sleep(self.seconds)
        return Reply(request.decision.default)


class KillsItsProcess:
    """Ends the whole process when its stream draws a low number: on a few seeds, every time."""

    def __init__(self, rng, one_in):
        self.dies = rng.below(one_in) == 0

    def decide(self, request):
        if self.dies:
            os._exit(9)
        return Reply(request.decision.default)


class KillsItsProcessOnce:
    """Ends the process the first time that anybody gets here; the file remembers."""

    def __init__(self, mark):
        self.mark = Path(mark)

    def decide(self, request):
        try:
            self.mark.touch(exist_ok=False)
        except FileExistsError:
            return Reply(request.decision.default)
        os._exit(9)


class LeaksItsThread:
    """A plain function that does not come back in time."""

    def __init__(self, seconds):
        self.seconds = seconds

    def decide(self, request):
        time.sleep(self.seconds)
        return Reply(request.decision.default)


class FillsTheDisk:
    """After a while, no file of its process may grow any more: what a full disk looks like."""

    def __init__(self, mark, rng):
        if Path(mark).exists():
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))

    def decide(self, request):
        return Reply(request.decision.default)


class Blocks:
    """Says that it awaits and never does, on a few seeds: its worker can do nothing else."""

    def __init__(self, rng, one_in):
        self.blocks = rng.below(one_in) == 0

    async def decide(self, request):
        if self.blocks:
            time.sleep(1000)
        return Reply(request.decision.default)
