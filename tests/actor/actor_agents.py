"""Agents whose one object serves every seat, and some that do so badly."""

import time

from cogeval.core.agent import Reply, Usage
from cogeval.core.rng import stream


def drawn(request):
    """A legal action from the request's seed; remembers how often it was asked."""
    count = int.from_bytes(request.memory, "big") + 1
    action = request.decision.legal.sample(stream(request.seed, count))
    return Reply(action, usage=Usage(3, 4), model="drawer-1", memory=count.to_bytes(4, "big"))


class Drawer:
    """A plain function."""

    def __init__(self, game, bias=0):
        assert game.seats
        self.bias = bias

    def decide(self, request):
        return drawn(request)


class Eventual(Drawer):
    """A coroutine."""

    async def decide(self, request):
        return drawn(request)


class Many(Drawer):
    """Batches."""

    def decide_many(self, requests):
        return [drawn(request) for request in requests]


class ManyEventual(Drawer):
    """Batches, in a coroutine."""

    async def decide_many(self, requests):
        return [drawn(request) for request in requests]


class Stumbling(Drawer):
    """Fails at what its seat's memory and seed say."""

    def decide(self, request):
        reply = drawn(request)
        kind = request.seed % 5
        if kind == 0:
            raise ValueError("a fifth")
        if kind == 1:
            return Reply(object(), memory=reply.memory)
        if kind == 2:
            return Reply(payload={} if request.hint is None else {"pass": True}, text="so")
        if kind == 3:
            return "nonsense"
        return reply


class StumblingMany(Stumbling):
    """The same, in batches; an error in one fails the call."""

    def decide_many(self, requests):
        return [Stumbling.decide(self, request) for request in requests]


class Stuck(Drawer):
    """Hangs in its thread at every seventh decision."""

    def decide(self, request):
        if request.seed % 7 == 0 and request.hint is None:
            time.sleep(3600)
        return drawn(request)


class Unborn(Drawer):
    def __init__(self):
        raise OSError("no weights")


class PerSeat:
    def __init__(self, seat):
        self.seat = seat

    def decide(self, request):
        return drawn(request)


class PerStream(PerSeat):
    def __init__(self, rng):
        self.rng = rng
