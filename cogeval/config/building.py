"""From a checked `Config` to the objects of a run.

Invariant: everything that a run depends on is in the configuration; building twice from one gives
equal objects.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cogeval.agents import AgentEntry, build_agent
from cogeval.cluster.plan import ClusterOptions, RunPlan
from cogeval.config.accounts import account_limits, run_prices
from cogeval.config.schema import Config
from cogeval.core.agent import Price
from cogeval.core.episode import Fallback
from cogeval.core.game import AnyGame, Json
from cogeval.core.record import canonical_json, experiment_key
from cogeval.core.seat import Deadlines
from cogeval.errors import InputError, unknown_name
from cogeval.games import make_game
from cogeval.schedule.designs import Schedule, make_schedule


class Experiment(msgspec.Struct, frozen=True):
    """What a configuration builds to: everything that decides the outcome of a run."""

    config: Config
    game: AnyGame
    agents: tuple[AgentEntry, ...]  # a lineup's numbers are positions in here
    schedule: Schedule
    deadlines: Deadlines
    fallback: Fallback
    digest: str  # of the configuration and the agents' fingerprints, 64 hexadecimal digits

    def rules_of_play(self) -> dict[str, Json]:
        """Deadlines and fallback as JSON: part of every episode's identity."""
        return {
            "deadlines": msgspec.to_builtins(self.deadlines),
            "fallback": msgspec.to_builtins(self.fallback),
        }


def build_experiment(config: Config) -> Experiment:
    """Builds the objects of a run.

    Raises:
        InputError: an unknown game, agent or design, or values that they refuse.
    """
    make_importable(config.agent_paths)
    game = _build_game(config.game)
    if not config.pool.agents:
        raise InputError("pool.agents: expected at least one agent, got none; name a pool, as pool=random")
    agents = tuple(build_agent(name, game, settings) for name, settings in config.pool.agents.items())
    if config.limits.spend_usd is not None:
        _check_priced(agents, run_prices(config.limits))
    schedule = make_schedule(
        config.schedule.design,
        num_agents=len(agents),
        num_seats=game.seats,
        blocks=config.schedule.blocks,
        run_seed=config.seed,
        seeds=config.schedule.seeds,
        replicates=config.schedule.replicates,
    )
    d = config.deadlines
    if d.fallback_baseline is not None and d.fallback_baseline not in game.spec.baselines:
        raise unknown_name(
            "baseline in deadlines.fallback_baseline:", d.fallback_baseline, game.spec.baselines
        )
    digest = canonical_json([config.experiment(), [a.describe() for a in agents], game.spec.version])
    return Experiment(
        config=config,
        game=game,
        agents=agents,
        schedule=schedule,
        deadlines=Deadlines(
            d.decision_s, d.retry_s, d.episode_timeout_s, d.play_fraction, d.min_batch_spacing_s
        ),
        fallback=Fallback(d.on_fault, d.fallback_baseline),
        digest=hashlib.sha256(digest.encode()).hexdigest(),
    )


def _check_priced(agents: Sequence[AgentEntry], prices: Mapping[str, Price]) -> None:
    """Refuses a spending cap that cannot hold: a model without a price would count as free."""
    for entry in agents:
        price_in = getattr(entry.seated.agent, "price_in", None)
        if price_in is not None and price_in(prices) is None:
            raise InputError(
                f"pool.agents.{entry.name}: no price is known for its model, so limits.spend_usd cannot "
                "hold; give it one in dollars a million tokens: price: {input: 1, output: 4}, 0 if it is free"
            )


def _build_game(settings: Mapping[str, Any]) -> AnyGame:
    parameters = dict(settings)
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        raise InputError(f"game.name: expected the name of a game, got {name!r}; see `cogeval games`")
    return make_game(name, **parameters)


def make_importable(paths: Sequence[str]) -> list[str]:
    """Puts the working directory and the agent paths in front of the import path.

    Returns:
        The absolute directories, for workers to do the same.
    """
    wanted = [str(Path.cwd()), *(str(Path(p).resolve()) for p in paths)]
    for path in reversed(wanted):
        if path not in sys.path:
            sys.path.insert(0, path)
    return wanted


def build_plan(
    experiment: Experiment, run_id: str, run_path: str, import_paths: Sequence[str] | None = None
) -> RunPlan:
    """The plan that workers play an experiment by.

    Args:
        experiment: what is played.
        run_id: the run's id.
        run_path: the run directory, absolute.
        import_paths: absolute directories to import agents from; None: the working directory and the
            configuration's agent_paths.
    """
    config = experiment.config
    return RunPlan(
        run_id=run_id,
        run_path=run_path,
        game=experiment.game,
        agents=experiment.agents,
        schedule=experiment.schedule,
        deadlines=experiment.deadlines,
        fallback=experiment.fallback,
        experiment_key=experiment_key(experiment.game, experiment.rules_of_play()),
        import_paths=tuple(import_paths or make_importable(config.agent_paths)),
        episodes_in_flight=config.cluster.episodes_in_flight,
        shard_bytes=int(config.store.shard_mb * 1e6),
        seal_every_s=config.store.seal_every_s,
        limits=account_limits(config.limits),
        cap_usd=config.limits.spend_usd,
        prices=run_prices(config.limits),
    )


def cluster_options(config: Config) -> ClusterOptions:
    """Where and how wide the run plays."""
    return ClusterOptions(config.cluster.address, config.cluster.workers, config.cluster.max_attempts)
