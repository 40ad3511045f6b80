"""Episodes of the toy game in which one seat is looked at."""

from __future__ import annotations

import asyncio

from toy import Bids

from cogeval.core.agent import Seated
from cogeval.core.clock import Clock
from cogeval.core.episode import play
from cogeval.core.record import Attempt, Episode
from cogeval.core.seat import Deadlines

SOON = Deadlines(decision_s=0.05, retry_s=0.05)


def run(*seats: Seated, phases: int = 1, deadlines: Deadlines = SOON, clock: Clock | None = None,
        ) -> Episode:  # fmt: skip
    return asyncio.run(play(Bids(len(seats), phases), 5, seats, deadlines=deadlines, clock=clock))


def of_seat(episode: Episode, seat: int = 0) -> list[Attempt]:
    return [a for a in episode.attempts if a.seat == seat]


def faults(episode: Episode, seat: int = 0) -> list[str | None]:
    return [a.fault for a in of_seat(episode, seat)]
