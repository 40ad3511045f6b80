"""All chemistries in the order of Heap's algorithm, and which of them each outcome allows.

Invariant: every mask is an integer whose bit k stands for the k-th permutation. Masks are computed when
they are first asked for, so that importing the game costs nothing.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
import numpy.typing as npt

from cogeval.games.cogchemists.constants import MIX, NUM_INGREDIENTS, POTIONS, SIGN_CLASS, SIGN_CLASSES

NUM_CHEMISTRIES: Final = 40_320  # 8!
EVERYTHING: Final = (1 << NUM_CHEMISTRIES) - 1


def heap_permutations() -> bytes:
    """All permutations of 0..7 in the order of Heap's algorithm, eight bytes each.

    Source: B. R. Heap, "Permutations by Interchanges", The Computer Journal 6 (1963), unrolled: each
    permutation comes from the one before by a single swap.
    """
    items = bytearray(range(NUM_INGREDIENTS))
    counters = [0] * NUM_INGREDIENTS
    found = [bytes(items)]
    level = 1
    while level < NUM_INGREDIENTS:
        if counters[level] < level:
            other = counters[level] if level % 2 else 0
            items[other], items[level] = items[level], items[other]
            found.append(bytes(items))
            counters[level] += 1
            level = 1
        else:
            counters[level] = 0
            level += 1
    return b"".join(found)


@functools.cache
def permutations() -> bytes:
    """`heap_permutations`, computed once: byte 8 k + i is the signature of ingredient i in the k-th."""
    return heap_permutations()


@functools.cache
def _signature_columns() -> npt.NDArray[np.uint8]:
    """Shape (8, 40320): row i holds the signature of ingredient i in every chemistry."""
    table = np.frombuffer(permutations(), dtype=np.uint8).reshape(NUM_CHEMISTRIES, NUM_INGREDIENTS)
    return np.ascontiguousarray(table.T)


@functools.cache
def _potion_codes() -> npt.NDArray[np.uint8]:
    """Shape (8, 8): the index in POTIONS of each mix of two signatures."""
    return np.array([[POTIONS.index(potion) for potion in row] for row in MIX], dtype=np.uint8)


def _as_bits(selected: npt.NDArray[np.bool_]) -> int:
    """A bit set from one boolean a chemistry."""
    return int.from_bytes(np.packbits(selected, bitorder="little").tobytes(), "little")


@functools.cache
def mix_masks(a: int, b: int) -> dict[str, int]:
    """For each potion: the chemistries in which ingredients a < b make it."""
    columns = _signature_columns()
    codes = _potion_codes()[columns[a], columns[b]]
    return {potion: _as_bits(codes == code) for code, potion in enumerate(POTIONS)}


@functools.cache
def sign_masks(a: int, b: int) -> dict[str, int]:
    """For each sign class: the chemistries in which ingredients a < b make a potion of it."""
    masks = dict.fromkeys(SIGN_CLASSES, 0)
    for potion, mask in mix_masks(a, b).items():
        masks[SIGN_CLASS[potion]] |= mask
    return masks


@functools.cache
def signature_masks(a: int) -> tuple[int, ...]:
    """For each signature: the chemistries in which ingredient a has it."""
    column = _signature_columns()[a]
    return tuple(_as_bits(column == signature) for signature in range(NUM_INGREDIENTS))


@functools.cache
def refuting_mask(a: int, claim: int, b: int) -> int:
    """The chemistries in which mixing a with reagent b contradicts that a has signature `claim`."""
    columns, codes = _signature_columns(), _potion_codes()
    return _as_bits(codes[columns[a], columns[b]] != codes[claim, columns[b]])
