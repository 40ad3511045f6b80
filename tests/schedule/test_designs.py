"""Who plays whom: balance, laziness, identity and what bad input gets."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.core.rng import block_seed
from cogeval.errors import InputError
from cogeval.schedule import designs
from cogeval.schedule.designs import DESIGNS, Schedule, make_schedule
from cogeval.schedule.lineups import balanced_lineups, distinct_rotations

sizes = st.tuples(st.integers(1, 12), st.integers(1, 6))


def schedule(design: str = "round_robin", num_agents: int = 3, num_seats: int = 4, blocks: int = 10,
             **more: object) -> Schedule:  # fmt: skip
    arguments = {"run_seed": 0, **more}
    return make_schedule(design, num_agents=num_agents, num_seats=num_seats, blocks=blocks, **arguments)  # type: ignore[arg-type]


def spread(counts: list[int]) -> int:
    return max(counts) - min(counts)


@settings(max_examples=60, deadline=None)
@given(sizes, st.integers(1, 60), st.sampled_from(sorted(DESIGNS)), st.integers(0, 5))
def test_every_agent_sits_in_every_seat_equally_often_to_within_one(
    size: tuple[int, int], blocks: int, design: str, run_seed: int
) -> None:
    num_agents, num_seats = size
    sat: Counter[tuple[int, int]] = Counter()
    for slot in schedule(design, num_agents, num_seats, blocks, run_seed=run_seed):
        sat.update((agent, seat) for seat, agent in enumerate(slot.lineup))
    cells = [sat[a, s] for a in range(num_agents) for s in range(num_seats)]
    assert spread(cells) <= 1, sat


@settings(max_examples=60, deadline=None)
@given(sizes, st.integers(1, 60))
def test_every_agent_appears_equally_often_to_within_one_after_every_block(
    size: tuple[int, int], blocks: int
) -> None:
    num_agents, num_seats = size
    seen: Counter[int] = Counter()
    for slot in schedule("round_robin", num_agents, num_seats, blocks):
        seen.update(slot.lineup)
        assert spread([seen[a] for a in range(num_agents)]) <= 1


@given(sizes)
@settings(max_examples=40, deadline=None)
def test_a_lineup_repeats_agents_as_evenly_as_possible(size: tuple[int, int]) -> None:
    num_agents, num_seats = size
    for slot in schedule("round_robin", num_agents, num_seats, 20):
        held = Counter(slot.lineup)
        assert spread([held[a] for a in range(num_agents)]) <= 1


@pytest.mark.parametrize(("num_agents", "num_seats"), [(3, 2), (5, 3), (6, 4), (10, 4), (12, 6), (7, 5)])
def test_pairs_meet_equally_often_as_nearly_as_possible(num_agents: int, num_seats: int) -> None:
    met: Counter[tuple[int, int]] = Counter()
    for i, slot in enumerate(schedule("round_robin", num_agents, num_seats, 300)):
        met.update(combinations(sorted(slot.lineup), 2))
        counts = [met[pair] for pair in combinations(range(num_agents), 2)]
        assert spread(counts) <= 5, f"after {i + 1} blocks: {met}"


def test_a_large_pool_leaves_no_pair_unmet() -> None:
    met: Counter[tuple[int, int]] = Counter()
    for lineup in balanced_lineups(100, 4, 0, 2500):  # 3 meetings a pair on average
        met.update(combinations(sorted(lineup), 2))
    counts = [met[pair] for pair in combinations(range(100), 2)]
    assert min(counts) >= 1
    assert max(counts) <= 5


@pytest.mark.parametrize("lineup", [(0,), (0, 0, 0), (0, 1, 0, 1), (0, 0, 1, 1), (0, 1, 2, 3), (2, 0, 2)])
def test_rotations_are_all_and_distinct(lineup: tuple[int, ...]) -> None:
    rotations = distinct_rotations(lineup)
    assert rotations[0] == lineup
    assert len(rotations) == len(set(rotations))
    assert set(rotations) == {lineup[i:] + lineup[:i] for i in range(len(lineup))}


def test_rotations_of_a_block_share_its_seed() -> None:
    slots = list(schedule("rotations", num_agents=3, num_seats=4, blocks=5))
    assert len(slots) == 20
    for block in range(5):
        of_block = slots[4 * block : 4 * block + 4]
        assert {s.block for s in of_block} == {block}
        assert {s.seed for s in of_block} == {block_seed(0, block)}
        assert len({s.lineup for s in of_block}) == 4


@settings(max_examples=40, deadline=None)
@given(sizes, st.sampled_from(sorted(DESIGNS)), st.integers(1, 40), st.integers(1, 3))
def test_blocks_follow_each_other_without_gaps(
    size: tuple[int, int], design: str, blocks: int, replicates: int
) -> None:
    made = schedule(design, *size, blocks, replicates=replicates)
    slots = list(made)
    assert [s.index for s in slots] == list(range(len(made)))
    starts = [s.block for s in slots]
    assert starts == sorted(starts)
    assert set(starts) == set(range(blocks))
    assert len({(s.block, s.lineup, s.replicate) for s in slots}) == len(slots)
    assert {s.replicate for s in slots} == set(range(replicates))


def test_random_access_gives_what_iteration_gives() -> None:
    made = schedule("rotations", num_agents=2, num_seats=4, blocks=1200, replicates=2)  # several cycles
    slots = list(made)
    assert [made[i] for i in range(len(made) - 1, -1, -1)] == slots[::-1]
    assert made[-1] == slots[-1]
    assert made[3:9:2] == slots[3:9:2]
    with pytest.raises(IndexError, match="expected an index below"):
        made[len(made)]


def test_a_huge_schedule_is_made_without_walking_it() -> None:
    made = schedule("rotations", num_agents=3, num_seats=4, blocks=10**8)
    assert len(made) == 4 * 10**8
    assert made[4 * 10**8 - 1].block == 10**8 - 1


@pytest.mark.parametrize("design", sorted(DESIGNS))
def test_more_blocks_begin_with_the_same_episodes(design: str) -> None:
    few, many = schedule(design, 10, 4, 7), schedule(design, 10, 4, 900)
    assert list(few) == many[: len(few)]


def test_the_run_seed_decides_lineups_and_seeds() -> None:
    one, two = schedule(num_agents=9, run_seed=1), schedule(num_agents=9, run_seed=2)
    assert [s.lineup for s in one] != [s.lineup for s in two]
    assert [s.seed for s in one] == [block_seed(1, b) for b in range(10)]
    assert one.digest() != two.digest()


def test_listed_seeds_are_played_in_their_order() -> None:
    made = schedule(blocks=3, seeds=[7, -1, 2**63 - 1, 99])
    assert [s.seed for s in made] == [7, -1, 2**63 - 1]


def test_the_digest_covers_every_argument() -> None:
    variants = [schedule(), schedule("rotations"), schedule(num_agents=4), schedule(num_seats=3),
                schedule(blocks=11), schedule(run_seed=1), schedule(replicates=2),
                schedule(seeds=range(10)), schedule(seeds=range(1, 11))]  # fmt: skip
    assert len({made.digest() for made in variants}) == len(variants)
    assert schedule().digest() == schedule().digest()


def test_the_digest_notices_a_changed_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    before = schedule("rotations").digest()
    monkeypatch.setattr(designs, "distinct_rotations", lambda lineup: distinct_rotations(lineup)[::-1])
    assert schedule("rotations").digest() != before


def test_one_agent_alone_is_legal() -> None:
    assert [s.lineup for s in schedule("rotations", num_agents=1, blocks=2)] == [(0, 0, 0, 0)] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"design": "rotation"}, r"unknown schedule.design 'rotation'; known, closest first: rotations, r"),
        ({"blocks": -3}, r"expected schedule.blocks of at least 1, got -3"),
        ({"blocks": 0}, r"expected schedule.blocks of at least 1, got 0"),
        ({"blocks": True}, r"expected schedule.blocks of at least 1, got True"),
        ({"replicates": 0}, r"expected schedule.replicates of at least 1, got 0"),
        (
            {"num_agents": 0},
            r"expected a pool of at least 1 agent for schedule.design=round_robin, got 0; add",
        ),
        (
            {"seeds": [1, 2]},
            r"at least 10 schedule.seeds for schedule.blocks=10, got 2; list more seeds or set",
        ),
        ({"seeds": [*range(9), 3]}, r"expected distinct schedule.seeds, got 3 at 3 and at 9; remove one"),
        ({"seeds": [*range(9), 2**63]}, r"signed 64-bit integers, got 9223372036854775808 at 9"),
        ({"seeds": [*range(9), "x"]}, r"signed 64-bit integers, got 'x' at 9"),
    ],
)
def test_bad_input_is_quoted_with_the_way_out(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        schedule(**arguments)  # type: ignore[arg-type]


def test_a_design_that_needs_more_agents_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_two = designs.Design("swap", "two exchange seats", 2, lambda *_: (((0, 1), (1, 0)),))
    monkeypatch.setattr(designs, "DESIGNS", {**DESIGNS, "swap": needs_two})
    with pytest.raises(InputError, match=r"at least 2 agents for schedule.design=swap, got 1"):
        schedule("swap", num_agents=1, num_seats=2)
