"""The agents that a pool can name: the table of kinds, and how an entry of a pool becomes a seat.

Invariant: an agent's fingerprint changes whenever the agent could decide differently, and never
otherwise by intent: resolved parameters and code version are in it, its name in the pool is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cogeval.agents.entry import AgentEntry
from cogeval.agents.llm import llm_agent
from cogeval.agents.process.build import process_agent
from cogeval.agents.python import python_agent
from cogeval.agents.random import random_agent
from cogeval.agents.scripted import baseline_agent
from cogeval.core.game import AnyGame, Json
from cogeval.errors import InputError, unknown_name

__all__ = ["AGENTS", "AgentEntry", "build_agent"]

AgentBuilder = Callable[[str, AnyGame, Mapping[str, Json]], AgentEntry]

AGENTS: Mapping[str, AgentBuilder] = {
    "baseline": baseline_agent,
    "llm": llm_agent,
    "process": process_agent,
    "python": python_agent,
    "random": random_agent,
}
"""Kind -> builder(name in the pool, game, parameters); the builder's docstring is its help text."""


def build_agent(name: str, game: AnyGame, settings: Mapping[str, Json]) -> AgentEntry:
    """Builds one entry of a pool.

    Args:
        name: the agent's name in the pool.
        game: the game that it will play, parameters included.
        settings: ``kind`` (or ``_target_``, which means kind python) and the kind's parameters.

    Returns:
        The entry, with its fingerprint.

    Raises:
        InputError: unknown kind or parameter, a parameter of the wrong type, or a failed import.
    """
    settings = dict(settings)
    kind = settings.pop("kind", "python" if "_target_" in settings else None)
    if kind is None:
        raise InputError(
            f"pool.agents.{name}: expected a kind ({', '.join(AGENTS)}) or a _target_, got neither; "
            "for example {kind: random}"
        )
    if kind not in AGENTS:
        raise unknown_name(f"agent kind for pool.agents.{name}:", kind, AGENTS)
    return AGENTS[kind](name, game, settings)
