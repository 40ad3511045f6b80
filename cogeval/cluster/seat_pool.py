"""The books of one agent's seat actors: who decides, who waits as a spare, whom to start next.

Invariant: an id is never used twice, and what was lost once never comes back. A state machine without
clock or calls: the actor around it starts and kills what this says. Imports no ray.
"""

from __future__ import annotations

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
