"""Exact deduction: which of the 40,320 chemistries a set of facts leaves.

Invariant: a `Knowledge` is a bit set over all permutations in the order of Heap's algorithm (bit k is
the k-th), the intersection of one precomputed mask per fact; every answer is a bit operation on it.
Must not know states, seats or the true chemistry.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from cogeval.games.cogchemists.constants import MIX, NUM_INGREDIENTS, POTIONS, SIGN_CLASSES
from cogeval.games.cogchemists.masks import (
    EVERYTHING,
    NUM_CHEMISTRIES,
    mix_masks,
    permutations,
    refuting_mask,
    sign_masks,
    signature_masks,
)

__all__ = [
    "NO_FACTS",
    "NUM_CACHED",
    "NUM_CHEMISTRIES",
    "SAMPLE_CAP",
    "Fact",
    "Knowledge",
    "MixFull",
    "MixSign",
    "NotSig",
    "knowledge_of",
    "permutations",
]

SAMPLE_CAP: Final = 3_000  # R11.2: the assayer looks at no more chemistries than this
NUM_CACHED: Final = 4_096  # knowledge sets kept for reuse, about 6 KB each


class MixFull(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="mixFull"):
    """Ingredients a and b, as they were named, make this potion."""

    a: int  # 0..7
    b: int  # 0..7
    potion: str  # one of POTIONS


class MixSign(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="mixSign"):
    """Ingredients a and b, as they were named, make a potion of this sign class."""

    a: int  # 0..7
    b: int  # 0..7
    sign: str  # one of SIGN_CLASSES


class NotSig(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="notSig"):
    """Ingredient a has not this signature."""

    a: int  # 0..7
    signature: int  # 0..7


Fact: TypeAlias = MixFull | MixSign | NotSig


@functools.cache
def _numbered_fact(fact: Fact) -> tuple[int, int]:
    """A fact's bit in `Knowledge.key`, and its mask; (0, everything) when it excludes nothing."""
    if isinstance(fact, NotSig):
        number = 280 + fact.a * NUM_INGREDIENTS + fact.signature
        return 1 << number, EVERYTHING ^ signature_masks(fact.a)[fact.signature]
    if fact.a == fact.b:
        return 0, EVERYTHING  # the same ingredient twice is mud in every chemistry (R2.2)
    a, b = (fact.a, fact.b) if fact.a < fact.b else (fact.b, fact.a)
    pair = b * (b - 1) // 2 + a  # 0..27
    if isinstance(fact, MixFull):
        return 1 << pair * 7 + POTIONS.index(fact.potion), mix_masks(a, b)[fact.potion]
    return 1 << 196 + pair * 3 + SIGN_CLASSES.index(fact.sign), sign_masks(a, b)[fact.sign]


@functools.cache
def _masks_by_number() -> dict[int, int]:
    """Every fact's mask by its bit number, to rebuild a knowledge set from its key alone."""
    masks = {}
    for b in range(NUM_INGREDIENTS):
        for fact in (
            *(MixFull(a, b, potion) for a in range(b) for potion in POTIONS),
            *(MixSign(a, b, sign) for a in range(b) for sign in SIGN_CLASSES),
            *(NotSig(b, signature) for signature in range(NUM_INGREDIENTS)),
        ):
            bit, mask = _numbered_fact(fact)
            masks[bit.bit_length() - 1] = mask
    return masks


class Knowledge:
    """The chemistries that a set of facts leaves; a value, shared between seats and episodes.

    Args:
        key: which facts, one bit each; equal keys mean equal knowledge.
        survivors: bit k is set when the k-th permutation agrees with every fact. Never 0.
    """

    __slots__ = ("_candidates", "_count", "_sample", "_solved", "_witness", "_worst", "key", "survivors")

    def __init__(self, key: int, survivors: int) -> None:
        self.key = key
        self.survivors = survivors
        self._count = -1
        self._witness = b""
        self._sample = 0
        self._solved: tuple[int, ...] | None = None
        self._candidates = [0] * NUM_INGREDIENTS
        self._worst: dict[tuple[int, int], int] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Knowledge) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[object, ...]:
        return _from_key, (self.key,)

    def __repr__(self) -> str:
        return f"Knowledge({self.key.bit_count()} facts, {self.count} chemistries)"

    def learn(self, facts: Iterable[Fact]) -> Knowledge:
        """The knowledge with these facts added (R7.1)."""
        key, masks = self.key, []
        for fact in facts:
            bit, mask = _numbered_fact(fact)
            if bit & ~key:
                key |= bit
                masks.append(mask)
        if not masks:
            return self
        known = _KNOWN.get(key)
        if known is None:
            survivors = self.survivors
            for mask in masks:
                survivors &= mask
            known = _remember(Knowledge(key, survivors))
        return known

    @property
    def count(self) -> int:
        """How many chemistries are left, 1..40320."""
        if self._count < 0:
            self._count = self.survivors.bit_count()
        return self._count

    def candidates(self, a: int) -> int:
        """The signatures that ingredient a still takes, as a bit set of eight (R7.2)."""
        found = self._candidates[a]
        if not found:
            for signature, mask in enumerate(signature_masks(a)):
                if self.survivors & mask:
                    found |= 1 << signature
            self._candidates[a] = found
        return found

    def lowest_candidate(self, a: int) -> int:
        """The lowest signature that ingredient a still takes."""
        for signature, mask in enumerate(signature_masks(a)):
            if self.survivors & mask:
                return signature
        raise AssertionError("no chemistry survives")

    @property
    def grid(self) -> tuple[tuple[int, ...], ...]:
        """For each ingredient: its candidate signatures, ascending (R7.2)."""
        return tuple(
            tuple(s for s in range(NUM_INGREDIENTS) if self.candidates(a) >> s & 1)
            for a in range(NUM_INGREDIENTS)
        )

    @property
    def witness(self) -> bytes:
        """The first surviving chemistry: byte i is the signature of ingredient i."""
        if not self._witness:
            first = (self.survivors & -self.survivors).bit_length() - 1
            self._witness = permutations()[8 * first : 8 * first + 8]
        return self._witness

    @property
    def solved(self) -> tuple[int, ...]:
        """For each ingredient: its only candidate, or -1 while it has several."""
        if self._solved is None:
            # What all survivors share, the first one has: eight tests instead of sixty-four.
            survivors = self.survivors
            self._solved = tuple(
                s if survivors & signature_masks(a)[s] == survivors else -1
                for a, s in enumerate(self.witness)
            )
        return self._solved

    def always_makes(self, a: int, b: int, potion: str) -> bool:
        """True when every survivor mixes a < b into the potion."""
        if MIX[self.witness[a]][self.witness[b]] != potion:
            return False
        return self.survivors & mix_masks(a, b)[potion] == self.survivors

    def always_refutes(self, a: int, claim: int, b: int) -> bool:
        """True when by every survivor a mix of a with b contradicts the claimed signature of a."""
        x, y = self.witness[a], self.witness[b]
        if MIX[x][y] == MIX[claim][y]:
            return False
        return self.survivors & refuting_mask(a, claim, b) == self.survivors

    def never_negative(self, a: int, b: int) -> bool:
        """True when no survivor mixes a < b into a negative potion."""
        return not self.survivors & sign_masks(a, b)["negative"]

    @property
    def is_truncated(self) -> bool:
        """True when the assayer's sample does not prove anything (R11.2)."""
        return self.count >= SAMPLE_CAP

    @property
    def sample_size(self) -> int:
        """How many chemistries the assayer looks at."""
        return min(self.count, SAMPLE_CAP)

    @property
    def sample(self) -> int:
        """The first `sample_size` survivors, as a bit set (R11.2)."""
        if not self._sample:
            self._sample = self.survivors if self.count <= SAMPLE_CAP else _lowest_bits(self.survivors)
        return self._sample

    def worst_case(self, a: int, b: int) -> int:
        """The largest number of sampled chemistries that one outcome of mixing a < b leaves (R11.3)."""
        worst = self._worst.get((a, b))
        if worst is None:
            sample, unseen, worst = self.sample, self.sample_size, 0
            masks = mix_masks(a, b)
            for potion in _COMMON_FIRST:
                num = (sample & masks[potion]).bit_count()
                worst = max(worst, num)
                unseen -= num
                if unseen <= worst:  # the other outcomes share what is left: none can be larger
                    break
            self._worst[a, b] = worst
        return worst


_COMMON_FIRST: Final = ("MUD", *POTIONS[:-1])


def _lowest_bits(survivors: int) -> int:
    """The lowest SAMPLE_CAP set bits, by bisection on the length of the prefix."""
    low, high = SAMPLE_CAP, NUM_CHEMISTRIES
    while low < high:
        middle = (low + high) // 2
        if (survivors & (1 << middle) - 1).bit_count() < SAMPLE_CAP:
            low = middle + 1
        else:
            high = middle
    return survivors & (1 << low) - 1


NO_FACTS: Final = Knowledge(0, EVERYTHING)
_KNOWN: dict[int, Knowledge] = {}


def _remember(knowledge: Knowledge) -> Knowledge:
    """Keeps a knowledge set for reuse; memory stays bounded because a full cache starts afresh."""
    if len(_KNOWN) >= NUM_CACHED:
        _KNOWN.clear()
    _KNOWN[knowledge.key] = knowledge
    return knowledge


def _from_key(key: int) -> Knowledge:
    """Rebuilds a knowledge set from the facts that its key names (unpickling)."""
    if not key:
        return NO_FACTS
    known = _KNOWN.get(key)
    if known is None:
        survivors = EVERYTHING
        for number, mask in _masks_by_number().items():
            if key >> number & 1:
                survivors &= mask
        known = _remember(Knowledge(key, survivors))
    return known


def knowledge_of(*facts: Iterable[Fact]) -> Knowledge:
    """The knowledge that facts give, from nothing; the order of the facts does not matter."""
    return NO_FACTS.learn(fact for group in facts for fact in group)
