"""The agents of the chaos runs; imported by workers through agent_paths."""

import asyncio
import contextlib
import importlib.util
from pathlib import Path

from cogeval.core.agent import Reply
from cogeval.core.rng import stream


class Ponders:
    """Takes a legal action by its own stream after a while.

    Args:
        rng: the seat's stream.
        seconds: that a decision takes.
        doom: a file that, when it is there, holds "touch directory": who takes it away dies at that touch.
    """

    def __init__(self, rng, seconds, doom):
        self.rng = rng
        self.seconds = seconds
        accept_doom(Path(doom))

    async def decide(self, request):
        await asyncio.sleep(self.seconds)
        return Reply(request.decision.legal.sample(self.rng))


class Leans:
    """Takes a legal action by the draw that comes with each request: no seat of its own is kept."""

    def decide(self, request):
        return Reply(request.decision.legal.sample(stream(request.seed, "leans")))


def accept_doom(doom):
    """Lets one process arm itself; the rename decides which."""
    if not doom.exists():
        return
    mine = doom.with_suffix(".taken")
    with contextlib.suppress(FileNotFoundError):
        doom.rename(mine)
        touch, directory = mine.read_text().split(maxsplit=1)
        spec = importlib.util.spec_from_file_location("death", Path(__file__).parents[1] / "death.py")
        death = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(death)
        death.die_at(int(touch), directory)
