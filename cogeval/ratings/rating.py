"""The ladder: one joint fit of all agents, with intervals where blocks allow them and the reason where not.

Invariant: no number is printed that the data do not hold; what is left out is named in a flag or a
warning. It must not know where the table came from or how a ladder is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cogeval.errors import InputError, unknown_name
from cogeval.ratings.cells import BlockCells, break_episodes
from cogeval.ratings.diagnostics import Connectivity, connectivity, intransitive_share
from cogeval.ratings.intervals import Spread, estimated_spread, t_quantile
from cogeval.ratings.ladder import ELO_PER_LOG_UNIT, MIN_BLOCKS, Ladder, LadderRow, Method, SeatEffect
from cogeval.ratings.pairwise import Fit, Model, fit
from cogeval.ratings.records import listed, record_bounds, record_flags
from cogeval.ratings.seats import seat_table
from cogeval.ratings.table import FloatArray, IntArray, Table
from cogeval.ratings.tallies import Tallies, tally

__all__ = ["rate"]


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """All that the rows are written from."""

    table: Table
    blocks: BlockCells
    model: Model
    fit: Fit
    wins: FloatArray
    graph: Connectivity
    spread: Spread | None
    method: Method
    confidence: float
    anchor: int | None
    anchor_elo: float


def rate(
    table: Table,
    *,
    anchor: str | None = None,
    anchor_elo: float = 0.0,
    confidence: float = 0.95,
    prior: bool = True,
    seat_effects: bool = True,
) -> Ladder:
    """Rates all agents of a table jointly.

    Args:
        table: the episodes.
        anchor: the agent whose rating is fixed, so that ladders can be compared; by default the mean
            rating is 0.
        anchor_elo: the rating of the anchor, in Elo.
        confidence: nominal coverage of every interval, 0 .. 1, both excluded.
        prior: one drawn pseudo-game per agent against a phantom; kept with a warning where no finite
            rating exists without it.
        seat_effects: whether to take out what the seat is worth.

    Returns:
        The ladder, best first. Agents of the table that played no episode are left out.

    Raises:
        InputError: no episodes, an unknown anchor, or a confidence outside 0 .. 1.
    """
    _check_arguments(table, anchor_elo, confidence)
    table, absent = _seated_only(table)
    if anchor is not None and anchor not in table.names:
        raise unknown_name("anchor agent", anchor, table.names)
    blocks = break_episodes(table, seats=seat_effects)
    wins = blocks.totals.win_matrix()
    graph = connectivity(wins)
    warnings = [f"played no episode, left out: {listed(absent)}"] if absent else []
    if not prior and graph.num_strong > 1:
        prior = True
        warnings.append("no finite ratings exist without the prior: it was kept")
    model = Model(blocks.totals, prior_games=1.0 if prior else 0.0, seats=seat_effects)
    estimate = fit(model)
    spread, method, reasons = estimated_spread(blocks, model, estimate)
    fitted = _Fitted(
        table=table,
        blocks=blocks,
        model=model,
        fit=estimate,
        wins=wins,
        graph=graph,
        spread=spread,
        method=method,
        confidence=confidence,
        anchor=None if anchor is None else table.names.index(anchor),
        anchor_elo=anchor_elo,
    )
    warnings += reasons + _graph_warnings(fitted)
    seats, seat_warnings = seat_table(model, estimate, spread, t_quantile(blocks.num_blocks, confidence))
    return _ladder(fitted, seats, (*warnings, *seat_warnings))


def _check_arguments(table: Table, anchor_elo: float, confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise InputError(f"expected a confidence between 0 and 1, as 0.95, got {confidence!r}")
    if not math.isfinite(anchor_elo):
        raise InputError(f"expected a finite anchor_elo, got {anchor_elo!r}")
    if not table.num_episodes:
        raise InputError("expected at least one episode to rate, got none")


def _seated_only(table: Table) -> tuple[Table, tuple[str, ...]]:
    seats = np.bincount(table.agents[table.occupied()], minlength=len(table.names))
    absent = tuple(name for name, count in zip(table.names, seats, strict=True) if not count)
    if not absent:
        return table, ()
    place = np.append(np.cumsum(seats > 0) - 1, -1)  # the last entry answers for the empty seat, -1
    names = tuple(name for name, count in zip(table.names, seats, strict=True) if count)
    return Table(
        place[table.agents], table.ranks, table.scores, table.blocks, table.seat_scored, names
    ), absent


def _ladder(fitted: _Fitted, seats: tuple[SeatEffect, ...], warnings: tuple[str, ...]) -> Ladder:
    counts, elo, half = tally(fitted.table), _elo(fitted), _half_widths(fitted)
    rows = [_row(fitted, agent, elo, half, counts) for agent in range(len(elo))]
    order = sorted(range(len(rows)), key=lambda i: (-round(rows[i].elo, 6), rows[i].name))
    spread = fitted.spread
    return Ladder(
        rows=tuple(rows[i] for i in order),
        seat_effects=seats,
        num_blocks=fitted.table.num_blocks,
        num_episodes=fitted.table.num_episodes,
        method=fitted.method,
        confidence=fitted.confidence,
        anchor=None if fitted.anchor is None else fitted.table.names[fitted.anchor],
        warnings=warnings,
        covariance=None if spread is None else spread.theta[np.ix_(order, order)],
        components=tuple(int(fitted.graph.weak[i]) for i in order),
        strong_components=tuple(int(fitted.graph.strong[i]) for i in order),
        degrees=max(fitted.blocks.num_blocks - 1, 0),
        intransitive=intransitive_share(fitted.wins),
    )


def _elo(fitted: _Fitted) -> FloatArray:
    theta = fitted.fit.theta
    if fitted.anchor is None:
        return np.asarray((theta - theta.mean()) * ELO_PER_LOG_UNIT)
    return np.asarray((theta - theta[fitted.anchor]) * ELO_PER_LOG_UNIT + fitted.anchor_elo)


def _half_widths(fitted: _Fitted) -> FloatArray | None:
    """Half widths in Elo, NaN where there is no interval; None when the ladder has none at all.

    Across strong components only the prior holds ratings together, so a row's interval is that of its
    distance from the mean of its own component (all agents, as a rule), or from the anchor within it.
    """
    if fitted.spread is None:
        return None
    cov, labels = fitted.spread.theta, fitted.graph.strong
    variance = np.full(len(cov), np.nan)
    for label in range(fitted.graph.num_strong):
        group = np.flatnonzero(labels == label)
        if len(group) < 2:
            continue
        own = cov[np.ix_(group, group)]
        if fitted.anchor is None:
            variance[group] = own.diagonal() - 2.0 * own.mean(axis=1) + own.mean()
        elif fitted.anchor in group:
            to_anchor = cov[group, fitted.anchor]
            variance[group] = own.diagonal() - 2.0 * to_anchor + cov[fitted.anchor, fitted.anchor]
            variance[fitted.anchor] = np.nan
    reach = t_quantile(fitted.blocks.num_blocks, fitted.confidence) * ELO_PER_LOG_UNIT
    return np.asarray(reach * np.sqrt(np.maximum(variance, 0.0)))


def _row(fitted: _Fitted, agent: int, elo: FloatArray, half: FloatArray | None, counts: Tallies) -> LadderRow:
    centre, num_blocks = float(elo[agent]), int(counts.num_blocks[agent])
    reach = math.nan if half is None or num_blocks < MIN_BLOCKS else float(half[agent])
    given = not math.isnan(reach)
    names = fitted.table.names
    bounds = record_bounds(fitted.blocks, fitted.graph, fitted.wins, names, agent, fitted.confidence)
    flags = list(record_flags(fitted.graph, names, agent, bounds))
    if fitted.anchor == agent:
        flags.append(f"anchor: fixed at {fitted.anchor_elo:+.0f} Elo")
    if fitted.spread is not None and num_blocks < MIN_BLOCKS:
        flags.append(f"no interval: {MIN_BLOCKS} blocks make one, it sat in {num_blocks}")
    share, score = float(counts.win_share[agent]), float(counts.score_mean[agent])
    return LadderRow(
        name=names[agent],
        elo=centre,
        elo_low=centre - reach if given else None,
        elo_high=centre + reach if given else None,
        win_share=None if math.isnan(share) else share,
        score_mean=None if math.isnan(score) else score,
        num_episodes=int(counts.num_episodes[agent]),
        num_seats=int(counts.num_seats[agent]),
        num_blocks=num_blocks,
        flags=tuple(flags),
        bounds=bounds,
    )


def _graph_warnings(fitted: _Fitted) -> list[str]:
    graph, names = fitted.graph, fitted.table.names
    warnings = []
    if graph.num_weak > 1:
        sets = "; ".join(f"({listed(_members(names, graph.weak, i))})" for i in range(graph.num_weak))
        warnings.append(
            f"no games connect these groups, not even through others: {sets}. Ranks and Elo compare agents "
            "of one group only"
        )
    if graph.num_strong > graph.num_weak:
        warnings.append(
            "some records are one-sided: the prior alone sets the distance there, and intervals hold within "
            "a group only, as is said of each agent"
        )
    return warnings


def _members(names: tuple[str, ...], labels: IntArray, label: int) -> tuple[str, ...]:
    return tuple(names[i] for i in np.flatnonzero(labels == label))
