"""Random streams: `stream` for everything of ours, `NimStream` for the hosted games' worlds.

Invariant: every draw is a function of raw 64-bit words by our own arithmetic, so that no release of
a library can change a world. Golden vectors in tests/core hold both generators still.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import MutableSequence
from typing import Any, Final, TypeVar

T = TypeVar("T")

_MAX_64: Final = (1 << 64) - 1
_MAX_128: Final = (1 << 128) - 1
_PCG64: Final = 0x2360ED051FC65DA44385DF649FCCF645  # multiplier of the 128-bit generator


class Stream:
    """Bounded integers and shuffles on the raw words of a PCG64 (XSL-RR 128/64).

    Written out here because a seat draws a dozen words: making numpy's generator costs forty times a
    word. A test holds the words equal to those of numpy's PCG64 in the same state.

    Args:
        key: 256-bit integer; its upper half is the state, its lower half, made odd, the increment.
    """

    __slots__ = ("_increment", "_state")

    def __init__(self, key: int) -> None:
        self._state = key >> 128
        self._increment = key & _MAX_128 | 1

    def word(self) -> int:
        """The next raw word, 0 .. 2**64 - 1."""
        state = self._state = (self._state * _PCG64 + self._increment) & _MAX_128
        folded = (state >> 64 ^ state) & _MAX_64
        turn = state >> 122
        return (folded >> turn | folded << (64 - turn)) & _MAX_64

    def below(self, n: int) -> int:
        """A uniform integer 0 .. n - 1.

        Raises:
            ValueError: when n is not in 1 .. 2**64.
        """
        if not 1 <= n <= 1 << 64:
            raise ValueError(f"expected a bound in 1..2**64, got {n!r}")
        limit = (1 << 64) - (1 << 64) % n  # words from here on would favour small results
        word = self.word()
        while word >= limit:
            word = self.word()
        return word % n

    def unit(self) -> float:
        """A uniform float in [0, 1) with 53 random bits."""
        return (self.word() >> 11) * 2.0**-53

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffles in place (Fisher-Yates, from the last index down)."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def stream(seed: int, *labels: str | int) -> Stream:
    """Derives an independent stream from a seed and labels.

    Args:
        seed: any integer.
        labels: what the stream is for; 1 and "1" are different labels.

    Returns:
        A fresh stream; equal arguments give equal streams.
    """
    key = hashlib.sha256(json.dumps([int(seed), *labels]).encode()).digest()
    return Stream(int.from_bytes(key, "big"))


def block_seed(run_seed: int, block: int) -> int:
    """The 63-bit seed of a block of a run."""
    return stream(run_seed, "block", block).word() >> 1


_MASK = (1 << 64) - 1
_JUMP = 0xBEAC0467EBA5FACB | 0xD86B048B86AA9922 << 64  # applied from the lowest bit up


def _advance(s0: int, s1: int) -> tuple[int, int]:
    """One step of xoroshiro128+ with rotations 55, 14, 36."""
    t = s0 ^ s1
    return (
        (s0 << 55 | s0 >> 9) & _MASK ^ t ^ t << 14 & _MASK,
        (t << 36 | t >> 28) & _MASK,
    )


def _jump(s0: int, s1: int) -> int:
    """The jumped and once advanced state of (s0, s1), packed as s0 | s1 << 64."""
    j0 = j1 = 0
    for bit in range(128):
        if _JUMP >> bit & 1:
            j0 ^= s0
            j1 ^= s1
        s0, s1 = _advance(s0, s1)
    j0, j1 = _advance(j0, j1)  # the first output is thrown away
    return j0 | j1 << 64


@functools.cache
def _jump_tables() -> tuple[tuple[int, ...], ...]:
    """For each byte of a seed, lowest first: the jumped state of every value of that byte.

    Jump and advance are linear over xor, so that the state of a seed is the xor of one entry a byte.
    """
    tables = []
    for byte in range(8):
        entries = [0]
        for bit in range(8 * byte, 8 * byte + 8):
            unit = _jump(0, 1 << bit) if bit < 16 else _jump(1 << bit - 16, 0)
            entries += [entry ^ unit for entry in entries]
        tables.append(tuple(entries))
    return tuple(tables)


@functools.cache
def _jumped_sign() -> int:
    """The part that a negative seed adds: the sixteen sign bits that the shift by 16 brings in."""
    return _jump(0xFFFF << 48, 0)


class NimStream:
    """The standard generator of the Nim language, in which the hosted games' seeds are written.

    Its whole state is `words`, a value that an immutable game state can keep.

    Args:
        seed: any integer; it is wrapped to a signed 64-bit one, and 0 reads as 2147483647.

    Source: xoroshiro128+ (Blackman and Vigna), as seeded by Nim's `initRand`.
    """

    __slots__ = ("_s0", "_s1")

    def __init__(self, seed: int) -> None:
        t0, t1, t2, t3, t4, t5, t6, t7 = _jump_tables()
        seed = seed & _MASK or 2147483647
        state = (
            t0[seed & 255]
            ^ t1[seed >> 8 & 255]
            ^ t2[seed >> 16 & 255]
            ^ t3[seed >> 24 & 255]
            ^ t4[seed >> 32 & 255]
            ^ t5[seed >> 40 & 255]
            ^ t6[seed >> 48 & 255]
            ^ t7[seed >> 56]
        )
        if seed >> 63:
            state ^= _jumped_sign()
        self._s0 = state & _MASK
        self._s1 = state >> 64

    @classmethod
    def at(cls, words: tuple[int, int]) -> NimStream:
        """The stream that continues from a state kept earlier."""
        self = object.__new__(cls)
        self._s0, self._s1 = words
        return self

    @property
    def words(self) -> tuple[int, int]:
        """The state: two words, 0 .. 2**64 - 1 each."""
        return self._s0, self._s1

    def next(self) -> int:
        """The next raw output, 0 .. 2**64 - 1."""
        s0, s1 = self._s0, self._s1
        t = s0 ^ s1  # `_advance`, written out: a call would double the cost of a draw
        self._s0 = (s0 << 55 | s0 >> 9) & _MASK ^ t ^ t << 14 & _MASK
        self._s1 = (t << 36 | t >> 28) & _MASK
        return (s0 + s1) & _MASK

    def rand(self, top: int) -> int:
        """A uniform integer 0 .. top, top included; a top of 0 draws nothing.

        Raises:
            ValueError: when top is not in 0 .. 2**64 - 2.
        """
        if not 0 <= top < _MASK:
            raise ValueError(f"expected a top in 0..2**64-2, got {top!r}")
        if top == 0:
            return 0
        limit = _MASK - _MASK % top  # yes, modulo top: the generator's own way
        word = self.next()
        while word > limit:
            word = self.next()
        return word % (top + 1)

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffles in place, from the last index down."""
        for i in range(len(items) - 1, 0, -1):
            j = self.rand(i)
            items[i], items[j] = items[j], items[i]
