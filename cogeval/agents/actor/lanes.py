"""What a client knows of one decision and of one replica.

Invariant: a decision is in flight in one replica at most; its timer stands still until the agent has it.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Final

from cogeval.agents.actor.messages import Answer, Question, Replica
from cogeval.core.agent import Request
from cogeval.core.replies import too_late

SHARED_DEATHS: Final = 2  # of actors under a decision, after which it is asked alone
ALONE_DEATHS: Final = 2  # of actors that ran nothing else, after which it is to blame
_OVER_S: Final = 1e-6  # beyond its budget: rounding must not leave a late decision in its time
FEW: Final = 4  # suspects of one death that are asked alone at once


class Asked:
    """One decision that somebody waits for."""

    __slots__ = (
        "_held_s", "_wait", "alarm", "alone_deaths", "answer", "deaths", "id", "is_alone", "is_begun", "lane",
        "request",
    )  # fmt: skip

    def __init__(self, number: int, request: Request) -> None:
        self.id = number
        self.request = request
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.lane: Lane | None = None
        self.is_alone = False
        self.is_begun = False
        self.deaths = 0
        self.alone_deaths = 0
        self.alarm: asyncio.TimerHandle | None = None  # goes off when its time is over
        self._held_s: float | None = None  # thinking that is not charged until its replica was heard
        self._wait: AbstractContextManager[None] | None = None
        self.pause()

    def question(self) -> Question:
        """What the replica is asked."""
        request = self.request
        return Question(
            self.id,
            request.observation,
            request.decision,
            request.hint,
            request.budget_s,
            request.memory,
            request.seed,
            self.is_alone,
        )

    @property
    def is_waiting(self) -> bool:
        """True when its timer stands still."""
        return self._wait is not None

    @property
    def is_held(self) -> bool:
        """True when its time is over and nobody has been charged yet."""
        return self._held_s is not None

    def hold(self) -> None:
        """Its time is over, but whether the agent still has it is not known yet."""
        self.pause()
        timer = self.request.timer
        self._held_s = timer.think_s
        timer.forgive()

    def charge(self) -> None:
        """Its time is over, and it is its own fault."""
        budget_s = self.request.budget_s
        assert budget_s is not None
        self.request.timer.charge(max(self._held_s or 0.0, budget_s) + _OVER_S)
        self._held_s = None
        self.go()
        self.settle(Answer(self.id, fault="timeout", detail=too_late(budget_s)))

    def pause(self) -> None:
        """It waits: that is no thinking."""
        if self._wait is None:
            self._wait = self.request.timer.queued()
            self._wait.__enter__()

    def go(self) -> None:
        """The agent has it."""
        if self._wait is not None:
            self._wait.__exit__(None, None, None)
            self._wait = None

    def begin(self) -> None:
        """The replica says that the agent has it."""
        self.is_begun = True
        if self._held_s is not None:
            self.request.timer.charge(self._held_s)
            self._held_s = None
        self.go()

    def survive(self, *, counts: bool, is_suspect: bool) -> bool:
        """Its actor died; what it had thought there is no charge of its own.

        Args:
            counts: nobody knows why.
            is_suspect: one of few, which are asked alone at once.

        Returns:
            False when it is to blame.
        """
        self.request.timer.forgive()
        self.pause()
        self._held_s = None
        if counts and not self.is_alone:
            self.deaths += 1
            self.is_alone = is_suspect or self.deaths >= SHARED_DEATHS
        elif counts and self.is_begun:  # one that had not begun cannot have done it
            self.alone_deaths += 1
        self.is_begun = False
        self.lane = None
        return self.alone_deaths < ALONE_DEATHS

    def settle(self, answer: Answer) -> None:
        """It is answered."""
        if not self.answer.done():
            self.answer.set_result(answer)


class Lane:
    """One replica, and what is in flight there."""

    __slots__ = (
        "collecting", "due", "id", "in_flight", "is_killed", "is_lost", "listening", "replica", "submits",
        "withdrawn",
    )  # fmt: skip

    def __init__(self, replica_id: str, replica: Replica) -> None:
        self.id = replica_id
        self.replica = replica
        self.in_flight: dict[int, Asked] = {}
        self.submits: set[asyncio.Task[None]] = set()
        self.withdrawn: dict[int, Asked] = {}  # to be cancelled there
        self.due: list[Asked] = []  # whose time is over, to be asked about
        self.listening: asyncio.Task[None] | None = None  # asks about them
        self.collecting: asyncio.Task[None] | None = None
        self.is_lost = False
        self.is_killed = False  # at our wish: its death says nothing about what is in flight

    def silence_s(self) -> float | None:
        """How long it may be silent while a decision is in its time; None: for ever."""
        budgets = [asked.request.budget_s for asked in self.in_flight.values()]
        known = [budget_s for budget_s in budgets if budget_s is not None]
        return max(known) if len(known) == len(budgets) else None
