"""Numbers as a table shows them; a missing one is "-".

Invariant: a figure never looks more certain or rounder than it is: a rate that is not zero is not shown
as zero.
"""

from __future__ import annotations

__all__ = ["NONE", "count", "extent", "number", "percent", "seconds", "signed", "span"]

NONE = "-"


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal."""
    if share is None:
        return NONE
    if 0 < share < 0.0005:
        return "<0.1%"  # some is not none
    return f"{share:.1%}"


def signed(elo: float | None) -> str:
    """An Elo difference, rounded, with its sign."""
    return NONE if elo is None else f"{round(elo) + 0:+d}"


def span(low: float | None, high: float | None) -> str:
    """An interval in Elo."""
    return NONE if low is None or high is None else f"{signed(low)}..{signed(high)}"


def extent(low: float | None, high: float | None, decimals: int) -> str:
    """Two numbers and what lies between."""
    return NONE if low is None or high is None else f"{low:.{decimals}f}..{high:.{decimals}f}"


def number(value: float | None, decimals: int) -> str:
    """A number with this many decimals."""
    return NONE if value is None else f"{value:,.{decimals}f}"


def seconds(value: float | None) -> str:
    """Seconds, two figures or more."""
    if value is None:
        return NONE
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def count(num: int) -> str:
    """A whole number; millions from ten million on."""
    return f"{num:,}" if num < 10_000_000 else f"{num / 1e6:,.0f}M"
