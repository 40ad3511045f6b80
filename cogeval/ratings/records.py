"""One-sided records in words and bounds: what a ladder says where wins run one way or not at all.

Invariant: a bound is given for an agent without a strong component of its own, and only for it. It must
not know of fits.
"""

from __future__ import annotations

import math

import numpy as np

from cogeval.ratings.cells import BlockCells
from cogeval.ratings.diagnostics import Connectivity, one_sided_opponents
from cogeval.ratings.intervals import num_meeting_blocks, one_sided_bound
from cogeval.ratings.ladder import ELO_PER_LOG_UNIT, MIN_BLOCKS, Bound
from cogeval.ratings.table import FloatArray, IntArray

__all__ = ["listed", "record_bounds", "record_flags"]


def record_bounds(
    blocks: BlockCells,
    graph: Connectivity,
    wins: FloatArray,
    names: tuple[str, ...],
    agent: int,
    confidence: float,
) -> tuple[Bound, ...]:
    """The bounds that one-sided records put on an agent that no cycle of wins ties to the others.

    Args:
        blocks: the cells of each block.
        graph: the components of all agents.
        wins: float [num_agents, num_agents], wins of each row over each column.
        names: the agents' names, by index.
        agent: whose bounds.
        confidence: 1 - alpha of the one-sided bounds, 0 .. 1.

    Returns:
        At most two: against those it always beat, and against those it always lost to.
    """
    if (graph.strong == graph.strong[agent]).sum() > 1:
        return ()
    beaten, lost_to = one_sided_opponents(wins, agent)
    bounds = []
    for others, sign in ((beaten, 1.0), (lost_to, -1.0)):
        if not len(others):
            continue
        number = num_meeting_blocks(blocks, agent, others)
        elo = None
        if number >= MIN_BLOCKS:  # with fewer blocks the bound lies below an even chance: it says nothing
            share = one_sided_bound(number, confidence)
            elo = sign * math.log(share / (1.0 - share)) * ELO_PER_LOG_UNIT
        versus = tuple(names[i] for i in others)
        bounds.append(Bound("at least" if sign > 0.0 else "at most", elo, versus, number))
    return tuple(bounds)


def record_flags(
    graph: Connectivity, names: tuple[str, ...], agent: int, bounds: tuple[Bound, ...]
) -> tuple[str, ...]:
    """What a reader must know of an agent's place in the graph of wins, one phrase each."""
    flags = [_bound_flag(bound, whole=len(bounds) == 1) for bound in bounds]
    own = _others(graph.strong == graph.strong[agent], names, agent)
    connected = graph.weak == graph.weak[agent]
    if own and not np.array_equal(graph.strong == graph.strong[agent], connected):
        flags.append(f"interval holds among {listed((names[agent], *own))}")
    apart = tuple(names[i] for i in np.flatnonzero(~connected))
    if apart:
        flags.append(f"not connected: no games with, or through others with, {listed(apart)}")
    return tuple(flags)


def listed(names: tuple[str, ...], most: int = 4) -> str:
    """The names with commas, the first few of them and how many more."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _bound_flag(bound: Bound, *, whole: bool) -> str:
    against = listed(bound.versus)
    won = bound.side == "at least"
    if whole:
        record, place = ("perfect record" if won else "zero record"), f" against {against}"
    else:
        record, place = (f"always beat {against}" if won else f"always lost to {against}"), ""
    if bound.elo is None:
        return f"{record}{place}: {_blocks(bound.num_blocks)} too few for a bound"
    return f"{record}: {bound.side} {bound.elo:+.0f} Elo{place}"


def _others(members: IntArray, names: tuple[str, ...], agent: int) -> tuple[str, ...]:
    return tuple(names[i] for i in np.flatnonzero(members) if i != agent)


def _blocks(num: int) -> str:
    return "1 block is" if num == 1 else f"{num} blocks are"
