"""The numbers of a run are those of its seats."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from cogeval.errors import InputError
from cogeval.report import AgentIdentity, DecisionTimes, RunSummary, SeatRows, summarise


def rows(**columns: object) -> SeatRows:
    """Three seats of agent 0, one of agent 1; episode 5 holds agent 0 twice."""
    given: dict[str, object] = {
        "agent": np.array([0, 1, 0, 0]),
        "episode": np.array([4, 4, 5, 5]),
        "score": np.array([1.0, 7.0, 3.0, 100.0]),
        "share": np.array([0.0, 1.0, 0.5, np.nan]),
        "scored": np.array([True, True, True, False]),
        "num_decisions": np.array([10, 10, 10, 0]),
        "num_fallbacks": np.array([1, 0, 2, 0]),
        "num_faults": np.array([2, 0, 3, 0]),
        "think_s": np.array([1.0, 50.0, 3.0, 0.0]),
        "cost_usd": np.array([0.5, 0.0, 0.25, 0.0]),
        "tokens_in": np.array([100, 0, 50, 0]),
        "tokens_out": np.array([10, 0, 5, 0]),
    }
    return SeatRows(**{**given, **columns})  # type: ignore[arg-type]


def summed(seats: SeatRows, **options: object) -> RunSummary:
    agents = [AgentIdentity("a", "1", "f0"), AgentIdentity("b"), AgentIdentity("absent")]
    given: dict[str, object] = {"run_id": "r", "digest": "d", "scheduled": 3, "recorded": 2, "void": 0}
    return summarise(agents=agents, seats=seats, ladder=None, **{**given, **options})  # type: ignore[arg-type]


def test_counts_and_rates_are_over_all_seats_of_an_agent() -> None:
    a = summed(rows()).agents[0]
    assert (a.num_seats, a.num_episodes, a.num_decisions, a.num_faults) == (3, 2, 20, 5)
    assert a.fault_rate == pytest.approx(0.25)
    assert a.fallback_share == pytest.approx(0.15)
    assert a.cost_usd == pytest.approx(0.75)
    assert (a.tokens_in, a.tokens_out) == (150, 15)
    assert a.win_share == pytest.approx(0.25)


def test_forfeits_are_left_out_of_score_statistics() -> None:
    summary = summed(rows())
    a = summary.agents[0]
    assert a.score_mean == pytest.approx(2.0)
    assert a.score_q50 == pytest.approx(2.0)
    assert a.score_sd == pytest.approx(np.sqrt(2.0))
    np.testing.assert_array_equal(summary.scores[0], [1.0, 3.0])


def test_latency_is_per_decision() -> None:
    by_seat = summed(rows())
    assert by_seat.agents[0].latency_p50 == pytest.approx(0.2)  # 1 s / 10 and 3 s / 10
    times = DecisionTimes(np.array([1, 0, 0, 0, 0]), np.array([9.0, 0.1, 0.2, 0.9, np.nan]))
    single = summed(rows(), decisions=times)
    assert single.agents[0].latency_p50 == pytest.approx(0.2)
    assert single.agents[1].latency_p95 == pytest.approx(9.0)


def test_what_the_data_do_not_give_is_none() -> None:
    absent = summed(rows()).agents[2]
    assert (absent.num_seats, absent.num_episodes, absent.cost_usd) == (0, 0, 0.0)
    for name in ("elo", "win_share", "score_mean", "score_sd", "score_q05", "fault_rate", "latency_p50"):
        assert getattr(absent, name) is None
    assert summed(rows()).agents[1].score_sd is None


def test_fault_kinds_are_kept_per_agent() -> None:
    summary = summed(rows(), fault_kinds={"timeout": [5, 0, 0], "illegal": [0, 0, 0]})
    assert [dict(agent.faults) for agent in summary.agents] == [{"timeout": 5}, {}, {}]


def test_a_run_without_episodes_sums_up_to_nothing() -> None:
    empty = {name.name: np.empty(0, np.int64) for name in dataclasses.fields(SeatRows)}
    summary = summed(SeatRows(**{**empty, "scored": np.empty(0, np.bool_)}), recorded=0)  # type: ignore[arg-type]
    assert [agent.num_seats for agent in summary.agents] == [0, 0, 0]
    assert json.loads(json.dumps(summary.to_json(), allow_nan=False))["rating"] is None


def test_score_samples_are_thinned_with_both_ends_kept() -> None:
    num = 50_000
    scores = np.random.default_rng(0).exponential(size=num)
    columns = {f.name: np.zeros(num, np.int64) for f in dataclasses.fields(SeatRows)}
    seats = SeatRows(**{**columns, "score": scores, "scored": np.ones(num, np.bool_)})  # type: ignore[arg-type]
    (kept, _, _) = summed(seats).scores
    assert len(kept) == 2001
    assert (kept[0], kept[-1]) == (scores.min(), scores.max())
    np.testing.assert_allclose(np.median(kept), np.median(scores), rtol=0.01)


def test_arrays_of_different_length_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="expected 4 entries of score, one per seat, got 2"):
        rows(score=np.array([1.0, 2.0]))


@pytest.mark.parametrize("wild", [-1, 3])
def test_an_agent_index_out_of_range_is_refused(wild: int) -> None:
    with pytest.raises(InputError, match=rf"expected an agent index in 0\.\.2, got {wild}"):
        summed(rows(agent=np.array([0, wild, 0, 0])))


def test_json_is_plain_and_in_ladder_order(make_run) -> None:
    summary = make_run(4, warnings=["mind the gap"])
    data = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert [agent["name"] for agent in data["agents"]] == [row.name for row in summary.ladder.rows]
    assert data["recorded"] == 200
    assert data["warnings"] == ["mind the gap"]
    assert data["rating"]["method"] == "jackknife"
    assert len(data["seat_effects"]) == 4
