"""Plain counts and means per agent: what can be said without any model.

Invariant: nothing here depends on who beat whom beyond the share of each seat. It must not know of models
or intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogeval.ratings.cells import run_heads, sums
from cogeval.ratings.table import FloatArray, IntArray, Table

__all__ = ["Tallies", "tally"]


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


def _means(agents: IntArray, values: FloatArray, number: int) -> FloatArray:
    counts = np.bincount(agents, minlength=number)
    means = np.full(number, np.nan)
    np.divide(sums(agents, values, number), counts, out=means, where=counts > 0)
    return means
