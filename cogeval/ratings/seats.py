"""Seat effects of a fit: the ones that the data tell from skill, and words for the others.

Invariant: a seat is given a number only where its distance from the mean seat is identified and finite.
It must not know of agents' names.
"""

from __future__ import annotations

import math

import numpy as np

from cogeval.ratings.cells import PairCells, sums
from cogeval.ratings.diagnostics import connectivity
from cogeval.ratings.intervals import Spread
from cogeval.ratings.ladder import ELO_PER_LOG_UNIT, SeatEffect
from cogeval.ratings.pairwise import Fit, Model
from cogeval.ratings.records import listed
from cogeval.ratings.table import FloatArray, IntArray

__all__ = ["seat_table"]

LARGEST_SEAT_EFFECT = 7.0
"""Log units (1,216 Elo) beyond which a seat effect is separation, not an estimate."""


def seat_table(
    model: Model, estimate: Fit, spread: Spread | None, quantile: float
) -> tuple[tuple[SeatEffect, ...], list[str]]:
    """The effects that may be shown, with their intervals, and warnings about the others.

    Args:
        model: the likelihood.
        estimate: its fit.
        spread: the covariances, None when there are no intervals.
        quantile: standard errors that an interval reaches to each side.
    """
    cells = model.cells
    used = np.unique(np.concatenate([cells.first_seat, cells.second_seat]))
    if not model.seats or len(used) < 2:
        return (), []
    known = _known_seats(model.seat_basis, used)
    warnings = []
    if len(known) < len(used):
        hidden = listed(tuple(str(seat) for seat in used if seat not in known))
        warnings.append(
            f"the effect of seats {hidden} cannot be told from skill (who sits there hardly changes seats): "
            "ratings include it; a design with rotations takes it out"
        )
    if _separated(cells, used) or np.abs(estimate.seat).max() > LARGEST_SEAT_EFFECT:
        return (), [*warnings, "some seat always wins: its effect has no finite size and is not shown"]
    effects = []
    for seat in known:
        elo = float(estimate.seat[seat]) * ELO_PER_LOG_UNIT
        half = (
            None
            if spread is None
            else quantile * ELO_PER_LOG_UNIT * math.sqrt(max(float(spread.seat[seat, seat]), 0.0))
        )
        low, high = (None, None) if half is None else (elo - half, elo + half)
        effects.append(SeatEffect(int(seat), elo, low, high))
    return tuple(effects), warnings


def _known_seats(basis: FloatArray, used: IntArray) -> list[int]:
    """The seats whose distance from the mean seat lies in the span of what the cells can tell."""
    mean = np.zeros(len(basis))
    mean[used] = 1.0 / len(used)
    known = []
    for seat in used:
        contrast = -mean
        contrast[seat] += 1.0
        if np.allclose(basis @ (basis.T @ contrast), contrast, atol=1e-6):
            known.append(int(seat))
    return known


def _separated(cells: PairCells, used: IntArray) -> bool:
    width = cells.num_seats
    won = sums(cells.first_seat * width + cells.second_seat, cells.wins, width * width)
    lost = sums(cells.second_seat * width + cells.first_seat, cells.games - cells.wins, width * width)
    wins = (won + lost).reshape(width, width)[np.ix_(used, used)]
    return connectivity(wins).num_strong > connectivity(wins).num_weak
