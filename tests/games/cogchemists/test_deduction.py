"""R7 and R11.2, R11.3: the bit sets against a slow count over all permutations."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.games.cogchemists import Cogchemists, deduction
from cogeval.games.cogchemists.constants import MIX, POTIONS, SIGN_CLASS
from cogeval.games.cogchemists.deduction import (
    NO_FACTS,
    NUM_CACHED,
    NUM_CHEMISTRIES,
    SAMPLE_CAP,
    Fact,
    Knowledge,
    MixFull,
    MixSign,
    NotSig,
    knowledge_of,
    permutations,
)
from cogeval.games.cogchemists.state import State

HEAP_START = ("01234567", "10234567", "20134567", "02134567", "12034567", "21034567", "31024567", "13024567")


def in_heap_order() -> list[tuple[int, ...]]:
    table = permutations()
    return [tuple(table[8 * k : 8 * k + 8]) for k in range(NUM_CHEMISTRIES)]


def agrees(chemistry: Sequence[int], fact: Fact) -> bool:
    if isinstance(fact, NotSig):
        return chemistry[fact.a] != fact.signature
    potion = MIX[chemistry[fact.a]][chemistry[fact.b]]
    return potion == fact.potion if isinstance(fact, MixFull) else SIGN_CLASS[potion] == fact.sign


@st.composite
def true_facts(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Fact]]:
    """A chemistry, and facts that hold in it."""
    chemistry = tuple(draw(st.permutations(range(8))))
    ingredient = st.integers(0, 7)
    facts: list[Fact] = []
    for a, b, kind in draw(st.lists(st.tuples(ingredient, ingredient, st.integers(0, 2)), max_size=12)):
        potion = MIX[chemistry[a]][chemistry[b]]
        if kind == 0:
            facts.append(MixFull(a, b, potion))
        elif kind == 1:
            facts.append(MixSign(a, b, SIGN_CLASS[potion]))
        elif chemistry[a] != b:
            facts.append(NotSig(a, b))
    return chemistry, facts


def test_heap_order_is_a_list_of_all_permutations() -> None:
    listed = in_heap_order()
    assert sorted(listed) == list(itertools.permutations(range(8)))
    assert ["".join(map(str, chemistry)) for chemistry in listed[:8]] == list(HEAP_START)
    for one, next_ in itertools.pairwise(listed):
        assert sum(x != y for x, y in zip(one, next_, strict=True)) == 2  # each step swaps two


@settings(max_examples=25, deadline=None)
@given(true_facts())
def test_r7_2_bit_sets_equal_a_slow_recount(case: tuple[tuple[int, ...], list[Fact]]) -> None:
    chemistry, facts = case
    known = knowledge_of(facts)
    left = [other for other in in_heap_order() if all(agrees(other, fact) for fact in facts)]
    assert known.count == len(left)
    assert known.grid == tuple(tuple(sorted({other[a] for other in left})) for a in range(8))
    assert all(chemistry[a] in candidates for a, candidates in enumerate(known.grid))
    assert known.solved == tuple(c[0] if len(c) == 1 else -1 for c in known.grid)
    assert [known.lowest_candidate(a) for a in range(8)] == [candidates[0] for candidates in known.grid]
    assert tuple(known.witness) == left[0]
    sample = left[:SAMPLE_CAP]
    assert (known.sample_size, known.is_truncated) == (len(sample), len(left) >= SAMPLE_CAP)
    for a, b in itertools.combinations(range(8), 2):
        outcomes = Counter(MIX[other[a]][other[b]] for other in sample)
        assert known.worst_case(a, b) == max(outcomes.values())
        potions = {MIX[other[a]][other[b]] for other in left}
        for potion in POTIONS:
            assert known.always_makes(a, b, potion) == (potions == {potion})
        assert known.never_negative(a, b) == all(SIGN_CLASS[potion] != "negative" for potion in potions)


@settings(max_examples=25, deadline=None)
@given(true_facts(), st.integers(0, 7), st.integers(0, 7), st.integers(0, 7))
def test_a_refutation_is_certain_when_it_is_in_every_survivor(
    case: tuple[tuple[int, ...], list[Fact]], a: int, claim: int, b: int
) -> None:
    known = knowledge_of(case[1])
    left = [other for other in in_heap_order() if all(agrees(other, fact) for fact in case[1])]
    certain = all(MIX[other[a]][other[b]] != MIX[claim][other[b]] for other in left)
    assert known.always_refutes(a, claim, b) == certain


@settings(deadline=None)
@given(true_facts(), st.randoms(use_true_random=False))
def test_r7_1_the_order_and_the_batches_of_facts_do_not_matter(
    case: tuple[tuple[int, ...], list[Fact]], random: object
) -> None:
    facts = case[1]
    shuffled = list(facts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    known = NO_FACTS
    for fact in shuffled:
        known = known.learn([fact])
    assert known == knowledge_of(facts)
    assert known.survivors == knowledge_of(facts).survivors
    assert known.learn(facts) is known


def test_twice_the_same_ingredient_teaches_nothing() -> None:  # R2.2
    assert knowledge_of([MixFull(3, 3, "MUD"), MixSign(2, 2, "mud")]) is NO_FACTS


@pytest.mark.parametrize("seed", range(3))
def test_r7_3_grids_of_an_episode_hold_the_truth_and_every_fact(
    seed: int, walk: Callable[..., Iterator[tuple[Cogchemists, State]]]
) -> None:
    for _, state in walk(seed):
        for seat in range(4):
            known = state.known[seat]
            assert known == knowledge_of(state.public_facts, state.private_facts[seat])
            assert all(s in known.grid[a] for a, s in enumerate(state.chemistry))


def test_knowledge_pickles_by_its_facts() -> None:
    known = knowledge_of([MixFull(0, 1, "RED+"), MixSign(5, 2, "mud"), NotSig(7, 0)])
    data = pickle.dumps(known)
    assert len(data) < 300
    deduction._KNOWN.clear()
    again = pickle.loads(data)
    assert (again, again.survivors) == (known, known.survivors)
    assert pickle.loads(pickle.dumps(NO_FACTS)) is NO_FACTS


def test_the_cache_of_knowledge_sets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    cache: dict[int, Knowledge] = {}
    monkeypatch.setattr(deduction, "_KNOWN", cache)
    monkeypatch.setattr(deduction, "NUM_CACHED", 10)
    facts = [NotSig(a, signature) for a in range(8) for signature in range(4)]
    for fact in facts:
        assert knowledge_of([fact]).count == 7 * 5_040
        assert len(cache) <= 10
    assert NUM_CACHED * 6_000 < 30e6  # bytes that a full cache takes


def test_knowledge_says_what_it_is() -> None:
    known = knowledge_of([MixFull(0, 1, "RED+")])
    assert repr(known) == "Knowledge(1 facts, 2880 chemistries)"
    assert known != "knowledge"
    assert hash(known) == hash(knowledge_of([MixFull(1, 0, "RED+")]))
