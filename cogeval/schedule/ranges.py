"""Sets of episode indexes as half-open ranges: how records and logs write them.

Invariant: `from_ranges(to_ranges(x))` is x, sorted and without duplicates. Knows nothing but integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

__all__ = ["format_ranges", "from_ranges", "to_ranges"]


def to_ranges(indexes: Iterable[int]) -> list[list[int]]:
    """Writes a set of indexes as the fewest half-open ranges.

    Args:
        indexes: non-negative integers in any order; duplicates count once.

    Returns:
        ``[[start, stop], ...]``, ascending, neither touching nor overlapping.
    """
    values = np.unique(np.fromiter(indexes, dtype=np.int64))
    if not values.size:
        return []
    breaks = np.flatnonzero(np.diff(values) > 1)
    starts = values[np.concatenate(([0], breaks + 1))]
    stops = values[np.concatenate((breaks, [values.size - 1]))] + 1
    return np.column_stack((starts, stops)).tolist()  # type: ignore[no-any-return]


def from_ranges(ranges: Iterable[Sequence[int]]) -> list[int]:
    """Reads half-open ranges as a set of indexes.

    Args:
        ranges: ``[start, stop]`` pairs in any order; they may overlap.

    Returns:
        Every index covered, ascending, each once.

    Raises:
        ValueError: when an entry is no pair of integers 0 <= start < stop.
    """
    pairs = [_pair(entry) for entry in ranges]
    indexes: list[int] = []
    end = 0
    for start, stop in sorted(pairs):
        indexes.extend(range(max(start, end), stop))
        end = max(end, stop)
    return indexes


def _pair(entry: object) -> tuple[int, int]:
    match entry:
        case [int(start), int(stop)] if 0 <= start < stop:
            return start, stop
        case _:
            raise ValueError(f"expected a range [start, stop] with 0 <= start < stop, got {entry!r}")


def format_ranges(indexes: Iterable[int], *, limit: int = 5) -> str:
    """Writes a set of indexes for people: ``"0-9, 12, 40-41"``.

    Args:
        indexes: non-negative integers in any order.
        limit: number of ranges written out; the rest is counted ("and 7 more").

    Returns:
        Inclusive ranges; ``"none"`` for an empty set.
    """
    ranges = to_ranges(indexes)
    if not ranges:
        return "none"
    words = [str(start) if stop == start + 1 else f"{start}-{stop - 1}" for start, stop in ranges[:limit]]
    rest = sum(stop - start for start, stop in ranges[limit:])
    return ", ".join(words) + (f" and {rest} more" if rest else "")
