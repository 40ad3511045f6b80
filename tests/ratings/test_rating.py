"""What a ladder says, and what it withholds with a reason."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cogeval.errors import InputError
from cogeval.ratings import Table, rate
from cogeval.ratings.diagnostics import intransitive_share

MIXED = ["AB", "BA", "AB", "BC", "CB", "AC", "CA", "AC"]


def said(parts, *words: str) -> bool:
    return any(all(word in part for word in words) for part in parts)


def test_rows_hold_counts_shares_and_means(table_of) -> None:
    scores = [[3.0, 1.0, 2.0], [0.0, 5.0, 0.0]] * 3
    table = table_of(["x", "y"], [[0, 1, 1], [0, 1, -1]] * 3, scores, [0, 0, 1, 1, 2, 2])
    x = rate(table).row("x")
    assert (x.num_seats, x.num_episodes, x.num_blocks) == (6, 6, 3)
    assert (x.win_share, x.score_mean) == (0.5, 1.5)
    y = rate(table).row("y")
    assert (y.num_seats, y.num_episodes) == (9, 6)
    assert y.win_share == pytest.approx((0.0 + 0.5 + 1.0) / 3)


def test_the_mean_rating_is_0_and_an_anchor_moves_all_alike(duels) -> None:
    table = duels(MIXED * 3)
    free, held = rate(table), rate(table, anchor="B", anchor_elo=1000.0)
    assert sum(row.elo for row in free.rows) == pytest.approx(0.0, abs=1e-9)
    assert held.row("B").elo == 1000.0
    assert held.row("B").elo_low is None
    assert held.row("B").flags == ("anchor: fixed at +1000 Elo",)
    for pair in ("AB", "AC", "CB"):
        one, other = free.difference(*pair), held.difference(*pair)
        assert one.elo == pytest.approx(other.elo)
        assert one.low == pytest.approx(other.low)


def test_the_interval_to_an_anchor_is_that_of_the_difference(duels) -> None:
    held = rate(duels(MIXED * 3), anchor="B")
    row, difference = held.row("A"), held.difference("A", "B")
    assert (row.elo_low, row.elo_high) == pytest.approx((difference.low, difference.high))


@pytest.mark.parametrize(
    ("num_blocks", "method"), [(4, "none"), (5, "jackknife"), (400, "jackknife"), (401, "sandwich")]
)
def test_the_number_of_blocks_decides_the_method(duels, num_blocks, method) -> None:
    games = [("AB", "AB", "BA")[i % 3] for i in range(2 * num_blocks)]
    ladder = rate(duels(games, [i // 2 for i in range(2 * num_blocks)]))
    assert ladder.method == method
    assert all((row.elo_low is None) == (method == "none") for row in ladder.rows)
    assert said(ladder.warnings, "no intervals", "got 4") == (method == "none")


def test_an_agent_in_few_blocks_gets_no_interval_of_its_own(duels) -> None:
    ladder = rate(duels([*MIXED, "AD", "DA"]))
    assert ladder.row("D").elo_low is None
    assert ladder.row("D").flags == ("no interval: 5 blocks make one, it sat in 2",)
    assert ladder.row("A").elo_low is not None
    assert "'D' sat in 2 blocks" in str(ladder.difference("D", "A").withheld)


def test_a_zero_record_is_bounded_and_leaves_the_others_their_intervals(duels) -> None:
    ladder = rate(duels([*MIXED, "AZ", "BZ", "CZ", "AZ", "BZ"]))
    assert ladder.rows[-1].name == "Z"
    bound = 400 * math.log10(1 / 0.05**0.2 - 1)
    assert ladder.row("Z").flags == (f"zero record: at most {bound:+.0f} Elo against A, B, C",)
    assert ladder.row("Z").elo_low is None
    assert ladder.row("A").flags == ("interval holds among A, B, C",)
    assert ladder.row("A").elo_low is not None
    assert ladder.difference("A", "B").withheld is None
    assert ladder.difference("A", "Z").low is None
    assert said(ladder.warnings, "one-sided")


def test_an_agent_between_two_groups_is_bounded_from_both_sides(duels) -> None:
    ladder = rate(duels(["AB"] * 6 + ["BC"] * 3))
    assert [row.name for row in ladder.rows] == ["A", "B", "C"]
    low, high = ladder.row("B").flags
    assert low == "always beat C: 3 blocks are too few for a bound"
    assert high.startswith("always lost to A: at most -")


def test_islands_keep_their_intervals_and_withhold_comparisons_across(duels) -> None:
    ladder = rate(duels(["AB", "BA", "AB", "CD", "DC", "DC"] * 3))
    across = ladder.difference("A", "C")
    assert (across.elo, across.low) == (None, None)
    assert "no games connect 'A' and 'C'" in str(across.withheld)
    assert ladder.difference("A", "B").withheld is None
    assert said(ladder.warnings, "no games connect these groups", "(A, B); (C, D)")
    assert said(ladder.row("A").flags, "not connected", "C, D")
    assert dict(zip((row.name for row in ladder.rows), ladder.components, strict=True)) == {
        "A": 0,
        "B": 0,
        "C": 1,
        "D": 1,
    }


def test_blocks_that_all_end_alike_give_no_interval(duels) -> None:
    games = ["AB", "AB", "BA"] * 8
    ladder = rate(duels(games, [i // 3 for i in range(24)]), seat_effects=False)
    assert ladder.method == "none"
    assert ladder.rows[0].elo > 50
    assert said(ladder.warnings, "every block ended alike")


def test_adding_an_agent_to_a_world_of_ties_stays_degenerate(duels) -> None:
    for games in (["A=B"] * 9, ["A=B", "B=C", "A=C"] * 3, ["A=B", "B=C", "C=D"] * 3):
        ladder = rate(duels(games))
        assert said(ladder.warnings, "degenerate")
        assert all(row.elo == 0.0 and row.elo_low is None for row in ladder.rows)


def test_agents_without_an_episode_are_left_out_by_name(duels) -> None:
    ladder = rate(duels(["AB", "BA", "AB"] * 3, names="ABQ"))
    assert [row.name for row in ladder.rows] == ["A", "B"]
    assert said(ladder.warnings, "played no episode", "Q")


def test_without_the_prior_a_perfect_record_keeps_it_and_says_so(duels) -> None:
    ladder = rate(duels(["AB"] * 9), prior=False)
    assert math.isfinite(ladder.rows[0].elo)
    assert said(ladder.warnings, "prior", "kept")


def test_a_jackknife_that_would_lose_the_only_upset_gives_way_to_the_sandwich(duels) -> None:
    ladder = rate(duels(["AB"] * 8 + ["BA"]), prior=False, seat_effects=False)
    assert ladder.method == "sandwich"
    assert said(ladder.warnings, "without some block")


def test_seats_that_nobody_changes_are_left_in_the_rating_and_said_so(planted) -> None:
    lineups = np.tile([0, 1, 2], (60, 1))
    table = planted(np.random.default_rng(1), lineups, np.arange(60), np.array([1.0, 0.0, -1.0]))
    ladder = rate(table)
    assert ladder.seat_effects == ()
    assert said(ladder.warnings, "seats 0, 1, 2", "cannot be told from skill")
    assert [row.name for row in ladder.rows] == ["a0", "a1", "a2"]
    assert ladder.rows[0].elo == pytest.approx(rate(table, seat_effects=False).rows[0].elo)


def test_a_swap_of_two_seats_tells_no_seat_from_the_mean_of_all_three(planted) -> None:
    lineups = np.tile([[0, 1, 2], [1, 0, 2]], (30, 1))
    table = planted(np.random.default_rng(2), lineups, np.repeat(np.arange(30), 2), np.zeros(3))
    ladder = rate(table)
    assert ladder.seat_effects == ()
    assert said(ladder.warnings, "cannot be told from skill")
    assert all(abs(row.elo) < 300 for row in ladder.rows)


def test_a_seat_that_always_wins_is_not_given_a_size(duels) -> None:
    for times in (3, 150):
        ladder = rate(duels(["AB", "BA", "AC", "CA", "BC", "CB"] * times, winner_first=True))
        assert ladder.seat_effects == ()
        assert said(ladder.warnings, "some seat always wins")
        assert said(ladder.warnings, "no intervals", "follow the seat")
        assert all(abs(row.elo) < 1e-3 and row.elo_low is None for row in ladder.rows)


def test_a_game_with_fewer_seats_uses_fewer_columns(planted) -> None:
    rng = np.random.default_rng(3)
    lineups = np.array([rng.permutation(4)[:3] for _ in range(80)])
    table = planted(rng, lineups, np.repeat(np.arange(20), 4), np.zeros(4))
    wide = Table(
        np.pad(table.agents, ((0, 0), (0, 2)), constant_values=-1),
        np.pad(table.ranks, ((0, 0), (0, 2))),
        np.pad(table.scores, ((0, 0), (0, 2)), constant_values=np.nan),
        table.blocks,
        np.pad(table.seat_scored, ((0, 0), (0, 2))),
        table.names,
    )
    one, other = rate(table), rate(wide)
    assert [e.seat for e in other.seat_effects] == [0, 1, 2]
    assert [row.elo for row in one.rows] == pytest.approx([row.elo for row in other.rows])
    assert [e.elo for e in one.seat_effects] == pytest.approx([e.elo for e in other.seat_effects])


def test_intransitive_triples_are_a_share_of_the_decided_ones(duels) -> None:
    assert rate(duels(["AB", "BC", "CA"] * 5)).intransitive == 1.0
    assert rate(duels(["AB", "BC", "AC"] * 5)).intransitive == 0.0
    assert rate(duels(["AB", "BA"] * 5)).intransitive is None
    random = np.triu(np.random.default_rng(0).random((60, 60)) < 0.5, 1)
    tournament = random | (np.tril(np.ones((60, 60), dtype=bool), -1) & ~random.T)
    assert intransitive_share(tournament.astype(float)) == pytest.approx(0.25, abs=0.03)


def test_a_wrong_argument_names_the_way_out(duels) -> None:
    table = duels(MIXED)
    with pytest.raises(InputError, match="unknown anchor agent 'D'; known, closest first: A, B, C"):
        rate(table, anchor="D")
    with pytest.raises(InputError, match=r"confidence between 0 and 1, as 0\.95, got 95"):
        rate(table, confidence=95)
    with pytest.raises(InputError, match="finite anchor_elo, got nan"):
        rate(table, anchor="A", anchor_elo=math.nan)
    with pytest.raises(InputError, match="unknown agent 'D'"):
        rate(table).difference("A", "D")
    none = np.zeros((0, 2))
    with pytest.raises(InputError, match="at least one episode"):
        rate(Table(none, none, none, np.zeros(0), none, ("A",)))
