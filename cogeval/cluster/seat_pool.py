"""The books of seat actors: who decides, who waits as a spare, whom to start next, who was lost and why.

Invariant: an id is never used twice, and what was lost once never comes back. State machines without
clock or calls: the actor around them starts and kills what they say. Imports no ray.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

HowLost: TypeAlias = Literal["died", "hung", "node lost"]
"""Its process ended; it held a decision past its time and was ended; the node that it was on is gone."""

_START_ATTEMPTS = 3  # seat actors that may die before they are ready, one after the other


class Roster:
    """The seat actors of one agent.

    Args:
        agent: its name in the pool.
        replicas: that decide at once.
        spares: that stand by, made already.
    """

    def __init__(self, agent: str, replicas: int, spares: int) -> None:
        self.agent = agent
        self.version = 0  # grows whenever `active` changes
        self.trouble: str | None = None  # why no more of them are started
        self._replicas = replicas
        self._spares = spares
        self._num_made = 0
        self._num_stillborn = 0  # in a row
        self._starting: dict[str, None] = {}  # ids, the oldest first
        self._active: dict[str, None] = {}
        self._spare: dict[str, None] = {}

    @property
    def active(self) -> tuple[str, ...]:
        """Ids of those that decide."""
        return tuple(self._active)

    @property
    def spare(self) -> tuple[str, ...]:
        """Ids of those that stand by."""
        return tuple(self._spare)

    def begin(self) -> tuple[str, ...]:
        """Ids to start now, so that replicas and spares are complete again."""
        if self.trouble is not None:
            return ()
        num = self._replicas + self._spares - len(self._starting) - len(self._active) - len(self._spare)
        fresh = tuple(f"{self.agent}-{self._num_made + i}" for i in range(num))
        self._num_made += num
        self._starting.update(dict.fromkeys(fresh))
        return fresh

    def ready(self, replica: str) -> None:
        """It is made and answers: it decides when one is missing, else it stands by."""
        if replica not in self._starting:
            return
        del self._starting[replica]
        self._num_stillborn = 0
        self._spare[replica] = None
        self._promote()

    def lost(self, replica: str, why: str) -> bool:
        """It is dead, or to be killed: the oldest spare takes its place.

        Args:
            replica: its id.
            why: for people, should it be one of several that die before they are ready.

        Returns:
            False when that is known already.
        """
        if replica in self._starting:
            del self._starting[replica]
            self._num_stillborn += 1
            if self._num_stillborn >= _START_ATTEMPTS:
                self.trouble = why
        elif replica in self._active:
            del self._active[replica]
            self.version += 1
            self._promote()
        elif replica in self._spare:
            del self._spare[replica]
        else:
            return False
        return True

    def fail(self, why: str) -> None:
        """None can be made at all: the next would fail as this one did."""
        self.trouble = self.trouble or why

    def _promote(self) -> None:
        while self._spare and len(self._active) < self._replicas:
            oldest = next(iter(self._spare))
            del self._spare[oldest]
            self._active[oldest] = None
            self.version += 1


class Loss(msgspec.Struct, frozen=True):
    """One seat actor that was lost."""

    agent: str
    replica: str  # its id
    why: HowLost
    detail: str = ""  # what is known beyond that, for people


class Losses:
    """The seat actors that were lost, each told once: when it is known why, at the latest at the end."""

    def __init__(self) -> None:
        self._told: list[Loss] = []
        self._gone: dict[str, str] = {}  # id -> agent, of those that are dead and nobody has said of what

    def tell(self, loss: Loss) -> None:
        """One was lost, and it is known why."""
        self._told.append(loss)

    def suspect(self, agent: str, replica: str) -> None:
        """One does not answer any more; why is heard later."""
        self._gone[replica] = agent

    def explain(self, replica: str, why: HowLost, detail: str) -> bool:
        """Why one is gone; True when that is news: it was suspected."""
        agent = self._gone.pop(replica, None)
        if agent is not None:
            self.tell(Loss(agent, replica, why, detail))
        return agent is not None

    def end(self) -> None:
        """Nothing more will be heard of any."""
        for replica in tuple(self._gone):
            self.explain(replica, "died", "")

    def take(self) -> list[Loss]:
        """Those told since the last call."""
        told, self._told = self._told, []
        return told
