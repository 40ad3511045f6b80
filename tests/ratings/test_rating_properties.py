"""What must hold of every rating, and how close it comes to planted truths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.ratings import ELO_PER_LOG_UNIT, Table, rate
from cogeval.ratings.cells import break_episodes
from cogeval.ratings.intervals import jackknife, sandwich
from cogeval.ratings.pairwise import Model, fit


@st.composite
def tables(draw) -> Table:
    """Any small table: repeats of an agent, ties, empty seats, agents that never meet or never play."""
    num_agents, num_seats = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    num_episodes, num_blocks = draw(st.integers(1, 24)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    agents = rng.integers(-1, num_agents, (num_episodes, num_seats))
    agents[:, 0] = np.maximum(agents[:, 0], 0)
    blocks = np.unique(rng.integers(0, num_blocks, num_episodes), return_inverse=True)[1]
    return Table(
        agents,
        rng.integers(0, draw(st.integers(1, 4)), agents.shape),
        np.round(rng.normal(size=agents.shape), 1),
        blocks,
        rng.random(agents.shape) < 0.9,
        tuple("abcde"[:num_agents]),
    )


def rearranged(table: Table, order: np.ndarray) -> Table:
    arrays = (table.agents, table.ranks, table.scores, table.blocks, table.seat_scored)
    return Table(*(array[order] for array in arrays), table.names)


@settings(max_examples=150, deadline=None)
@given(tables(), st.booleans(), st.booleans())
def test_every_table_gets_finite_ratings_that_sum_to_0(table, prior, seat_effects) -> None:
    ladder = rate(table, prior=prior, seat_effects=seat_effects)
    elos = np.array([row.elo for row in ladder.rows])
    assert np.isfinite(elos).all()
    assert abs(elos.sum()) < 1e-6
    assert (np.diff(elos) <= 1e-5).all()
    for row in ladder.rows:
        assert (row.elo_low is None) == (row.elo_high is None)
        if row.elo_low is not None and row.elo_high is not None:
            assert row.elo_low <= row.elo <= row.elo_high
            assert ladder.method != "none"
    for a in ladder.rows:
        for b in ladder.rows:
            difference = ladder.difference(a.name, b.name)
            assert (difference.low is None) == (difference.withheld is not None)


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(0, 2**32))
def test_the_order_of_episodes_changes_no_bit(table, seed) -> None:
    order = np.random.default_rng(seed).permutation(table.num_episodes)
    one, other = rate(table), rate(rearranged(table, order))
    assert [(r.name, r.elo, r.elo_low) for r in one.rows] == [(r.name, r.elo, r.elo_low) for r in other.rows]
    assert one.seat_effects == other.seat_effects
    assert one.warnings == other.warnings


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(0, 2**32))
def test_relabelling_agents_permutes_the_ladder(table, seed) -> None:
    number = len(table.names)
    place = np.random.default_rng(seed).permutation(number)
    names = [""] * number
    for old, new in enumerate(place):
        names[new] = table.names[old]
    agents = np.where(table.agents < 0, -1, place[table.agents])
    other = rate(Table(agents, table.ranks, table.scores, table.blocks, table.seat_scored, tuple(names)))
    for row in rate(table).rows:
        twin = other.row(row.name)
        assert twin.elo == pytest.approx(row.elo, abs=1e-6)
        assert (twin.elo_low is None) == (row.elo_low is None)
        if row.elo_low is not None:
            assert twin.elo_low == pytest.approx(row.elo_low, abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), st.integers(0, 2**32))
def test_a_world_of_ties_stays_degenerate_with_one_more_agent(number, seed) -> None:
    for size in (number, number + 1):
        rng = np.random.default_rng(seed)
        agents = np.array([rng.permutation(size)[:2] for _ in range(12)])
        zeros = np.zeros(agents.shape)
        names = tuple(f"a{i}" for i in range(size))
        ladder = rate(Table(agents, zeros.astype(int), zeros, np.arange(12), zeros == 0, names))
        assert any("degenerate" in warning for warning in ladder.warnings)
        assert {row.elo for row in ladder.rows} == {0.0}


def test_planted_strengths_and_seat_effects_come_back(planted) -> None:
    rng = np.random.default_rng(5)
    strength, advantage = np.array([0.6, 0.2, 0.0, -0.2, -0.6]), np.array([0.45, 0.0, -0.15, -0.3])
    lineups = np.array([rng.permutation(5)[:4] for _ in range(12_000)])
    ladder = rate(planted(rng, lineups, np.arange(12_000) // 4, strength, advantage=advantage))
    for i, wanted in enumerate(strength * ELO_PER_LOG_UNIT):
        row = ladder.row(f"a{i}")
        assert row.elo == pytest.approx(wanted, abs=8.0)
        assert row.elo_low is not None
        assert row.elo_low - 4 < wanted < row.elo_high + 4
    assert [e.elo for e in ladder.seat_effects] == pytest.approx(list(advantage * ELO_PER_LOG_UNIT), abs=8.0)
    assert sum(e.elo for e in ladder.seat_effects) == pytest.approx(0.0, abs=1e-9)


def test_six_equal_agents_in_index_order_are_equal_with_the_seat_term_only(planted) -> None:
    rng = np.random.default_rng(6)
    lineups = np.sort([rng.permutation(6)[:4] for _ in range(12_000)], axis=1)
    advantage = np.array([0.5, 0.1, -0.1, -0.5])
    table = planted(rng, lineups, np.arange(12_000) // 4, np.zeros(6), advantage=advantage)
    with_term, without = rate(table), rate(table, seat_effects=False)
    assert max(abs(row.elo) for row in with_term.rows) < 25
    assert [row.name for row in without.rows] == [f"a{i}" for i in range(6)]
    assert without.rows[0].elo > 40 > -40 > without.rows[-1].elo


def test_jackknife_and_sandwich_agree_on_many_blocks(planted) -> None:
    rng = np.random.default_rng(7)
    lineups = np.array(
        [np.roll(p, k) for p in (rng.permutation(5)[:4] for _ in range(400)) for k in range(4)]
    )
    table = planted(rng, lineups, np.repeat(np.arange(400), 4), np.linspace(0.5, -0.5, 5), luck=0.6)
    blocks = break_episodes(table)
    model = Model(blocks.totals)
    estimate = fit(model)
    one, other = jackknife(blocks, model, estimate), sandwich(blocks, model, estimate)
    assert one is not None
    scale = one.theta.diagonal().mean()
    np.testing.assert_allclose(one.theta, other.theta, atol=0.03 * scale)
    np.testing.assert_allclose(one.seat, other.seat, atol=0.03 * one.seat.diagonal().mean())


def test_no_seat_term_gives_the_same_cells_whatever_the_seats(planted) -> None:
    rng = np.random.default_rng(8)
    lineups = np.array([rng.permutation(4)[:3] for _ in range(50)])
    table = planted(rng, lineups, np.arange(50), np.zeros(4))
    mirrored = Table(
        table.agents[:, ::-1],
        table.ranks[:, ::-1],
        table.scores[:, ::-1],
        table.blocks,
        table.seat_scored[:, ::-1],
        table.names,
    )
    one, other = (break_episodes(t, seats=False).totals.win_matrix() for t in (table, mirrored))
    np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(one, break_episodes(table).totals.win_matrix())


@pytest.mark.parametrize("num_blocks", [12, 60])
def test_a_nominal_95_percent_interval_covers_about_that_often(planted, num_blocks) -> None:
    # 200 replicates: the share covered has a standard error of 1.5 points. Luck of the block is strong,
    # so that an interval over episodes or pairs would cover far less.
    strength = np.array([0.3, 0.1, -0.1, -0.3])
    covered = 0
    for replicate in range(200):
        rng = np.random.default_rng([9, num_blocks, replicate])
        lineups = np.array([np.roll(rng.permutation(4), k) for _ in range(num_blocks) for k in range(4)])
        table = planted(rng, lineups, np.repeat(np.arange(num_blocks), 4), strength, luck=0.8)
        difference = rate(table, seat_effects=False).difference("a0", "a3")
        truth = marginal_difference(0.6, 0.8)
        assert difference.low is not None
        covered += difference.low <= truth * ELO_PER_LOG_UNIT <= difference.high
    assert 180 <= covered <= 198, f"{covered} of 200 intervals hold the truth"


def marginal_difference(gap: float, luck: float) -> float:
    """The log odds of the mean chance when block luck of both agents is averaged out (Gauss-Hermite)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    chance = (weights / weights.sum()) @ (1 / (1 + np.exp(-(gap + np.sqrt(2) * luck * nodes))))
    return float(np.log(chance / (1 - chance)))
