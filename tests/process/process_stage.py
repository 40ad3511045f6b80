"""Episodes with a program in one seat, and who is left when they are over."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path
from typing import Any

import psutil

from cogeval.agents import build_agent
from cogeval.agents.process.seat import ProcessAgent
from cogeval.core.agent import Resources, Seated, bound
from cogeval.core.episode import Fallback, play
from cogeval.core.record import Attempt, Episode
from cogeval.core.seat import Deadlines
from cogeval.games import make_game

BAD = Path(__file__).with_name("bad_program.py")
_numbers = itertools.count()


def alive(mark: str) -> list[psutil.Process]:
    """Processes with the mark among their arguments, those that only wait to be reaped excepted."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        ended = process.info["status"] == psutil.STATUS_ZOMBIE
        if process.pid != os.getpid() and not ended and mark in (process.info["cmdline"] or ()):
            found.append(process)
    return found


class Stage:
    """Plays programs against the random agent."""

    def __init__(self) -> None:
        self.game = make_game("cogz")
        self.mark = f"cogeval-test-{os.getpid()}-{next(_numbers)}"

    def seated(self, **settings: Any) -> Seated:
        return bound(build_agent("tried", self.game, settings).seated, Resources())

    def bad(self, manner: str, **settings: Any) -> Seated:
        command = [sys.executable, "-I", "-S", str(BAD), manner, self.mark]
        return self.seated(**{"kind": "process", "command": command, "files": [str(BAD)], **settings})

    def play(
        self,
        tried: Seated,
        *,
        on_fault: str = "forfeit",
        decision_s: float = 5.0,
        seed: int = 3,
        cancelled_after_s: float | None = None,
    ) -> Episode:
        chance = build_agent("chance", self.game, {"kind": "random"}).seated
        deadlines = Deadlines(decision_s=decision_s, retry_s=decision_s)
        playing = play(self.game, seed, [tried, chance], fallback=Fallback(on_fault), deadlines=deadlines)
        return asyncio.run(asyncio.wait_for(playing, cancelled_after_s))

    def put_away(self, tried: Seated) -> None:
        """Ends the processes that are kept for another episode."""

        async def end() -> None:
            assert isinstance(tried.agent, ProcessAgent)
            for child in tried.agent.idle or ():
                await child.ended(0.0)

        asyncio.run(end())


def faults(episode: Episode, seat: int = 0) -> list[Attempt]:
    return [attempt for attempt in episode.attempts if attempt.seat == seat and attempt.fault]
