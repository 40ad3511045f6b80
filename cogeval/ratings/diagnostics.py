"""What the graph of wins allows to be said at all: components, one-sided records, ties, cycles.

Invariant: it only reads win counts; nothing here moves a rating. It must not know of names or intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from cogeval.ratings.cells import BlockCells
from cogeval.ratings.table import FloatArray, IntArray

__all__ = ["Connectivity", "all_level", "connectivity", "intransitive_share", "one_sided_opponents"]


@dataclass(frozen=True, slots=True, eq=False)
class Connectivity:
    """The components of a graph of wins, numbered from the largest on.

    Args:
        weak: int [num_agents], the set that games connect, however indirectly.
        strong: int [num_agents], the set within which each agent took a win (or half of one) from each
            other one, directly or through others. Within it, and only there, ratings exist without a prior.
    """

    weak: IntArray
    strong: IntArray

    @property
    def num_weak(self) -> int:
        """How many sets of agents never met each other."""
        return int(self.weak.max(initial=-1)) + 1

    @property
    def num_strong(self) -> int:
        """How many strong components; one when maximum likelihood ratings exist."""
        return int(self.strong.max(initial=-1)) + 1


def connectivity(wins: FloatArray) -> Connectivity:
    """Finds the weak and strong components.

    Args:
        wins: float [num_agents, num_agents], wins of each row over each column, ties half each way.
    """
    graph = csr_array(wins > 0.0)
    return Connectivity(_components(graph, "weak"), _components(graph, "strong"))


def all_level(blocks: BlockCells) -> bool:
    """Whether every pair that met is level in every block (all ties, say): one rating fits all exactly."""
    return len(blocks.games) > 0 and np.allclose(2.0 * blocks.wins, blocks.games, rtol=1e-12, atol=0.0)


def one_sided_opponents(wins: FloatArray, agent: int) -> tuple[IntArray, IntArray]:
    """The opponents that an agent always beat, and those it always lost to: two int arrays."""
    won, lost = wins[agent], wins[:, agent]
    return np.flatnonzero((won > 0.0) & (lost == 0.0)), np.flatnonzero((won == 0.0) & (lost > 0.0))


def intransitive_share(wins: FloatArray) -> float | None:
    """The share of triples that form a cycle (i mostly beats j, j k, k i) among the decided ones.

    Args:
        wins: float [num_agents, num_agents], wins of each row over each column, ties half each way.

    Returns:
        0 .. 1 (a random tournament has 1/4); None when no three agents all met with a majority each.
    """
    beats = (wins > wins.T).astype(np.float64)
    decided = beats + beats.T
    triples = np.einsum("ij,ji->", decided @ decided, decided) / 6.0
    if triples == 0.0:
        return None
    return float(np.einsum("ij,ji->", beats @ beats, beats) / 3.0 / triples)


def _components(graph: csr_array, connection: str) -> IntArray:
    number, labels = connected_components(graph, directed=True, connection=connection)
    sizes = np.bincount(labels, minlength=number)
    first = np.array([int((labels == label).argmax()) for label in range(number)], dtype=np.int64)
    order = np.lexsort((first, -sizes))
    place = np.empty(number, dtype=np.int64)
    place[order] = np.arange(number)
    return np.asarray(place[labels])
