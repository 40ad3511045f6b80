"""The game's own scripted baselines as agents of a pool."""

from __future__ import annotations

from collections.abc import Mapping

from cogeval.agents.entry import AgentEntry, make_entry, take
from cogeval.core.agent import Scripted
from cogeval.core.game import AnyGame, Json
from cogeval.errors import InputError, unknown_name


def baseline_agent(name: str, game: AnyGame, settings: Mapping[str, Json]) -> AgentEntry:
    """A scripted baseline of the game. Parameters: baseline (its name), version (a label of yours)."""
    values = take(name, "baseline", settings, {"baseline": (str, None), "version": (str, game.spec.version)})
    baseline, version = values["baseline"], values.pop("version")
    if baseline is None:
        known = ", ".join(game.spec.baselines)
        raise InputError(f"pool.agents.{name}: expected baseline: NAME, one of {known}; got none")
    if baseline not in game.spec.baselines:
        unknown = unknown_name(
            f"baseline of {game.spec.name} in pool.agents.{name}:", baseline, game.spec.baselines
        )
        raise InputError(f"{unknown}; pool={game.spec.name}_baselines has them all")
    return make_entry(
        name,
        "baseline",
        Scripted(baseline),
        code=f"{game.spec.name} {game.spec.version}",
        version=version,
        parameters=values,
        deterministic=True,
    )
