"""Numbers from independent libraries (choix, statsmodels, scipy); each vector names its source."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cogeval.ratings import ELO_PER_LOG_UNIT, Table, rate
from cogeval.ratings.cells import BlockCells, break_episodes, cells_from_matrix
from cogeval.ratings.diagnostics import connectivity
from cogeval.ratings.intervals import jackknife, one_sided_bound, sandwich, t_quantile, without_block
from cogeval.ratings.pairwise import Fit, Model, fit

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
EPISODES = VECTORS["03_bt_block_sandwich"]["inputs"]


def expected(vector: str) -> dict:
    return VECTORS[vector]["expected"]


def near(values, wanted, vector: str, scale: float = 1.0) -> None:
    # The vectors are printed to so many digits; the tolerance of each is stated with it.
    tolerance = max(VECTORS[vector]["tolerance"], 1e-6) * scale
    np.testing.assert_allclose(values, wanted, atol=tolerance, rtol=0)


@pytest.fixture(scope="module")
def episodes(table_of) -> Table:
    return table_of("ABCDE", EPISODES["agents"], EPISODES["scores"], EPISODES["seeds"])


def fitted(table: Table, *, seats: bool) -> tuple[BlockCells, Model, Fit]:
    blocks = break_episodes(table, seats=seats, weighted=False)
    model = Model(blocks.totals, prior_games=0.0, seats=seats)
    return blocks, model, fit(model)


def errors(covariance: np.ndarray) -> np.ndarray:
    return np.sqrt(covariance.diagonal())


def difference_error(covariance: np.ndarray, i: int, j: int) -> float:
    return float(np.sqrt(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]))


def test_01_maximum_likelihood_from_a_win_matrix() -> None:
    vector = "01_bt_mle"
    cells = cells_from_matrix(np.array(VECTORS[vector]["inputs"]["wins"]))
    estimate = fit(Model(cells, prior_games=0.0))
    assert estimate.converged
    near(estimate.theta, expected(vector)["log_strength"], vector)
    near(estimate.theta * ELO_PER_LOG_UNIT, expected(vector)["elo"], vector, 100)


def test_02_ties_are_half_wins_and_the_sandwich_takes_every_game_as_a_block(duels) -> None:
    vector = "02_bt_half_ties_sandwich"
    inputs = VECTORS[vector]["inputs"]
    games = [
        f"{a}{b}"
        for i, a in enumerate("ABC")
        for j, b in enumerate("ABC")
        for _ in range(int(inputs["wins"][i][j]))
    ]
    games += [
        f"{'ABC'[i]}={'ABC'[j]}" for i in range(3) for j in range(i) for _ in range(int(inputs["ties"][i][j]))
    ]
    blocks, model, estimate = fitted(duels(games), seats=False)
    near(estimate.theta, expected(vector)["log_strength"], vector)
    spread = sandwich(blocks, model, estimate, corrected=False)
    near(errors(spread.theta), expected(vector)["se_log_strength"], vector)
    half = 1.959964 * errors(spread.theta) * ELO_PER_LOG_UNIT
    near(half, expected(vector)["ci95_half_width_elo"], vector, 100)


def test_03_pairs_of_four_seat_episodes_and_the_sandwich_by_seed(episodes) -> None:
    vector = "03_bt_block_sandwich"
    blocks, model, estimate = fitted(episodes, seats=False)
    np.testing.assert_array_equal(blocks.totals.win_matrix(), expected(vector)["pair_wins"])
    near(estimate.theta, expected(vector)["log_strength"], vector)
    spread = sandwich(blocks, model, estimate, corrected=False)
    near(errors(spread.theta), expected(vector)["se_block_nocorr"], vector)
    wanted = expected(vector)["diff_0_minus_1"]
    elo = (estimate.theta[0] - estimate.theta[1]) * ELO_PER_LOG_UNIT
    error = difference_error(sandwich(blocks, model, estimate).theta, 0, 1) * ELO_PER_LOG_UNIT
    near([elo, error], [wanted["elo"], wanted["se_block_corrected_elo"]], vector, 100)
    half = t_quantile(blocks.num_blocks, 0.95) * error
    near([elo - half, elo + half], wanted["ci95_t11_elo"], vector, 100)


def test_03_the_sandwich_by_episode_differs_as_stated(table_of) -> None:
    vector = "03_bt_block_sandwich"
    alone = table_of("ABCDE", EPISODES["agents"], EPISODES["scores"], range(len(EPISODES["seeds"])))
    blocks, model, estimate = fitted(alone, seats=False)
    spread = sandwich(blocks, model, estimate, corrected=False)
    near(errors(spread.theta), expected(vector)["se_episode_nocorr"], vector)


def test_04_seat_effects_as_covariates(episodes) -> None:
    vector = "04_bt_seat_covariate"
    blocks, model, estimate = fitted(episodes, seats=True)
    near(estimate.theta, expected(vector)["log_strength"], vector)
    near(estimate.seat, expected(vector)["seat_log"], vector)
    spread = sandwich(blocks, model, estimate, corrected=False)
    against_first = [difference_error(spread.theta, i, 0) for i in range(1, 5)]
    near(against_first, expected(vector)["se_block_nocorr_theta1to4_vs_theta0"], vector)


def test_08_a_perfect_record_is_held_by_the_prior_and_bounded(duels) -> None:
    vector = "08_perfect_record"
    wins = np.array(VECTORS[vector]["inputs"]["wins"])
    estimate = fit(Model(cells_from_matrix(wins), prior_games=1.0))
    near(estimate.theta, expected(vector)["log_strength_vs_phantom"], vector)
    assert connectivity(wins).num_strong == 2
    share = one_sided_bound(20, 0.95)
    near(share, expected(vector)["p_lower_one_sided95"], vector)
    near(one_sided_bound(20, 0.975), expected(vector)["p_lower_two_sided95"], vector)
    ladder = rate(duels(["AB"] * 20 + ["BC", "CB"] * 10))
    row = ladder.row("A")
    assert (row.elo_low, row.elo_high) == (None, None)
    assert row.flags == ("perfect record: at least +317 Elo against B",)
    assert row.bounds[0].elo == pytest.approx(expected(vector)["elo_lower_one_sided95"], abs=1e-3)
    assert ladder.difference("A", "B").low is None
    assert "one way" in str(ladder.difference("A", "B").withheld)


def test_09_islands_and_one_way_bridges_are_told_apart() -> None:
    vector = "09_disconnected"
    wins = np.array(VECTORS[vector]["inputs"]["wins"])
    graph = connectivity(wins)
    assert (graph.num_strong, graph.num_weak) == (2, 2)
    estimate = fit(Model(cells_from_matrix(wins), prior_games=1.0))
    near(estimate.theta * ELO_PER_LOG_UNIT, expected(vector)["elo_vs_phantom"], vector, 10)
    bridge = connectivity(np.array(VECTORS[vector]["inputs"]["wins_bridge"]))
    assert bridge.num_strong == expected(vector)["bridge_strong_components"]
    assert bridge.num_weak == expected(vector)["bridge_weak_components"]


def test_10_ties_everywhere_are_equal_of_width_zero_and_flagged(duels) -> None:
    vector = "10_ties_everywhere"
    table = duels(["A=B", "B=C"] * 10)
    blocks, model, estimate = fitted(table, seats=False)
    near(estimate.theta, expected(vector)["elo"], vector)
    near(errors(sandwich(blocks, model, estimate).theta), expected(vector)["se"], vector)
    ladder = rate(table)
    assert [row.elo for row in ladder.rows] == pytest.approx(expected(vector)["elo"], abs=1e-9)
    assert all(row.elo_low is None for row in ladder.rows)
    assert any("degenerate" in warning for warning in ladder.warnings)


def test_10_a_single_agent_is_rated_0_without_an_interval(table_of) -> None:
    ladder = rate(table_of("A", [[0, 0]] * 8, [[1.0, 2.0]] * 8, range(8)))
    assert [(row.elo, row.elo_low) for row in ladder.rows] == [(0.0, None)]
    assert ladder.rows[0].score_mean == 1.5
    assert any("one agent" in warning for warning in ladder.warnings)


@pytest.mark.parametrize(("weighted", "key"), [(False, "wins"), (True, "wins_weighted")])
def test_11_an_agent_in_several_seats_drops_its_pairs_with_itself(table_of, weighted, key) -> None:
    vector = "11_agent_in_several_seats"
    episode = VECTORS[vector]["inputs"]["episode"]
    table = table_of("ABC", [["ABC".index(a) for a in episode["agents"]]], [episode["scores"]], [0])
    wins = break_episodes(table, weighted=weighted).totals.win_matrix()
    for pair, wanted in expected(vector)[key].items():
        near(wins["ABC".index(pair[0]), "ABC".index(pair[2])], wanted, vector)
    assert wins.diagonal().tolist() == [0.0, 0.0, 0.0]
    pairs = break_episodes(table, weighted=False).totals.games.sum()
    assert 10 - pairs == expected(vector)["dropped_self_pairs"]


def test_19_the_jackknife_by_seed(episodes) -> None:
    vector = "19_block_jackknife"
    blocks, model, estimate = fitted(episodes, seats=False)
    spread = jackknife(blocks, model, estimate)
    assert spread is not None
    near(errors(spread.theta), expected(vector)["se_log_strength"], vector)
    without = fit(model, *without_block(blocks, 0))
    near(without.theta, expected(vector)["theta_without_seed0"], vector)
    wanted = expected(vector)["diff_0_minus_1"]
    elo = (estimate.theta[0] - estimate.theta[1]) * ELO_PER_LOG_UNIT
    error = difference_error(spread.theta, 0, 1) * ELO_PER_LOG_UNIT
    half = t_quantile(blocks.num_blocks, 0.95) * error
    near([elo, error], [wanted["elo"], wanted["se_elo"]], vector, 100)
    near([elo - half, elo + half], wanted["ci95_t11_elo"], vector, 100)


def test_19_a_ladder_without_the_prior_gives_the_same_difference(episodes) -> None:
    ladder = rate(episodes, prior=False, seat_effects=False)
    difference = ladder.difference("A", "B")
    wanted = expected("19_block_jackknife")["diff_0_minus_1"]
    assert ladder.method == "jackknife"
    assert difference.elo == pytest.approx(wanted["elo"], abs=1e-4)
    assert [difference.low, difference.high] == pytest.approx(wanted["ci95_t11_elo"], abs=1e-3)
