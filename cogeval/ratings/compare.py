"""Two agents side by side on the blocks that they share: one value per block, then a t interval.

Where both sit in the same episodes the value is B's share (and margin) against A; where they only share
blocks (B sat where A had sat, say) it is B's mean share less A's, each against its own field.

Invariant: a block counts once, however many episodes it holds. It gives no verdict: that needs a bound
declared before the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cogeval.errors import InputError, unknown_name
from cogeval.ratings.cells import sums
from cogeval.ratings.intervals import t_quantile
from cogeval.ratings.ladder import ELO_PER_LOG_UNIT, MIN_BLOCKS
from cogeval.ratings.table import BoolArray, FloatArray, IntArray, Table, half_wins

__all__ = ["Comparison", "Effect", "Estimand", "compare"]

Estimand = Literal["head_to_head", "same_blocks"]


@dataclass(frozen=True, slots=True)
class Effect:
    """The mean over blocks of one value per block.

    Args:
        num_blocks: blocks with a value.
        mean: their mean; None without any.
        low: lower end of the t interval, None when there is no interval.
        high: upper end of the t interval, None when there is no interval.
        deviation: sample standard deviation over blocks; None below two blocks.
        dz: mean / deviation (Cohen's d of paired values); None without spread.
        num_above: blocks with a value above 0: they favour B.
        num_below: blocks with a value below 0: they favour A.
    """

    num_blocks: int
    mean: float | None
    low: float | None
    high: float | None
    deviation: float | None
    dz: float | None
    num_above: int
    num_below: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """How B did beside A on the blocks that they share; every difference is B less A.

    Args:
        a: the one compared with.
        b: the one compared.
        estimand: "head_to_head" (both in one episode: B against A) or "same_blocks" (each against its
            field on the same seeds).
        confidence: nominal coverage of the intervals, 0 .. 1.
        share: difference of shares per block, -1 .. 1; head to head it is twice B's share, less 1.
        score: difference of mean scores per block, in the game's score.
        elo: Elo that B's share against A stands for; None in "same_blocks", and at shares of 0 and 1.
        elo_low: lower end of its interval; None where the share has none, or reaches 0.
        elo_high: upper end of its interval; None where the share has none, or reaches 1.
        notes: what a reader must know.
    """

    a: str
    b: str
    estimand: Estimand
    confidence: float
    share: Effect
    score: Effect
    elo: float | None
    elo_low: float | None
    elo_high: float | None
    notes: tuple[str, ...]

    def summary(self) -> str:
        """The comparison in a few plain lines, without a verdict."""
        how = "in the same episodes" if self.estimand == "head_to_head" else "on the same blocks, apart"
        lines = [f"{self.b} less {self.a}, {how}: {self.share.num_blocks} blocks"]
        lines += [
            f"  share {_worded(self.share, self.confidence)}",
            f"  score {_worded(self.score, self.confidence)}",
        ]
        if self.elo is not None:
            low = "no lower end" if self.elo_low is None else f"{self.elo_low:+.0f}"
            high = "no upper end" if self.elo_high is None else f"{self.elo_high:+.0f}"
            span = "" if self.share.low is None else f" ({low} .. {high})"
            lines.append(f"  Elo   {self.elo:+.0f}{span}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """Per block, the difference of shares and of scores; NaN where a block has none."""

    estimand: Estimand
    share: FloatArray
    score: FloatArray


def compare(table: Table, a: str, b: str, *, confidence: float = 0.95) -> Comparison:
    """Compares two agents block by block.

    Args:
        table: the episodes.
        a: the agent compared with.
        b: the agent compared.
        confidence: nominal coverage of the t intervals, 0 .. 1, both excluded.

    Returns:
        The differences, B less A.

    Raises:
        InputError: an unknown agent, one agent twice, or two that share no block.
    """
    if not 0.0 < confidence < 1.0:
        raise InputError(f"expected a confidence between 0 and 1, as 0.95, got {confidence!r}")
    for name in (a, b):
        if name not in table.names:
            raise unknown_name("agent", name, table.names)
    if a == b:
        raise InputError(f"expected two agents to compare, got {a!r} twice")
    first, second = table.names.index(a), table.names.index(b)
    shared = _blocks_of(table, first) & _blocks_of(table, second)
    if not shared.any():
        raise _no_shared_block(table, a, b)
    values = _head_to_head(table, first, second) or _same_blocks(table, first, second)
    share, score = _effect(values.share, confidence, limit=1.0), _effect(values.score, confidence)
    elo, low, high = _as_elo(share) if values.estimand == "head_to_head" else (None, None, None)
    notes = _notes(values, share, score, int(shared.sum()))
    return Comparison(a, b, values.estimand, confidence, share, score, elo, low, high, notes)


def _head_to_head(table: Table, a: int, b: int) -> _Values | None:
    number = table.num_blocks
    pairs, won, scored, margin = (np.zeros(number) for _ in range(4))
    for seat in range(table.num_seats):
        for other in range(table.num_seats):
            met = (table.agents[:, seat] == b) & (table.agents[:, other] == a)
            blocks = table.blocks[met]
            half = half_wins(table.ranks[met, seat], table.ranks[met, other]).astype(np.float64)
            pairs += np.bincount(blocks, minlength=number)
            won += sums(blocks, half - 1.0, number)  # +1 a win, -1 a loss
            counted = met & table.seat_scored[:, seat] & table.seat_scored[:, other]
            blocks = table.blocks[counted]
            scored += np.bincount(blocks, minlength=number)
            margin += sums(blocks, table.scores[counted, seat] - table.scores[counted, other], number)
    if not pairs.any():
        return None
    return _Values("head_to_head", _ratio(won, pairs), _ratio(margin, scored))


def _same_blocks(table: Table, a: int, b: int) -> _Values:
    shares, counted = table.shares(), table.seat_scored
    compared = np.isfinite(shares)
    share = _block_means(table, b, shares, compared) - _block_means(table, a, shares, compared)
    score = _block_means(table, b, table.scores, counted) - _block_means(table, a, table.scores, counted)
    return _Values("same_blocks", share, score)


def _block_means(table: Table, agent: int, values: FloatArray, counted: BoolArray) -> FloatArray:
    where = (table.agents == agent) & counted
    blocks = np.broadcast_to(table.blocks[:, None], where.shape)[where]
    number = table.num_blocks
    return _ratio(sums(blocks, values[where], number), np.bincount(blocks, minlength=number))


def _ratio(total: FloatArray, count: FloatArray | IntArray) -> FloatArray:
    means = np.full(len(total), np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means


def _effect(values: FloatArray, confidence: float, limit: float = math.inf) -> Effect:
    values = values[np.isfinite(values)]
    number = len(values)
    mean = float(values.mean()) if number else None
    deviation = float(values.std(ddof=1)) if number > 1 else None
    spread = deviation is not None and deviation > 1e-12 * float(np.abs(values).max())
    low = high = dz = None
    if spread and mean is not None and deviation is not None:
        dz = mean / deviation
        if number >= MIN_BLOCKS:
            half = t_quantile(number, confidence) * deviation / math.sqrt(number)
            low, high = max(mean - half, -limit), min(mean + half, limit)
    return Effect(number, mean, low, high, deviation, dz, int((values > 0).sum()), int((values < 0).sum()))


def _as_elo(share: Effect) -> tuple[float | None, float | None, float | None]:
    return _elo_of(share.mean), _elo_of(share.low), _elo_of(share.high)


def _elo_of(difference: float | None) -> float | None:
    if difference is None or abs(difference) >= 1.0 - 1e-12:
        return None
    return math.log((1.0 + difference) / (1.0 - difference)) * ELO_PER_LOG_UNIT


def _notes(values: _Values, share: Effect, score: Effect, num_shared: int) -> tuple[str, ...]:
    notes = []
    if share.num_blocks < MIN_BLOCKS:
        notes.append(f"no interval: {MIN_BLOCKS} shared blocks make one, got {share.num_blocks}")
    elif share.dz is None:
        notes.append(
            "no interval: the share is the same in every block, so nothing shows how far luck moves it"
        )
    if share.num_blocks < num_shared:
        left = num_shared - share.num_blocks
        where = (
            "hold both, but in no one episode" if values.estimand == "head_to_head" else "have no opponent"
        )
        notes.append(f"{left} shared blocks {where}: left out")
    if score.num_blocks < share.num_blocks:
        notes.append(
            f"scores: {share.num_blocks - score.num_blocks} blocks hold only forfeits of one: left out"
        )
    return tuple(notes)


def _worded(effect: Effect, confidence: float) -> str:
    if effect.mean is None:
        return "none"
    words = f"{effect.mean:+.4g}"
    if effect.low is not None and effect.high is not None:
        words += f" ({effect.low:+.4g} .. {effect.high:+.4g} at {confidence:.0%})"
    if effect.dz is not None:
        words += f", dz {effect.dz:+.2f}"
    return f"{words}, {effect.num_above} blocks above 0, {effect.num_below} below"


def _blocks_of(table: Table, agent: int) -> BoolArray:
    present = np.zeros(table.num_blocks, dtype=np.bool_)
    present[table.blocks[(table.agents == agent).any(axis=1)]] = True
    return present


def _no_shared_block(table: Table, a: str, b: str) -> InputError:
    counts = {name: int(_blocks_of(table, table.names.index(name)).sum()) for name in (a, b)}
    return InputError(
        f"expected blocks (seeds) that hold both {a!r} and {b!r}, got none: {a!r} sat in {counts[a]} blocks, "
        f"{b!r} in {counts[b]} others. Put both into one pool and run it, or run each with the same seeds, "
        "game parameters and field, and compare over both runs"
    )
