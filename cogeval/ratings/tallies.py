"""Plain counts and score distributions per agent: what can be said without any model.

Invariant: nothing here depends on who beat whom beyond the share of each seat. It must not know of models
or intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cogeval.ratings.cells import run_heads, sums
from cogeval.ratings.table import FloatArray, IntArray, Table

__all__ = ["QUANTILES", "ScoreDistribution", "Tallies", "score_distributions", "tally"]

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""The points of a score distribution that reports show by default."""


@dataclass(frozen=True, slots=True, eq=False)
class Tallies:
    """Counts and means, one entry per agent of the table.

    Args:
        num_seats: int [num_agents], seats held over all episodes.
        num_episodes: int [num_agents], episodes with at least one seat.
        num_blocks: int [num_agents], blocks with at least one seat.
        win_share: float [num_agents], mean share of its seats; NaN without opponents.
        score_mean: float [num_agents], mean score of its seats that count; NaN when none does.
    """

    num_seats: IntArray
    num_episodes: IntArray
    num_blocks: IntArray
    win_share: FloatArray
    score_mean: FloatArray


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """The scores of one agent over the seats that count.

    Args:
        name: the agent.
        num_scored: seats that count; forfeits do not.
        mean: mean score; None when no seat counts.
        deviation: sample standard deviation over seats; None below two seats.
        quantiles: (probability, score) pairs, rising; empty when no seat counts.
    """

    name: str
    num_scored: int
    mean: float | None
    deviation: float | None
    quantiles: tuple[tuple[float, float], ...]


def tally(table: Table) -> Tallies:
    """Counts seats, episodes and blocks of every agent, and averages its shares and scores."""
    number = len(table.names)
    occupied = table.occupied()
    seated = table.agents[occupied]
    in_row = np.sort(table.agents, axis=1)
    newcomer = in_row >= 0
    newcomer[:, 1:] &= in_row[:, 1:] != in_row[:, :-1]
    agents = in_row[newcomer].astype(np.int64)
    rows = np.repeat(table.blocks.astype(np.int64), newcomer.sum(axis=1))
    sat = np.sort(rows * max(number, 1) + agents)
    in_blocks = sat[run_heads(sat)] % max(number, 1)
    shares = table.shares()
    compared = np.isfinite(shares)
    counted = occupied & table.seat_scored
    return Tallies(
        num_seats=np.bincount(seated, minlength=number),
        num_episodes=np.bincount(agents, minlength=number),
        num_blocks=np.bincount(in_blocks, minlength=number),
        win_share=_means(table.agents[compared], shares[compared], number),
        score_mean=_means(table.agents[counted], table.scores[counted], number),
    )


def score_distributions(
    table: Table, *, quantiles: Sequence[float] = QUANTILES
) -> tuple[ScoreDistribution, ...]:
    """The score distribution of every agent, in the order of the table's names.

    Args:
        table: the episodes.
        quantiles: probabilities, each 0 .. 1, rising.
    """
    counted = table.occupied() & table.seat_scored
    agents, scores = table.agents[counted], table.scores[counted]
    order = np.argsort(agents, kind="stable")
    ends = np.cumsum(np.bincount(agents, minlength=len(table.names)))
    parts = np.split(scores[order], ends[:-1]) if table.names else []
    return tuple(_distribution(name, part, quantiles) for name, part in zip(table.names, parts, strict=True))


def _distribution(name: str, scores: FloatArray, quantiles: Sequence[float]) -> ScoreDistribution:
    number = len(scores)
    points = np.quantile(scores, quantiles) if number else ()
    return ScoreDistribution(
        name=name,
        num_scored=number,
        mean=float(scores.mean()) if number else None,
        deviation=float(scores.std(ddof=1)) if number > 1 else None,
        quantiles=tuple((float(q), float(x)) for q, x in zip(quantiles, points, strict=bool(number))),
    )


def _means(agents: IntArray, values: FloatArray, number: int) -> FloatArray:
    counts = np.bincount(agents, minlength=number)
    means = np.full(number, np.nan)
    np.divide(sums(agents, values, number), counts, out=means, where=counts > 0)
    return means
