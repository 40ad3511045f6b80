"""Sets of episode indexes as half-open ranges: how records and logs write them.

Invariant: `from_ranges(to_ranges(x))` is x, ascending and without duplicates. Knows nothing but integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def to_ranges(indexes: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Writes a set of indexes as the fewest half-open ranges.

    Args:
        indexes: non-negative integers in any order; duplicates count once.

    Returns:
        ``((start, stop), ...)``, ascending, neither touching nor overlapping.
    """
    values = np.unique(np.fromiter(indexes, np.int64))
    if not values.size:
        return ()
    breaks = np.flatnonzero(np.diff(values) > 1)
    starts = values[np.concatenate(([0], breaks + 1))]
    stops = values[np.concatenate((breaks, [values.size - 1]))] + 1
    return tuple(zip(starts.tolist(), stops.tolist(), strict=True))


def from_ranges(ranges: Iterable[Sequence[int]]) -> NDArray[np.int64]:
    """Reads half-open ranges as a set of indexes.

    Args:
        ranges: pairs of start and stop in any order; they may overlap.

    Returns:
        Every index covered, ascending, each once.

    Raises:
        ValueError: when an entry is no pair of integers 0 <= start < stop.
    """
    parts = [np.arange(*_pair(entry), dtype=np.int64) for entry in ranges]
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def in_ranges(index: int, ranges: Iterable[Sequence[int]]) -> bool:
    """True when one of the half-open ranges covers the index."""
    return any(start <= index < stop for start, stop in ranges)


def _pair(entry: object) -> tuple[int, int]:
    match entry:
        case [int(start), int(stop)] if 0 <= start < stop:
            return start, stop
        case _:
            raise ValueError(f"expected a range [start, stop] with 0 <= start < stop, got {entry!r}")
