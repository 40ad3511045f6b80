"""How far luck moves a fit: block jackknife, cluster sandwich, and bounds for one-sided records.

Invariant: the unit that is left out or clustered by is the block, never the pair or the episode. It must
not know of names.

Source: Tukey 1958 (jackknife); Liang and Zeger 1986 (cluster sandwich).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, stdtrit

from cogeval.ratings.cells import BlockCells, PairCells, sums
from cogeval.ratings.diagnostics import all_level
from cogeval.ratings.ladder import MIN_BLOCKS, Method
from cogeval.ratings.pairwise import Fit, Model, fit
from cogeval.ratings.table import BoolArray, FloatArray, IntArray

__all__ = [
    "MAX_JACKKNIFE_BLOCKS",
    "Spread",
    "blocks_alike",
    "estimated_spread",
    "jackknife",
    "num_meeting_blocks",
    "one_sided_bound",
    "sandwich",
    "t_quantile",
]

MAX_JACKKNIFE_BLOCKS = 400
CHUNK_VALUES = 4_000_000
LEAST_LUCK = 1e-4
"""Mean variance of a pair's outcome below which the fit has explained every one of them away."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Covariances of a fit over repetitions of the same design on fresh blocks.

    Args:
        theta: float [num_agents, num_agents], of the log strengths centred on their mean.
        seat: float [num_seats, num_seats], of the seat effects.
    """

    theta: FloatArray
    seat: FloatArray


def estimated_spread(
    blocks: BlockCells, model: Model, estimate: Fit
) -> tuple[Spread | None, Method, list[str]]:
    """The covariances by the method that the blocks allow, or None and the reason why not.

    Args:
        blocks: the cells of each block.
        model: the likelihood, over the same cells.
        estimate: its fit to all blocks.

    Returns:
        The covariances, the name of the method, and what a reader must be told.
    """
    number = blocks.num_blocks
    if model.cells.num_agents == 1:
        return None, "none", ["one agent: nothing to rate it against, only its scores mean something"]
    if all_level(blocks):
        return (
            None,
            "none",
            ["degenerate: every pair is level in every block (all ties); all are rated equal"],
        )
    if number < MIN_BLOCKS:
        return None, "none", [f"no intervals: {MIN_BLOCKS} blocks with games make one, got {number}"]
    if blocks_alike(blocks):
        return None, "none", ["no intervals: every block ended alike, so nothing shows how far luck moves it"]
    if _nothing_left_to_luck(model, estimate):
        return None, "none", ["no intervals: wins follow the seat, or the agent, without exception"]
    if number > MAX_JACKKNIFE_BLOCKS:
        return sandwich(blocks, model, estimate), "sandwich", []
    spread = jackknife(blocks, model, estimate)
    if spread is not None:
        return spread, "jackknife", []
    reason = "without some block no finite ratings exist: intervals by the sandwich, not the jackknife"
    return sandwich(blocks, model, estimate), "sandwich", [reason]


def jackknife(blocks: BlockCells, model: Model, full: Fit) -> Spread | None:
    """Refits without each block in turn: V = (n - 1) / n * sum of the squared moves.

    Args:
        blocks: the cells of each block.
        model: the likelihood, over the same cells.
        full: its fit to all blocks, where every refit begins.

    Returns:
        The covariances; None when some refit has no maximum, so that the method does not apply.
    """
    number = blocks.num_blocks
    moves = np.empty((number, model.num_parameters))
    for block in range(number):
        games, wins = without_block(blocks, block)
        refit = fit(model, games, wins, start=full.parameters)
        if not refit.converged:
            return None
        moves[block] = refit.parameters - full.parameters
    return _spread(model, (number - 1) / number * moves.T @ moves)


def sandwich(blocks: BlockCells, model: Model, full: Fit, *, corrected: bool = True) -> Spread:
    """Cluster-robust covariances H^-1 (sum s_b s_b') H^-1, with s_b the score of block b.

    Args:
        blocks: the cells of each block.
        model: the likelihood, over the same cells.
        full: its fit to all blocks.
        corrected: multiply by n / (n - 1).
    """
    meat = np.zeros((model.num_parameters, model.num_parameters))
    for scores in _block_scores(blocks, model, full):
        meat += scores.T @ scores
    if corrected:
        meat *= blocks.num_blocks / (blocks.num_blocks - 1)
    bread = np.linalg.pinv(full.information + model.gauge(), rcond=1e-14, hermitian=True)
    return _spread(model, bread @ meat @ bread)


def without_block(blocks: BlockCells, block: int) -> tuple[FloatArray, FloatArray]:
    """The games and wins of every cell with one block left out: two float [num_cells]."""
    own = slice(int(blocks.starts[block]), int(blocks.starts[block + 1]))
    games, wins = blocks.totals.games.copy(), blocks.totals.wins.copy()
    games[blocks.cell[own]] -= blocks.games[own]
    wins[blocks.cell[own]] -= blocks.wins[own]
    return games, wins


def blocks_alike(blocks: BlockCells) -> bool:
    """Whether every block ended exactly alike, so that nothing shows how far luck moves the fit."""
    number, entries = blocks.num_blocks, len(blocks.cell)
    if number == 0 or entries % number or (np.diff(blocks.starts) != entries // number).any():
        return False
    arrays = (blocks.cell, blocks.games, blocks.wins)
    return all(bool((part == part[0]).all()) for part in (a.reshape(number, -1) for a in arrays))


def one_sided_bound(num_blocks: int, confidence: float) -> float:
    """The lowest share that a perfect record leaves plausible: p >= alpha^(1 / blocks).

    Args:
        num_blocks: blocks in which every game was won, 1 or more.
        confidence: 1 - alpha, 0 .. 1.

    Source: the exact binomial bound of Clopper and Pearson 1934 at its edge.
    """
    return float((1.0 - confidence) ** (1.0 / num_blocks))


def t_quantile(num_blocks: int, confidence: float) -> float:
    """How many standard errors a two-sided t interval over blocks reaches to each side."""
    return float(stdtrit(num_blocks - 1, 0.5 + confidence / 2.0))


def _nothing_left_to_luck(model: Model, estimate: Fit) -> bool:
    chance, games = expit(model.margins(estimate.parameters)), model.cells.games
    return float(games @ (chance * (1.0 - chance))) < LEAST_LUCK * float(games.sum())


def _block_scores(blocks: BlockCells, model: Model, full: Fit) -> Iterator[FloatArray]:
    chance = expit(model.margins(full.parameters))
    nodes = model.cells.num_agents + model.cells.num_seats
    rows = max(1, CHUNK_VALUES // nodes)
    for low in range(0, blocks.num_blocks, rows):
        starts = blocks.starts[low : low + rows + 1]
        own = slice(int(starts[0]), int(starts[-1]))
        cell = blocks.cell[own]
        residuals = blocks.wins[own] - blocks.games[own] * chance[cell]
        row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        yield _scatter(model, row, cell, residuals, len(starts) - 1)


def _scatter(model: Model, row: IntArray, cell: IntArray, residuals: FloatArray, rows: int) -> FloatArray:
    cells = model.cells
    theta = _contrast(row, cells.first[cell], cells.second[cell], residuals, rows, cells.num_agents)
    if not model.seat_basis.shape[1]:
        return theta
    seat = _contrast(row, cells.first_seat[cell], cells.second_seat[cell], residuals, rows, cells.num_seats)
    return np.hstack([theta, seat @ model.seat_basis])


def _contrast(
    row: IntArray, plus: IntArray, minus: IntArray, residuals: FloatArray, rows: int, width: int
) -> FloatArray:
    up = sums(row * width + plus, residuals, rows * width)
    up -= sums(row * width + minus, residuals, rows * width)
    return up.reshape(rows, width)


def _spread(model: Model, parameters: FloatArray) -> Spread:
    size = model.cells.num_agents
    centre = np.eye(size) - 1.0 / size
    theta = centre @ parameters[:size, :size] @ centre
    seat = model.seat_basis @ parameters[size:, size:] @ model.seat_basis.T
    return Spread(np.asarray(theta), np.asarray(seat))


def num_meeting_blocks(blocks: BlockCells, agent: int, others: IntArray) -> int:
    """The number of blocks in which an agent met any of the others."""
    met = _meetings(blocks.totals, agent, others)
    inside = met[blocks.cell]
    heads = np.flatnonzero(np.diff(blocks.starts))
    return int(np.logical_or.reduceat(inside, blocks.starts[heads]).sum())


def _meetings(cells: PairCells, agent: int, others: IntArray) -> BoolArray:
    """Which cells are a meeting of an agent with any of the others: bool [num_cells]."""
    wanted = np.zeros(cells.num_agents, dtype=np.bool_)
    wanted[others] = True
    met = ((cells.first == agent) & wanted[cells.second]) | ((cells.second == agent) & wanted[cells.first])
    return np.asarray(met, dtype=np.bool_)
