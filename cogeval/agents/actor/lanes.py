"""What a client knows of one decision and of one replica.

Invariant: a decision is in flight in one replica at most; its timer stands still until the agent has it.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Final

from cogeval.agents.actor.messages import Answer, Question, Replica
from cogeval.core.agent import Request

SHARED_DEATHS: Final = 2  # of actors under a decision, after which it is asked alone
ALONE_DEATHS: Final = 2  # of actors that ran nothing else, after which it is to blame
FEW: Final = 4  # suspects of one death that are asked alone at once


class Asked:
    """One decision that somebody waits for."""

    __slots__ = ("_wait", "alone_deaths", "answer", "deaths", "id", "is_alone", "is_begun", "lane", "request")

    def __init__(self, number: int, request: Request) -> None:
        self.id = number
        self.request = request
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.lane: Lane | None = None
        self.is_alone = False
        self.is_begun = False
        self.deaths = 0
        self.alone_deaths = 0
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
        "collecting", "id", "in_flight", "is_killed", "is_lost", "replica", "submits", "withdrawn",
    )  # fmt: skip

    def __init__(self, replica_id: str, replica: Replica) -> None:
        self.id = replica_id
        self.replica = replica
        self.in_flight: dict[int, Asked] = {}
        self.submits: set[asyncio.Task[None]] = set()
        self.withdrawn: dict[int, Asked] = {}  # to be cancelled there
        self.collecting: asyncio.Task[None] | None = None
        self.is_lost = False
        self.is_killed = False  # at our wish: its death says nothing about what is in flight

    def silence_s(self) -> float | None:
        """How long it may be silent while a decision is in its time; None: for ever."""
        budgets = [asked.request.budget_s for asked in self.in_flight.values()]
        known = [budget_s for budget_s in budgets if budget_s is not None]
        return max(known) if len(known) == len(budgets) else None
