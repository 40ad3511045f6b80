"""Running sums over finished episodes: what a live ladder is made from, never the final one.

Invariant: sums only, so that the tallies of any number of workers add up to the same in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from cogeval.core.record import Episode


class Tally(msgspec.Struct):
    """Sums over episodes."""

    wins: NDArray[np.float64]  # [agents, agents]: pairs won by row; ties half, each 1/(seats - 1)
    share_sum: NDArray[np.float64]  # [agents]
    num_seats: NDArray[np.int64]  # [agents]
    num_episodes: NDArray[np.int64]  # [agents], in which it held at least one seat
    faults: NDArray[np.int64]  # [agents]
    num_clock_events: int = 0  # episodes in which time decided something
    cost_usd: float = 0.0

    @classmethod
    def empty(cls, num_agents: int) -> Tally:
        """No episodes yet."""
        shape = (num_agents, num_agents)
        seats, episodes, faults = np.zeros((3, num_agents), np.int64)
        return cls(np.zeros(shape), np.zeros(num_agents), seats, episodes, faults)

    @property
    def num_faults(self) -> int:
        """Faults of all agents."""
        return int(self.faults.sum())

    def add(self, other: Tally) -> None:
        """Adds another's sums to these."""
        self.wins += other.wins
        self.share_sum += other.share_sum
        self.num_seats += other.num_seats
        self.num_episodes += other.num_episodes
        self.faults += other.faults
        self.num_clock_events += other.num_clock_events
        self.cost_usd += other.cost_usd


class Counter:
    """Collects episodes and sums them up when asked: array by array, not seat by seat.

    Args:
        num_agents: of the pool.
    """

    def __init__(self, num_agents: int) -> None:
        self._num_agents = num_agents
        self._clear()

    def _clear(self) -> None:
        self._lineups: list[Sequence[int]] = []
        self._ranks: list[Sequence[int]] = []
        self._shares: list[Sequence[float]] = []
        self._blamed: list[int] = []  # agent index of every fault
        self._num_clock_events = 0
        self._cost_usd = 0.0

    def add(self, lineup: Sequence[int], episode: Episode) -> None:
        """Takes one episode.

        Args:
            lineup: agent index per seat.
            episode: the finished episode.
        """
        self._lineups.append(lineup)
        self._ranks.append(episode.ranks)
        self._shares.append(episode.shares)
        notable = [a for a in episode.attempts if a.fault is not None or a.usage is not None]
        if notable or episode.stopped:
            self._num_clock_events += episode.has_clock_events
            self._blamed += [lineup[a.seat] for a in notable if a.fault is not None]
            self._cost_usd += sum(a.usage.cost_usd for a in notable if a.usage is not None)

    def take(self) -> Tally:
        """The sums over the episodes since the last call."""
        tally = Tally.empty(self._num_agents)
        if self._lineups:
            lineups, ranks = np.array(self._lineups), np.array(self._ranks)
            self._count_seats(tally, lineups)
            self._count_pairs(tally, lineups, ranks)
        tally.faults += np.bincount(np.array(self._blamed, np.int64), minlength=self._num_agents)
        tally.num_clock_events, tally.cost_usd = self._num_clock_events, self._cost_usd
        self._clear()
        return tally

    def _count_seats(self, tally: Tally, lineups: NDArray[np.int64]) -> None:
        shares = np.array(self._shares)
        tally.share_sum += np.bincount(lineups.ravel(), shares.ravel(), self._num_agents)
        tally.num_seats += np.bincount(lineups.ravel(), minlength=self._num_agents)
        ordered = np.sort(lineups, axis=1)
        first = np.ones(ordered.shape, np.bool_)  # an agent counts once, however many seats it holds
        first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        tally.num_episodes += np.bincount(ordered[first], minlength=self._num_agents)

    def _count_pairs(self, tally: Tally, lineups: NDArray[np.int64], ranks: NDArray[np.int64]) -> None:
        num_seats = lineups.shape[1]
        for i in range(num_seats):
            for j in range(num_seats):
                won = (1.0 + np.sign(ranks[:, j] - ranks[:, i])) / 2  # i ahead of j: 1, a tie: 1/2
                won[lineups[:, i] == lineups[:, j]] = 0.0
                cell = lineups[:, i] * self._num_agents + lineups[:, j]
                sums = np.bincount(cell, won / max(1, num_seats - 1), self._num_agents**2)
                tally.wins += sums.reshape(tally.wins.shape)
