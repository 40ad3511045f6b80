"""Configuration and summaries as MLflow wants them: flat, short, finite, and without secrets.

Invariant: nothing whose key looks like a secret passes, however deep, and no number that is not finite.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from cogeval.report import AgentSummary, RunSummary
from cogeval.tracking.places import without_password

__all__ = ["AGENT_METRICS", "agent_metrics", "flattened", "is_secret", "run_metrics", "without_secrets"]

_KEY_CHARS = 250  # MLflow's own limits
_VALUE_CHARS = 6000

_SECRET = re.compile(
    r"(^|[_\-.])(api_?key|private_?key|access_?key|secret|token|password|passwd|credentials?|authorization)s?$",
    re.IGNORECASE,
)
_SECRET_ANYWHERE = re.compile(r"secret|password|passwd|api_?key", re.IGNORECASE)

AGENT_METRICS = (
    "elo", "elo_low", "elo_high", "score_mean", "score_q05", "score_q25", "score_q50", "score_q75",
    "score_q95", "win_share", "fault_rate", "fallback_share", "latency_p50", "cost", "episodes",
)  # fmt: skip
"""Metrics of every agent run, in every release: months of runs are compared by these names."""


def is_secret(key: str, value: object) -> bool:
    """True when the key names a secret and the value could be one.

    ``api_key_env`` names the variable that holds a key and ``max_tokens`` or ``price_per_token`` a
    number: those are no secrets.
    """
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key)
    if name.lower().endswith(("_env", "_var")):
        return False
    if _SECRET_ANYWHERE.search(name):
        return True
    return bool(_SECRET.search(name)) and not isinstance(value, int | float | None)


def without_secrets(value: Any) -> Any:
    """The same nested value as plain dicts, lists and scalars, secrets and passwords in URIs left out."""
    if isinstance(value, Mapping):
        return {str(k): without_secrets(v) for k, v in value.items() if not is_secret(str(k), v)}
    if isinstance(value, list | tuple):
        return [without_secrets(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return without_password(str(value))


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The configuration as MLflow parameters: dotted keys, short values, no secrets.

    Args:
        config: nested mappings, lists and scalars.
        prefix: put before every key.
    """
    flat: dict[str, str] = {}
    _flatten(without_secrets(config), prefix, flat)
    return flat


def _flatten(value: Any, key: str, flat: dict[str, str]) -> None:
    if isinstance(value, dict) and (value or not key):
        for name, item in value.items():
            _flatten(item, f"{key}.{name}" if key else name, flat)
        return
    text = str(value)
    name = re.sub(r"[^\w\-. :/]", "_", key, flags=re.ASCII)[:_KEY_CHARS]
    if re.fullmatch(r"[/.]*|/.*|(.*/)?\.\.?(/.*)?|.*//.*|.*/", name):  # MLflow reads keys as paths
        name = "_" + name.replace("/", "_").lstrip(".")
    flat[name] = text if len(text) <= _VALUE_CHARS else text[: _VALUE_CHARS - 1] + "…"


def agent_metrics(agent: AgentSummary) -> dict[str, float]:
    """The metrics of an agent's run: `AGENT_METRICS`, those without a value left out."""
    given = {
        "elo": agent.elo,
        "elo_low": agent.elo_low,
        "elo_high": agent.elo_high,
        "score_mean": agent.score_mean,
        "score_q05": agent.score_q05,
        "score_q25": agent.score_q25,
        "score_q50": agent.score_q50,
        "score_q75": agent.score_q75,
        "score_q95": agent.score_q95,
        "win_share": agent.win_share,
        "fault_rate": agent.fault_rate,
        "fallback_share": agent.fallback_share,
        "latency_p50": agent.latency_p50,
        "cost": agent.cost_usd,
        "episodes": agent.num_episodes,
    }
    assert tuple(given) == AGENT_METRICS
    return _finite(given)


def run_metrics(summary: RunSummary) -> dict[str, float]:
    """The metrics of the whole run."""
    agents = summary.agents
    num_decisions = sum(agent.num_decisions for agent in agents)
    fallbacks = sum((agent.fallback_share or 0.0) * agent.num_decisions for agent in agents)
    given: dict[str, float | None] = {
        "episodes": summary.recorded,
        "scheduled": summary.scheduled,
        "void": summary.void,
        "faults": summary.num_faults,
        "fallback_share": fallbacks / num_decisions if num_decisions else None,
        "cost": sum(agent.cost_usd for agent in agents),
        "tokens_in": sum(agent.tokens_in for agent in agents),
        "tokens_out": sum(agent.tokens_out for agent in agents),
        "blocks": summary.ladder.num_blocks if summary.ladder else None,
    }
    for effect in summary.seat_effects:
        given[f"seat_{effect.seat}_elo"] = effect.elo
    return _finite(given)


def _finite(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(v) for name, v in metrics.items() if v is not None and math.isfinite(v)}
