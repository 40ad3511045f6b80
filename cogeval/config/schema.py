"""The shape of a configuration: every option, its type and its unit.

Invariant: what is not here is refused by name. Values are checked in `reading`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cogeval.core.game import Json


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
    spool_dir: str | None = None  # None: one of this user's in the temporary directory


class AccountConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an account of a service allows; None: as much as one likes."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None  # in and out
    concurrency: int | None = None  # requests under way at once


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the run may ask of services; changes nothing that is played."""

    accounts: dict[str, AccountConfig] = {}
    spend_usd: float | None = None  # None: as much as it takes
    prices: dict[str, dict[str, Any]] = {}  # model -> price, before the list that comes with cogeval


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
    limits: LimitsConfig = LimitsConfig()  # runs of before have none

    def experiment(self) -> dict[str, Json]:
        """The part that decides what is played, as plain JSON: what the configuration digest covers."""
        whole: dict[str, Json] = msgspec.to_builtins(self)
        return {k: whole[k] for k in ("game", "pool", "schedule", "deadlines", "seed")}
