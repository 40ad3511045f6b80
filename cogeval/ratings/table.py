"""The flat input of every rating: who sat where, how they ranked and scored, on which block.

Invariant: a `Table` that exists is valid; whoever holds one need not check it again. It must not know
where its rows came from (shards, a live run, a test).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cogeval.errors import InputError

__all__ = ["EMPTY_SEAT", "BoolArray", "FloatArray", "IntArray", "Table"]

IntArray = NDArray[np.integer]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

EMPTY_SEAT = -1
"""The agent index of a column that an episode with fewer seats leaves unused."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Episodes as arrays, one row per episode and one column per seat.

    Args:
        agents: int [num_episodes, num_seats], index into `names`, -1 where the seat is empty.
        ranks: int [num_episodes, num_seats], 0 is best, equal ranks are a tie; ignored where empty.
        scores: float [num_episodes, num_seats], in the game's score; must be finite where it counts.
        blocks: int [num_episodes], dense block index: 0 .. num_blocks - 1, each used.
        seat_scored: bool [num_episodes, num_seats], False for forfeits: left out of score means.
        names: the agents' names, no two alike.

    Raises:
        InputError: an array has the wrong shape, type or value; the message says which and where.
    """

    agents: IntArray
    ranks: IntArray
    scores: FloatArray
    blocks: IntArray
    seat_scored: BoolArray
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        for field, kinds in (("agents", "iu"), ("ranks", "iu"), ("blocks", "iu"), ("seat_scored", "b")):
            object.__setattr__(self, field, _typed(field, getattr(self, field), kinds))
        object.__setattr__(
            self, "scores", _typed("scores", self.scores, "fiu").astype(np.float64, copy=False)
        )
        object.__setattr__(self, "names", tuple(self.names))
        self._check_shapes()
        self._check_names()
        self._check_seats()
        self._check_blocks()

    @property
    def num_episodes(self) -> int:
        """The number of rows."""
        return int(self.agents.shape[0])

    @property
    def num_seats(self) -> int:
        """The number of seat columns, used or not."""
        return int(self.agents.shape[1])

    @property
    def num_blocks(self) -> int:
        """The number of blocks: units of luck, and clusters of every interval."""
        return int(self.blocks.max()) + 1 if self.num_episodes else 0

    def occupied(self) -> BoolArray:
        """Where an agent sits: bool [num_episodes, num_seats]."""
        return np.asarray(self.agents >= 0, dtype=np.bool_)

    def shares(self) -> FloatArray:
        """The share of each seat: (seats beaten + half the ties) / (seats - 1).

        Returns:
            float [num_episodes, num_seats] in 0 .. 1; NaN where the seat is empty or has no opponent.
        """
        occupied = self.occupied()
        opponents = occupied.sum(axis=1) - 1
        beaten = np.zeros(self.agents.shape)
        for seat in range(self.num_seats):
            for other in range(seat + 1, self.num_seats):
                both = occupied[:, seat] & occupied[:, other]
                won = half_wins(self.ranks[:, seat], self.ranks[:, other])
                beaten[:, seat] += both * won
                beaten[:, other] += both * (2 - won)
        counts = occupied & (opponents > 0)[:, None]
        shares = np.full(self.agents.shape, np.nan)
        np.divide(beaten, 2.0 * opponents[:, None], out=shares, where=counts)
        return shares

    def _check_shapes(self) -> None:
        shape = np.shape(self.agents)
        if len(shape) != 2:
            raise InputError(f"expected agents of shape [num_episodes, num_seats], got {shape!r}")
        for field in ("ranks", "scores", "seat_scored"):
            got = np.shape(getattr(self, field))
            if got != shape:
                raise InputError(f"expected {field} of the shape of agents {shape!r}, got {got!r}")
        if np.shape(self.blocks) != shape[:1]:
            raise InputError(
                f"expected one block per episode {shape[:1]!r}, got blocks of shape {np.shape(self.blocks)!r}"
            )

    def _check_names(self) -> None:
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise InputError(f"expected agents' names that differ, got {name!r} twice")
            seen.add(name)

    def _check_seats(self) -> None:
        known = len(self.names)
        wild = (self.agents < EMPTY_SEAT) | (self.agents >= known)
        _reject(wild, self.agents, f"an agent index of -1 (empty) .. {known - 1}")
        occupied = self.occupied()
        _reject(occupied & (self.ranks < 0), self.ranks, "a rank of 0 (best) or more")
        _reject(occupied & self.seat_scored & ~np.isfinite(self.scores), self.scores, "a finite score")
        vacant = ~occupied.any(axis=1)
        if vacant.any():
            raise InputError(
                f"expected an agent in every episode, got none in episode row {int(vacant.argmax())}"
            )

    def _check_blocks(self) -> None:
        if not self.num_episodes:
            return
        if (self.blocks < 0).any():
            row = int((self.blocks < 0).argmax())
            raise InputError(
                f"expected a block index of 0 or more, got {int(self.blocks[row])} in episode row {row}"
            )
        top = int(self.blocks.max())
        if top >= self.num_episodes or (np.bincount(self.blocks) == 0).any():
            used = len(np.unique(self.blocks))
            raise InputError(
                f"expected dense blocks 0 .. {used - 1}, got {used} different blocks up to {top}"
            )


def half_wins(mine: IntArray, other: IntArray) -> IntArray:
    """Twice the win that one rank takes from another: 2 a win, 1 a tie, 0 a loss (lower is better)."""
    return np.add(mine < other, mine <= other, dtype=np.int8)


def _typed(field: str, values: object, kinds: str) -> NDArray[np.generic]:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in kinds:
        wanted = {"iu": "whole numbers", "b": "booleans", "fiu": "numbers"}[kinds]
        raise InputError(f"expected {field} of {wanted}, got the type {array.dtype.name!r}")
    return array if array.size else array.astype({"iu": np.int64, "b": np.bool_, "fiu": np.float64}[kinds])


def _reject(wrong: BoolArray, values: NDArray[np.generic], expected: str) -> None:
    if wrong.any():
        row, seat = (int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
        got = values[row, seat].item()
        raise InputError(f"expected {expected}, got {got!r} in episode row {row}, seat {seat}")
