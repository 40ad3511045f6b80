"""The composition root: from Hydra's configuration to the objects of a run.

Invariant: everything that a run depends on is in the resolved configuration; building twice from
one configuration gives equal objects. The only module that imports omegaconf.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from cogeval.agents import AgentEntry, build_agent
from cogeval.cluster.plan import ClusterOptions, RunPlan
from cogeval.core.episode import ON_FAULT, Fallback
from cogeval.core.game import AnyGame, Json
from cogeval.core.record import canonical_json, experiment_key
from cogeval.core.seat import Deadlines
from cogeval.errors import InputError, unknown_name
from cogeval.games import make_game
from cogeval.schedule.designs import Schedule, make_schedule


class ScheduleConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who plays whom."""

    design: str
    blocks: int  # seeds
    replicates: int  # times that each lineup plays each seed
    seeds: list[int] | None  # None: drawn from the run's seed


class DeadlinesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Time limits in seconds, and what decides after a fault."""

    decision_s: float
    retry_s: float
    episode_timeout_s: float
    play_fraction: float
    min_batch_spacing_s: float
    on_fault: str
    fallback_baseline: str | None


class ClusterConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the run plays."""

    address: str | None  # None: a Ray of our own
    workers: int | None  # episode actors; None: one for each CPU
    episodes_in_flight: int  # in each episode actor
    max_attempts: int  # of an episode before it is void


class TrackingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where MLflow keeps the index of runs."""

    enabled: bool
    uri: str | None  # None: SQLite beside the runs
    experiment: str
    every_s: float


class RatingConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How agents are rated."""

    anchor: str | None
    anchor_elo: float
    confidence: float  # of the intervals, in (0, 1)


class RunConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the run is kept."""

    root: str
    id: str | None  # None: made by us


class StoreConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How shards are cut."""

    shard_mb: float
    seal_every_s: float


class PoolConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who plays: name -> kind and parameters."""

    agents: dict[str, dict[str, Any]]


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run's whole configuration, resolved."""

    game: dict[str, Any]  # name and parameters
    pool: PoolConfig
    schedule: ScheduleConfig
    deadlines: DeadlinesConfig
    cluster: ClusterConfig
    tracking: TrackingConfig
    rating: RatingConfig
    run: RunConfig
    store: StoreConfig
    seed: int
    agent_paths: list[str]

    def experiment(self) -> dict[str, Json]:
        """The part that decides what is played, as plain JSON: what the configuration digest covers."""
        whole: dict[str, Json] = msgspec.to_builtins(self)
        return {k: whole[k] for k in ("game", "pool", "schedule", "deadlines", "seed")}


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


def conf_dir() -> Path:
    """The configuration files: beside the package in a checkout, else inside the installed package."""
    package = Path(str(importlib.resources.files("cogeval")))
    beside = package.parent / "conf"
    return beside if (beside / "config.yaml").exists() else package / "conf"


def read_config(composed: DictConfig) -> Config:
    """Checks a composed configuration.

    Raises:
        InputError: a missing or misspelt key or a value of another type; the message names the key.
    """
    try:
        plain = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise InputError(str(error).splitlines()[0]) from error
    return config_from_plain(plain)


def config_from_yaml(text: str) -> Config:
    """Reads the configuration that a run directory keeps."""
    return read_config(OmegaConf.create(text))  # type: ignore[arg-type]  # YAML that holds a mapping


def config_to_yaml(config: Config) -> str:
    """The resolved configuration, as the run directory keeps it."""
    return OmegaConf.to_yaml(OmegaConf.create(msgspec.to_builtins(config)))


_UNKNOWN = re.compile(r"Object contains unknown field `(.+?)`(?: - at `\$\.?(.*)`)?")
_WRONG = re.compile(r"Expected `(.+?)`, got `(.+?)`(?: - at `\$\.?(.*)`)?")
_MISSING = re.compile(r"Object missing required field `(.+?)`(?: - at `\$\.?(.*)`)?")


def config_from_plain(plain: Any) -> Config:
    """Checks a configuration given as plain JSON."""
    try:
        config = msgspec.convert(plain, Config)
    except msgspec.ValidationError as error:
        raise _readable(str(error), plain) from error
    _check_values(config)
    return config


def _readable(message: str, plain: Any) -> InputError:
    """Words a validation error with the key as the user writes it, and the value."""
    if found := _UNKNOWN.fullmatch(message):
        key, place = found[1], found[2] or ""
        fields = _fields_at(place)
        return unknown_name(f"{place} key" if place else "key", key, fields)
    if found := _WRONG.fullmatch(message):
        place, value = _found_at(found[3] or "configuration", plain)
        return InputError(f"{place}: expected {found[1].replace(' | null', ' or null')}, got {value!r}")
    if found := _MISSING.fullmatch(message):
        key = f"{found[2]}.{found[1]}" if found[2] else found[1]
        return InputError(f"{key}: expected a value, got none; set it with {key}=VALUE")
    return InputError(message)


def _found_at(place: str, plain: Any) -> tuple[str, Any]:
    """A place as the user writes it, and the value there; the validator names no key of a mapping."""
    value = plain
    for part in re.findall(r"\.\.\.|[^.\[\]]+", place):
        if isinstance(value, list):
            value = value[int(part)]
        elif isinstance(value, dict):
            # "...": some member of pool.agents, the first that is no mapping.
            key = (
                next((k for k, v in value.items() if not isinstance(v, dict)), "") if part == "..." else part
            )
            place = place.replace("[...]", f".{key}", 1) if part == "..." else place
            value = value.get(key)
    return place, value


def _fields_at(place: str) -> Sequence[str]:
    kind: Any = Config
    for part in filter(None, place.split(".")):
        kind = next(f.type for f in msgspec.structs.fields(kind) if f.name == part)
    return [f.name for f in msgspec.structs.fields(kind)]


def _check_values(config: Config) -> None:
    """Ranges that a type does not say."""
    d, c = config.deadlines, config.cluster
    positive = {
        "deadlines.decision_s": d.decision_s,
        "deadlines.retry_s": d.retry_s,
        "deadlines.episode_timeout_s": d.episode_timeout_s,
        "cluster.workers": c.workers,
        "cluster.episodes_in_flight": c.episodes_in_flight,
        "cluster.max_attempts": c.max_attempts,
        "tracking.every_s": config.tracking.every_s,
        "store.shard_mb": config.store.shard_mb,
        "store.seal_every_s": config.store.seal_every_s,
    }
    for key, value in positive.items():
        if value is not None and not 0 < value < math.inf:
            raise InputError(f"{key}: expected a finite number above 0, got {value!r}")
    if not 0 < d.play_fraction <= 1:
        raise InputError(f"deadlines.play_fraction: expected a number in (0, 1], got {d.play_fraction!r}")
    if not 0 <= d.min_batch_spacing_s < math.inf:
        raise InputError(f"deadlines.min_batch_spacing_s: expected 0 or more, got {d.min_batch_spacing_s!r}")
    if not math.isfinite(config.rating.anchor_elo):
        raise InputError(f"rating.anchor_elo: expected a finite number, got {config.rating.anchor_elo!r}")
    if not 0 < config.rating.confidence < 1:
        raise InputError(f"rating.confidence: expected a number in (0, 1), got {config.rating.confidence!r}")
    if d.on_fault not in ON_FAULT:
        raise unknown_name("deadlines.on_fault", d.on_fault, ON_FAULT)
    if config.rating.anchor is not None and config.rating.anchor not in config.pool.agents:
        raise unknown_name("agent in rating.anchor:", config.rating.anchor, config.pool.agents)
    for name in config.pool.agents:
        if not name.strip() or len(name) > 80:
            raise InputError(f"pool.agents: expected a name of 1 to 80 characters, got {name!r}")


def build_experiment(config: Config) -> Experiment:
    """Builds the objects of a run.

    Raises:
        InputError: an unknown game, agent or design, or values that they refuse.
    """
    make_importable(config.agent_paths)
    game = _build_game(config.game)
    if not config.pool.agents:
        raise InputError("pool.agents: expected at least one agent, got none; name a pool: pool=baselines")
    agents = tuple(build_agent(name, game, settings) for name, settings in config.pool.agents.items())
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
    )


def cluster_options(config: Config) -> ClusterOptions:
    """Where and how wide the run plays."""
    return ClusterOptions(config.cluster.address, config.cluster.workers, config.cluster.max_attempts)
