"""A watcher sees an episode as it is played, and may end it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from toy import Bid, Bids

from cogeval.core.agent import Reply, Request, Scripted, Seated
from cogeval.core.episode import play
from cogeval.core.record import Attempt
from cogeval.errors import RunError


class Notes:
    def __init__(self, ends_in: int | None = None) -> None:
        self.lines: list[tuple[Any, ...]] = []
        self.attempts: list[Attempt] = []
        self.ends_in = ends_in

    def opened(self, phase: int, state: Any, decisions: Sequence[Any]) -> None:
        self.lines.append(("opened", phase, state.phase, [d.seat for d in decisions]))

    def attempted(self, attempt: Attempt) -> None:
        self.lines.append(("attempted", attempt.phase, attempt.seat, attempt.source))
        self.attempts.append(attempt)

    def resolved(self, phase: int, step: Any) -> None:
        self.lines.append(("resolved", phase, step.next.phase))
        if phase == self.ends_in:
            raise RunError("seen enough")


class Wild:
    def decide(self, request: Request) -> Reply:
        return Reply(Bid(99))


class Late:
    async def decide(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        return Reply(request.decision.default)


SEVEN = Seated("seven", Scripted("seven"), deterministic=True)
WILD = Seated("wild", lambda seat, rng: Wild(), deterministic=True)
LATE = Seated("late", lambda seat, rng: Late(), deterministic=False)


def test_a_watcher_sees_every_attempt_that_the_episode_records() -> None:
    notes = Notes()
    episode = asyncio.run(play(Bids(seats=3, phases=2), 1, [LATE, WILD, SEVEN], watcher=notes))
    assert sorted(notes.attempts, key=lambda a: (a.phase, a.seat, a.attempt)) == list(episode.attempts)
    assert {a.source for a in notes.attempts} == {"agent", "baseline"}


def test_a_watcher_is_told_in_the_order_of_things_and_changes_nothing() -> None:
    notes = Notes()
    episode = asyncio.run(play(Bids(phases=2), 1, [LATE, SEVEN], watcher=notes))
    assert [line[:2] for line in notes.lines] == [
        (what, phase) for phase in (0, 1) for what in ("opened", "attempted", "attempted", "resolved")
    ]
    assert notes.lines[1][2:] == (1, "agent")  # who is there at once is heard at once
    assert episode.digest == asyncio.run(play(Bids(phases=2), 1, [LATE, SEVEN])).digest


def test_what_a_watcher_raises_ends_the_episode() -> None:
    notes = Notes(ends_in=0)
    with pytest.raises(RunError, match="seen enough"):
        asyncio.run(play(Bids(phases=2), 1, [LATE, SEVEN], watcher=notes))
    assert notes.lines[-1] == ("resolved", 0, 1)
