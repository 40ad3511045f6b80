"""What a rating gives: the ladder, its rows, and differences between two of them.

Invariant: an interval is None exactly when the data do not support one, and a flag or warning says why.
It must not know how the numbers were fitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.special import stdtrit

from cogeval.errors import unknown_name
from cogeval.ratings.table import FloatArray

__all__ = [
    "ELO_PER_LOG_UNIT",
    "MIN_BLOCKS",
    "Bound",
    "Difference",
    "Ladder",
    "LadderRow",
    "Method",
    "SeatEffect",
]

ELO_PER_LOG_UNIT = 400.0 / math.log(10.0)
"""Elo points in one unit of log odds."""

MIN_BLOCKS = 5
"""With fewer blocks than this no interval is printed."""

Method = Literal["jackknife", "sandwich", "none"]


@dataclass(frozen=True, slots=True)
class Bound:
    """What a one-sided record still says: with the ladder's confidence, at least or at most so strong.

    Args:
        side: "at least" for an agent that always won, "at most" for one that always lost.
        elo: the bound on the difference, in Elo; None with too few blocks to say anything.
        versus: the opponents it always beat or always lost to.
        num_blocks: the blocks in which it met them.
    """

    side: Literal["at least", "at most"]
    elo: float | None
    versus: tuple[str, ...]
    num_blocks: int


@dataclass(frozen=True, slots=True)
class LadderRow:
    """One agent of a ladder.

    Args:
        name: the agent.
        elo: the rating; 0 is the mean of the ladder, or as the anchor says.
        elo_low: lower end of the interval, None when there is no interval.
        elo_high: upper end of the interval, None when there is no interval.
        win_share: mean of (seats beaten + half the ties) / (seats - 1), 0 .. 1; None without opponents.
        score_mean: mean score over the seats that count; None when none does (all forfeited).
        num_episodes: episodes that it sat in.
        num_seats: seats that it held, over all episodes.
        num_blocks: blocks that it sat in.
        flags: what a reader must know before comparing this row with another.
        bounds: one-sided bounds where a perfect or zero record allows no interval.
    """

    name: str
    elo: float
    elo_low: float | None
    elo_high: float | None
    win_share: float | None
    score_mean: float | None
    num_episodes: int
    num_seats: int
    num_blocks: int
    flags: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()


@dataclass(frozen=True, slots=True)
class SeatEffect:
    """What a seat is worth against the mean seat, in Elo, whoever sits there.

    Args:
        seat: column index of the seat.
        elo: its advantage; the effects of a ladder sum to 0.
        elo_low: lower end of the interval, None when there is no interval.
        elo_high: upper end of the interval, None when there is no interval.
    """

    seat: int
    elo: float
    elo_low: float | None
    elo_high: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one agent is above another, in Elo.

    Args:
        elo: rating of the first minus that of the second; None when no data connect them.
        low: lower end of the interval, None when withheld.
        high: upper end of the interval, None when withheld.
        withheld: why the difference or its interval is not given; None when it is.
    """

    elo: float | None
    low: float | None
    high: float | None
    withheld: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """A rating of all agents of a table, best first.

    Args:
        rows: one per agent that played, best first, equal ones by name.
        seat_effects: one per seat whose effect the data can tell from skill; empty without the term.
        num_blocks: blocks of the table.
        num_episodes: episodes of the table.
        method: how the intervals were computed.
        confidence: nominal coverage of every interval and bound, 0 .. 1.
        anchor: the agent whose rating is fixed, None when the mean is.
        warnings: what holds for the whole ladder and a reader must know.
        covariance: float [num_rows, num_rows] of log strengths in the order of `rows`, centred on their
            mean; meaningful within a strong component only; None without intervals.
        components: per row, the set of agents that games connect, however indirectly; 0 is the largest.
        strong_components: per row, the set within which each agent took a win from each other one,
            directly or through others.
        degrees: degrees of freedom of the t intervals: blocks with at least one pair, less one.
        intransitive: share of the decided triples that form a cycle, 0 .. 1; None without any.
    """

    rows: tuple[LadderRow, ...]
    seat_effects: tuple[SeatEffect, ...]
    num_blocks: int
    num_episodes: int
    method: Method
    confidence: float
    anchor: str | None
    warnings: tuple[str, ...]
    covariance: FloatArray | None
    components: tuple[int, ...]
    strong_components: tuple[int, ...]
    degrees: int
    intransitive: float | None

    def row(self, name: str) -> LadderRow:
        """The row of an agent.

        Raises:
            InputError: no agent of that name is on the ladder.
        """
        return self.rows[self._position(name)]

    def difference(self, a: str, b: str) -> Difference:
        """How far `a` is above `b`, with its interval from their joint covariance.

        Intervals of two rows must not be compared by eye: luck that both share cancels here.

        Raises:
            InputError: no agent of that name is on the ladder.
        """
        i, j = self._position(a), self._position(b)
        if self.components[i] != self.components[j]:
            return Difference(None, None, None, f"no games connect {a!r} and {b!r}, not even through others")
        elo = self.rows[i].elo - self.rows[j].elo
        if self.strong_components[i] != self.strong_components[j]:
            return Difference(
                elo,
                None,
                None,
                f"wins between {a!r} and {b!r} run one way only: the prior alone bounds the distance",
            )
        if self.covariance is None or i == j:
            return Difference(elo, None, None, "one agent" if i == j else "the ladder has no intervals")
        few = min((self.rows[i], self.rows[j]), key=lambda row: row.num_blocks)
        if few.num_blocks < MIN_BLOCKS:
            return Difference(
                elo, None, None, f"{few.name!r} sat in {few.num_blocks} blocks; {MIN_BLOCKS} make an interval"
            )
        spread = self.covariance[i, i] + self.covariance[j, j] - 2.0 * self.covariance[i, j]
        quantile = float(stdtrit(self.degrees, 0.5 + self.confidence / 2.0))
        half = quantile * math.sqrt(max(float(spread), 0.0)) * ELO_PER_LOG_UNIT
        return Difference(elo, elo - half, elo + half, None)

    def _position(self, name: str) -> int:
        names = [row.name for row in self.rows]
        if name not in names:
            raise unknown_name("agent", name, names)
        return names.index(name)
