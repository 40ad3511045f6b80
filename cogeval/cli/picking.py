"""The one agent that `try` and `check-agent` are about, and those that sit around it.

Invariant: of the pool only the agents that are named are built, so that a broken neighbour is in nobody's
way; what is built is what a run would build.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from cogeval.agents import AgentEntry
from cogeval.agents.llm.agent import LlmSeat
from cogeval.cli.arguments import Arguments
from cogeval.cli.settings import composer_of
from cogeval.config import Experiment, build_experiment, read_config
from cogeval.config.accounts import account_limits, run_prices
from cogeval.config.schema import PoolConfig, ScheduleConfig
from cogeval.core.agent import Resources, Scripted, Seated
from cogeval.core.budget import Budget
from cogeval.core.game import AnyGame, Prompt
from cogeval.core.local_quota import LocalQuota
from cogeval.errors import InputError, unknown_name


@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """An agent, in the game that it is for.

    Args:
        experiment: as a run of it would have it; its seed is the configuration's.
        agent: the one that is meant.
        other: who sits in the seats that are not its own.
    """

    experiment: Experiment
    agent: AgentEntry
    other: Seated


def pick(arguments: Arguments) -> Picked:
    """Builds the agent that the user named, and who sits around it.

    Raises:
        InputError: no agent or one that is not known, or anything that a run would refuse.
    """
    target = arguments.value("--target")
    if len(arguments.words) + (target is not None) != 1:
        got = " ".join(arguments.words) or "none"
        if target is not None:
            raise InputError(f"expected an AGENT of the pool or --target, got {got} and --target {target}")
        raise InputError(
            f"expected one AGENT, got {got}; name one of the pool, or a class with --target my_module.MyAgent"
        )
    name, overrides = _named(arguments, target)
    config = read_config(composer_of(arguments).compose(overrides))
    pool = config.pool.agents
    if name not in pool:
        raise unknown_name("agent of the pool", name, pool)
    against = arguments.value("--against")
    seated = {key: pool[key] for key in (name, against) if key in pool}
    one_each = ScheduleConfig(design="rotations", blocks=1, replicates=1, seeds=None)
    config = msgspec.structs.replace(config, pool=PoolConfig(seated), schedule=one_each)
    experiment = build_experiment(config)
    return Picked(experiment, experiment.agents[0], _other(experiment, against, pool))


def local_resources(experiment: Experiment) -> Resources:
    """What the agents of one process share: the configuration's limits, cap and prices, kept here."""
    limits = experiment.config.limits
    return Resources(LocalQuota(Budget(account_limits(limits), limits.spend_usd)), run_prices(limits))


def text_for(picked: Picked, observation: Any) -> Prompt:
    """What the agent reads: the game's text, with a model's own words around it."""
    text: Prompt = picked.experiment.game.prompt(observation)
    agent = picked.agent.seated.agent
    return agent.prompt.around(text) if isinstance(agent, LlmSeat) else text


def _named(arguments: Arguments, target: str | None) -> tuple[str, list[str]]:
    """The agent's name, and overrides under which the pool has it."""
    if target is None:
        return arguments.words[0], arguments.overrides
    if "." not in target or not all(part.isidentifier() for part in target.split(".")):
        raise InputError(f"--target: expected my_module.MyAgent, got {target!r}")
    name = target.rpartition(".")[2]
    return name, [f"+pool.agents.{name}._target_={target}", *arguments.overrides]


def _other(experiment: Experiment, name: str | None, pool: Iterable[str]) -> Seated:
    """Who sits in the other seats."""
    game: AnyGame = experiment.game
    for agent in experiment.agents:
        if agent.name == name:
            return agent.seated
    if name is not None and name not in game.spec.baselines:
        known = dict.fromkeys((*pool, *game.spec.baselines))
        raise unknown_name("agent of the pool or baseline for --against:", name, known)
    baseline = name or game.spec.baselines[0]
    return Seated(baseline, Scripted(baseline), deterministic=True)
