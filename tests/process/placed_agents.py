"""Python agents that are placed inline and in processes."""

import os
from pathlib import Path

from cogeval.core.agent import Reply, Usage


class Drawer:
    """Draws from its stream; deals in everything that a constructor may ask for."""

    def __init__(self, seat, rng, game, log=None):
        self.rng, self.seat, self.log = rng, seat, log
        assert game.seats > seat
        self.note(f"made {os.getpid()}")

    def note(self, line):
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(line + "\n")

    def decide(self, request):
        print("thinking aloud")  # noqa: T201 - must not disturb the protocol
        assert request.decision.default in request.decision.legal
        return Reply(request.decision.legal.sample(self.rng), usage=Usage(3, 4), model="drawer-1")

    async def close(self, outcome):
        self.note(f"closed {outcome.score if outcome else None}")


class Eventual(Drawer):
    """The same, asynchronous."""

    async def decide(self, request):
        return super().decide(request)


class Stumbling(Drawer):
    """Raises at every third decision, answers nonsense at every fifth, and goes on."""

    num = 0

    def decide(self, request):
        self.num += 1
        if self.num % 3 == 0:
            raise ValueError("third")
        if self.num % 5 == 0:
            return "nonsense"
        return super().decide(request)


class Replying(Drawer):
    """Answers as a model would, in a form that is not legal at first."""

    def decide(self, request):
        return Reply(payload={} if request.hint is None else {"pass": True})


class Unborn(Drawer):
    """Cannot be made."""

    def __init__(self, seat, rng, game):
        raise OSError("no weights")


class Hanging(Drawer):
    """Holds its interpreter for ever."""

    def decide(self, request):
        while True:
            pass
