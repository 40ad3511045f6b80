"""What goes to MLflow is flat, short, finite and free of secrets."""

from __future__ import annotations

import dataclasses
import math

import pytest

from cogeval.tracking.flat import AGENT_METRICS, agent_metrics, flattened, run_metrics, without_secrets
from cogeval.tracking.places import without_password


@pytest.mark.parametrize(
    "key",
    ["api_key", "API_KEY", "apiKey", "openai_api_key", "token", "hf_token", "auth.token", "password",
     "secret", "client_secret", "secrets", "passwd", "credentials",
     "Authorization", "private_key", "access_key"],
)  # fmt: skip
def test_keys_that_look_like_secrets_are_dropped_at_any_depth(key: str) -> None:
    config = {"a": {"b": [{key: "hush", "kept": 1}]}, key: "hush"}
    assert "hush" not in str(without_secrets(config))
    assert "hush" not in str(flattened(config))
    assert without_secrets(config) == {"a": {"b": [{"kept": 1}]}}


@pytest.mark.parametrize(
    ("key", "value"),
    [("max_tokens", 512), ("tokens_in", 3), ("api_key_env", "OPENAI_API_KEY"), ("price_per_token", 0.1),
     ("token", None), ("monkey", "a"), ("keyboard", "b"), ("author", "me")],
)  # fmt: skip
def test_keys_that_only_resemble_secrets_are_kept(key: str, value: object) -> None:
    assert without_secrets({key: value}) == {key: value}


def test_a_secret_that_is_a_number_is_dropped() -> None:
    assert without_secrets({"password": 12345, "secrets": {"a": 1}}) == {}


def test_passwords_in_uris_are_taken_out() -> None:
    assert without_password("cannot reach http://me:pw@host:5000/x") == "cannot reach http://***@host:5000/x"
    assert flattened({"uri": "postgresql://me:pw@h/db"}) == {"uri": "postgresql://***@h/db"}
    assert without_password("mail me@example.com") == "mail me@example.com"


def test_parameters_have_dotted_keys_and_values_that_mlflow_takes() -> None:
    flat = flattened({"game": {"name": "x", "empty": {}}, "list": [1, 2], "long": "y" * 9000, "a b/é?": None})
    assert flat["game.name"] == "x"
    assert flat["game.empty"] == "{}"
    assert flat["list"] == "[1, 2]"
    assert len(flat["long"]) == 6000
    assert flat["long"].endswith("…")
    assert "a b/__" in flat
    assert flattened({}) == {}


@pytest.mark.parametrize("key", ["/", "..", "a//b", "/root", "a/../b", "a/", "."])
def test_keys_that_mlflow_would_read_as_paths_outside_are_renamed(key: str) -> None:
    (name,) = flattened({key: 1})
    assert "/" not in name
    assert name.startswith("_")


def test_agent_metrics_are_exactly_the_stable_names(make_summary) -> None:
    summary = make_summary("r")
    assert AGENT_METRICS == (
        "elo", "elo_low", "elo_high", "score_mean", "score_q05", "score_q25", "score_q50", "score_q75",
        "score_q95", "win_share", "fault_rate", "fallback_share", "latency_p50", "cost", "episodes",
    )  # fmt: skip
    assert tuple(agent_metrics(summary.agents[0])) == AGENT_METRICS


def test_metrics_without_a_finite_value_are_left_out(make_summary) -> None:
    agent = make_summary("r").agents[1]
    assert agent.elo_low is None
    odd = dataclasses.replace(agent, latency_p50=math.nan, cost_usd=math.inf)
    assert set(AGENT_METRICS) - set(agent_metrics(odd)) == {"elo_low", "elo_high", "latency_p50", "cost"}


def test_run_metrics_count_the_whole_run(make_summary) -> None:
    metrics = run_metrics(make_summary("r", recorded=30))
    assert metrics["episodes"] == 30
    assert metrics["scheduled"] == 40
    assert metrics["void"] == 0
    assert metrics["cost"] == pytest.approx(0.9)
    assert metrics["seat_0_elo"] == 5.0
