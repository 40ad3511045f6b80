"""Tables for the tests of ratings: written out by hand, or simulated with planted strengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from cogeval.ratings import Table

MakeTable = Callable[..., Table]


def make_table(
    names: str | Sequence[str],
    lineups: Sequence[Sequence[int]],
    scores: Sequence[Sequence[float]],
    blocks: Sequence[int],
) -> Table:
    """A table whose ranks follow the scores (higher is better)."""
    points = np.asarray(scores, dtype=float)
    agents = np.asarray(lineups)
    seated = agents >= 0
    better = (points[:, None, :] > points[:, :, None]) & seated[:, None, :]
    return Table(agents, better.sum(axis=2), points, np.asarray(blocks), seated, tuple(names))


def make_planted(
    rng: np.random.Generator,
    lineups: np.ndarray,
    blocks: np.ndarray,
    strength: np.ndarray,
    *,
    advantage: np.ndarray | None = None,
    luck: float = 0.0,
) -> Table:
    """Episodes whose pair odds are exactly Bradley-Terry (Gumbel form), plus luck of block and agent."""
    num_blocks, num_seats = int(blocks.max()) + 1, lineups.shape[1]
    of_block = rng.normal(0.0, luck, (num_blocks, len(strength)))
    form = strength[lineups] + of_block[blocks[:, None], lineups] + rng.gumbel(size=lineups.shape)
    form += np.zeros(num_seats) if advantage is None else advantage
    return make_table([f"a{i}" for i in range(len(strength))], lineups, form, blocks)


@pytest.fixture(scope="session")
def table_of() -> MakeTable:
    return make_table


@pytest.fixture(scope="session")
def planted() -> MakeTable:
    return make_planted


@pytest.fixture(scope="session")
def duels() -> MakeTable:
    """Two-seat episodes from (winner, loser) letters, "=" for a tie; each in its own block by default.

    The winner sits first in every other episode, unless it is to sit first in all of them.
    """

    def build(
        games: Sequence[str],
        blocks: Sequence[int] | None = None,
        names: str = "",
        *,
        winner_first: bool = False,
    ) -> Table:
        known = names or "".join(sorted({c for game in games for c in game if c.isalpha()}))
        lineups = [[known.index(game[0]), known.index(game[-1])] for game in games]
        scores = [[1.0, 1.0 if "=" in game else 0.0] for game in games]
        if not winner_first:
            lineups = [line[::-1] if i % 2 else line for i, line in enumerate(lineups)]
            scores = [line[::-1] if i % 2 else line for i, line in enumerate(scores)]
        return make_table(known, lineups, scores, range(len(games)) if blocks is None else blocks)

    return build
