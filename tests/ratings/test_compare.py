"""Two agents on the blocks that they share: one value per block."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cogeval.errors import InputError
from cogeval.ratings import Table, compare


def swaps(table_of, margins, names="AB") -> Table:
    """A block per margin: A and B play each other in both seat orders, B ahead by the margin."""
    lineups = [order for _ in margins for order in ([0, 1], [1, 0])]
    scores = [pair for m in margins for pair in ([0.0, m], [m, 0.0])]
    return table_of(names, lineups, scores, np.repeat(np.arange(len(margins)), 2))


def test_head_to_head_has_one_value_per_block(table_of) -> None:
    margins = [2.0, 1.0, -1.0, 3.0, 0.0, 1.0, 2.0]
    result = compare(swaps(table_of, margins), "A", "B")
    assert (result.estimand, result.score.num_blocks) == ("head_to_head", 7)
    assert (result.share.num_above, result.share.num_below) == (5, 1)
    oracle = stats.ttest_1samp(margins, 0.0).confidence_interval(0.95)
    assert (result.score.low, result.score.high) == pytest.approx((oracle.low, oracle.high))
    assert result.score.mean == pytest.approx(np.mean(margins))
    assert result.score.dz == pytest.approx(np.mean(margins) / np.std(margins, ddof=1))
    signs = np.sign(margins)
    assert result.share.mean == pytest.approx(signs.mean())
    share = (1 + signs.mean()) / 2
    assert result.elo == pytest.approx(400 * np.log10(share / (1 - share)))


def test_repeating_a_blocks_episodes_changes_nothing(table_of) -> None:
    one = swaps(table_of, [2.0, 1.0, -1.0, 3.0, 0.0])
    arrays = (one.agents, one.ranks, one.scores, one.blocks, one.seat_scored)
    twice = Table(*(np.concatenate([array, array[:4]]) for array in arrays), one.names)
    assert compare(one, "A", "B") == compare(twice, "A", "B")


def test_swapping_the_two_names_turns_every_sign(table_of) -> None:
    table = swaps(table_of, [2.0, 1.0, -1.0, 3.0, 0.0])
    one, other = compare(table, "A", "B"), compare(table, "B", "A")
    assert one.share.mean == -other.share.mean
    assert one.score.low == pytest.approx(-other.score.high)
    assert one.elo == pytest.approx(-other.elo)


def test_agents_of_one_block_but_no_one_episode_are_compared_each_against_its_field(table_of) -> None:
    # Forced seat: A, then B, in seat 0 against the same X on the same seed.
    lineups = [lineup for _ in range(6) for lineup in ([0, 2], [1, 2])]
    scores = [pair for k in range(6) for pair in ([1.0, 2.0], [float(k), 2.0])]
    result = compare(table_of("ABX", lineups, scores, np.repeat(np.arange(6), 2)), "A", "B")
    assert result.estimand == "same_blocks"
    assert result.share.mean == pytest.approx(np.mean([0, 0, 0.5, 1, 1, 1]))
    assert result.score.mean == pytest.approx(np.mean(np.arange(6) - 1.0))
    assert result.elo is None
    assert "apart" in result.summary()


def test_agents_without_a_shared_block_are_refused_with_the_way_out(table_of) -> None:
    table = table_of("ABX", [[0, 2], [0, 2], [1, 2]], [[1.0, 0.0]] * 3, [0, 1, 2])
    with pytest.raises(InputError, match=r"both 'A' and 'B', got none: 'A' sat in 2 blocks, 'B' in 1 others"):
        compare(table, "A", "B")


def test_few_blocks_or_no_spread_give_no_interval_and_say_so(table_of) -> None:
    few = compare(swaps(table_of, [1.0, -1.0, 2.0]), "A", "B")
    assert (few.share.low, few.notes) == (None, ("no interval: 5 shared blocks make one, got 3",))
    level = compare(swaps(table_of, [1.0, 2.0, 3.0, 4.0, 5.0]), "A", "B")
    assert (level.share.mean, level.share.low, level.share.dz, level.elo) == (1.0, None, None, None)
    assert level.score.low is not None
    assert "same in every block" in level.notes[0]


def test_forfeits_count_in_the_share_but_not_in_the_score(table_of) -> None:
    table = swaps(table_of, [1.0, 2.0, -1.0, 2.0, 3.0, 1.0])
    scored = table.seat_scored.copy()
    scored[:2] = False
    played = Table(table.agents, table.ranks, table.scores, table.blocks, scored, table.names)
    result = compare(played, "A", "B")
    assert (result.share.num_blocks, result.score.num_blocks) == (6, 5)
    assert result.score.mean == pytest.approx(np.mean([2.0, -1.0, 2.0, 3.0, 1.0]))


def test_shared_blocks_without_a_meeting_are_counted_out(table_of) -> None:
    lineups = [[0, 1]] * 6 + [[0, 2], [1, 2]]
    scores = [[float(k % 3), 1.0] for k in range(6)] + [[1.0, 0.0]] * 2
    result = compare(table_of("ABX", lineups, scores, [0, 1, 2, 3, 4, 5, 6, 6]), "A", "B")
    assert result.share.num_blocks == 6
    assert result.notes == ("1 shared blocks hold both, but in no one episode: left out",)


def test_the_summary_gives_numbers_and_no_verdict(table_of) -> None:
    summary = compare(swaps(table_of, [2.0, 1.0, -1.0, 3.0, 0.0]), "A", "B").summary()
    assert "B less A, in the same episodes: 5 blocks" in summary
    assert "at 95%" in summary
    assert not any(word in summary for word in ("better", "worse", "significant"))


@pytest.mark.parametrize(
    ("pair", "message"), [(("A", "A"), "'A' twice"), (("A", "C"), "unknown agent 'C'; known, closest first")]
)
def test_a_wrong_pair_names_the_way_out(table_of, pair, message) -> None:
    with pytest.raises(InputError, match=message):
        compare(swaps(table_of, [1.0]), *pair)
