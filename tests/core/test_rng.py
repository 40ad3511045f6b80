"""Golden vectors and properties of the random streams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.core.rng import NimStream, Stream, block_seed, stream

# seed -> first three outputs of the generator that the hosted games use
NIM_OUTPUTS = {
    0: (12661604540818092409, 1873757515068013651, 7002035371276047290),
    1: (12085280580565905403, 3367488540494387672, 7616340235764766228),
    42: (13116147265143467386, 8078870983319259051, 2289522890264612378),
    65536: (1230559231407066071, 17513133921353202413, 9716219179293378132),
    -1: (11189504895754019889, 2492135860283026539, 17618873521708289964),
    -17: (1738385026266532043, 7977307643505235775, 11727623613431384252),
    9223372036854775807: (15471839691965581026, 279202585057219359, 14576286278757460815),
    -9223372036854775808: (972741610207243009, 4743162440647605100, 3930416015006529775),
}
NIM_SHUFFLES = {
    0: [4, 7, 5, 0, 3, 2, 6, 1],
    1: [2, 1, 0, 7, 5, 4, 6, 3],
    42: [6, 4, 0, 3, 1, 7, 5, 2],
    65536: [5, 4, 3, 2, 6, 0, 1, 7],
    -1: [3, 5, 6, 4, 2, 0, 7, 1],
    -17: [0, 4, 6, 7, 1, 2, 5, 3],
    9223372036854775807: [7, 0, 6, 1, 5, 3, 4, 2],
    -9223372036854775808: [3, 2, 6, 4, 5, 7, 0, 1],
}


class _PlainNim:
    """The generator as its definition reads: one jump, bit by bit."""

    mask = (1 << 64) - 1

    def __init__(self, seed: int) -> None:
        signed = (seed + (1 << 63)) % (1 << 64) - (1 << 63) or 2147483647
        self.s0, self.s1 = signed >> 16 & self.mask, signed & 0xFFFF
        a0 = a1 = 0
        for constant in (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922):
            for bit in range(64):
                if constant >> bit & 1:
                    a0, a1 = a0 ^ self.s0, a1 ^ self.s1
                self.next()
        self.s0, self.s1 = a0, a1
        self.next()

    def next(self) -> int:
        out, t = (self.s0 + self.s1) & self.mask, self.s0 ^ self.s1
        self.s0 = self._rotate(self.s0, 55) ^ t ^ (t << 14 & self.mask)
        self.s1 = self._rotate(t, 36)
        return out

    def _rotate(self, word: int, by: int) -> int:
        return (word << by | word >> 64 - by) & self.mask


@pytest.mark.parametrize(("seed", "outputs"), NIM_OUTPUTS.items())
def test_nim_stream_gives_the_golden_outputs(seed: int, outputs: tuple[int, ...]) -> None:
    nim = NimStream(seed)
    assert tuple(nim.next() for _ in outputs) == outputs


@pytest.mark.parametrize(("seed", "order"), NIM_SHUFFLES.items())
def test_nim_stream_gives_the_golden_shuffles(seed: int, order: list[int]) -> None:
    items = list(range(8))
    NimStream(seed).shuffle(items)
    assert items == order


@settings(deadline=None)
@given(st.integers(-(1 << 70), 1 << 70))
def test_nim_seeding_by_tables_equals_the_jump_bit_by_bit(seed: int) -> None:
    plain, nim = _PlainNim(seed), NimStream(seed)
    assert nim.words == (plain.s0, plain.s1)
    assert [nim.next() for _ in range(3)] == [plain.next() for _ in range(3)]


@settings(deadline=None)
@given(st.integers(), st.integers(0, 40))
def test_nim_stream_goes_on_from_its_words(seed: int, num_draws: int) -> None:
    nim = NimStream(seed)
    for _ in range(num_draws):
        nim.rand(7)
    assert NimStream.at(nim.words).next() == nim.next()


@settings(deadline=None)
@given(st.integers(), st.integers(0, (1 << 64) - 2))
def test_nim_rand_stays_within_its_top(seed: int, top: int) -> None:
    nim = NimStream(seed)
    assert all(0 <= nim.rand(top) <= top for _ in range(5))


def test_nim_rand_of_zero_draws_nothing() -> None:
    nim = NimStream(3)
    before = nim.words
    assert nim.rand(0) == 0
    assert nim.words == before


@pytest.mark.parametrize("top", [-1, (1 << 64) - 1])
def test_nim_rand_names_a_top_out_of_range(top: int) -> None:
    with pytest.raises(ValueError, match=f"expected a top in 0..2\\*\\*64-2, got {top}"):
        NimStream(1).rand(top)


STREAM_WORDS = {
    (0,): (10664783025793198786, 831167387812335920, 16345201089613786487),
    (7, "agent", 0): (13471430683931574516, 8553636311971413325, 6782817326314519708),
    (-5, "block", 3): (12823258023990773714, 15330631506005644634, 6901834356669708388),
}


@pytest.mark.parametrize(("labels", "words"), STREAM_WORDS.items())
def test_stream_gives_the_golden_words(labels: tuple[int | str, ...], words: tuple[int, ...]) -> None:
    seed, *rest = labels
    ours = stream(int(seed), *rest)
    assert tuple(ours.word() for _ in words) == words


def test_stream_golden_draws() -> None:
    ours = stream(7, "draws")
    items = list(range(8))
    ours.shuffle(items)
    assert ([ours.below(10) for _ in range(8)], items, ours.unit()) == (
        [9, 2, 9, 3, 0, 2, 2, 3],
        [4, 2, 1, 3, 6, 5, 0, 7],
        0.8966145676407492,
    )


def test_block_seeds_are_golden_63_bit_draws() -> None:
    assert [block_seed(0, block) for block in range(3)] == [
        5937105830385308497,
        334503600249491857,
        2880940660348254767,
    ]
    assert all(0 <= block_seed(5, block) < 1 << 63 for block in range(100))


def test_stream_labels_of_other_types_are_other_streams() -> None:
    assert stream(1, 2).word() != stream(1, "2").word()
    assert stream(1, "a", "b").word() != stream(1, "ab").word()


@given(st.integers(0, (1 << 256) - 1))
def test_words_are_those_of_numpys_pcg64_in_the_same_state(key: int) -> None:
    state = {"state": key >> 128, "inc": key & ((1 << 128) - 1) | 1}
    theirs = np.random.PCG64()
    theirs.state = {"bit_generator": "PCG64", "state": state, "has_uint32": 0, "uinteger": 0}
    ours = Stream(key)
    assert [ours.word() for _ in range(50)] == theirs.random_raw(50).tolist()


@settings(deadline=None)
@given(st.integers(), st.integers(1, 1 << 64))
def test_below_stays_below(seed: int, bound: int) -> None:
    assert 0 <= stream(seed).below(bound) < bound


@pytest.mark.parametrize("bound", [0, -1, (1 << 64) + 1])
def test_below_names_a_bound_out_of_range(bound: int) -> None:
    with pytest.raises(ValueError, match=r"expected a bound in 1..2\*\*64, got"):
        stream(0).below(bound)


@settings(deadline=None)
@given(st.integers(), st.lists(st.integers()))
def test_shuffle_keeps_the_items(seed: int, items: list[int]) -> None:
    shuffled = list(items)
    stream(seed).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)


def test_below_is_uniform_enough() -> None:
    ours = stream(0, "uniform")
    counts = np.bincount([ours.below(6) for _ in range(60_000)], minlength=6)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 20.5  # chi-square, 5 degrees, 0.999
