"""A sum over the last so many seconds, kept exactly: what a limit per minute means.

Invariant: what is remembered counts until its last part is as old as the window is long, so that no
window of that length holds more than was let in. Must not know what is counted.
"""

from __future__ import annotations

import math
from collections import deque

_BIN_S = 0.05  # amounts that are remembered as one, at the time of the last of them
_EPSILON = 1e-9


class Bin:
    """What was let through in one short time."""

    __slots__ = ("amount", "first_at", "last_at")

    def __init__(self, at: float) -> None:
        self.first_at = self.last_at = at
        self.amount = 0.0


class Window:
    """The sum over the last minute, and whether more fits.

    Args:
        limit: of the sum.
        length_s: of the window.
    """

    __slots__ = ("_bins", "_length_s", "_limit", "_total")

    def __init__(self, limit: float, length_s: float) -> None:
        self._limit = limit
        self._length_s = length_s
        self._bins: deque[Bin] = deque()
        self._total = 0.0

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until the amount fits; one that is larger than the limit goes alone."""
        self._forget(now)
        room = max(self._limit, amount) + _EPSILON
        left = self._total
        if left + amount <= room:
            return 0.0
        for old in self._bins:
            left -= old.amount
            if left + amount <= room:
                return max(0.0, old.last_at + self._length_s - now)
        return self._length_s

    def total(self, now: float) -> float:
        """What counts now."""
        self._forget(now)
        return self._total

    @property
    def last_at(self) -> float:
        """When the last that counts was let through; minus infinity when nothing does."""
        return self._bins[-1].last_at if self._bins else -math.inf

    def widen(self, length_s: float) -> None:
        """Remembers for longer from now on."""
        self._length_s = max(self._length_s, length_s)

    def add(self, amount: float, now: float) -> Bin:
        """Counts an amount, and gives where it stands."""
        if not self._bins or now - self._bins[-1].first_at >= _BIN_S:
            self._bins.append(Bin(now))
        last = self._bins[-1]
        last.last_at = max(last.last_at, now)
        last.amount += amount
        self._total += amount
        return last

    def take_back(self, amount: float, counted_in: Bin, now: float) -> None:
        """Counts less where an amount was counted; what is older than the window counts no more anyhow."""
        self._forget(now)
        if self._bins and counted_in.last_at >= self._bins[0].last_at:
            counted_in.amount -= amount
            self._total -= amount

    def _forget(self, now: float) -> None:
        while self._bins and self._bins[0].last_at + self._length_s <= now:
            self._total -= self._bins.popleft().amount
        if not self._bins:
            self._total = 0.0  # no rounding error lives for ever

    def validate(self) -> None:
        """Asserts that the sum is the sum."""
        assert math.isclose(self._total, sum(b.amount for b in self._bins), rel_tol=1e-9, abs_tol=1e-6)
        assert all(b.amount >= -1e-6 for b in self._bins)
