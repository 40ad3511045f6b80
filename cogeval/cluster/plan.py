"""What a worker must know to play any episode of a run, as one value that pickles.

Invariant: an episode is a function of the plan and its index alone. Imports no ray, so that plans
can be made and tested without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cogeval.agents import AgentEntry
from cogeval.agents.actor.build import options_of
from cogeval.cluster.seat_fit import Need, need_of
from cogeval.cluster.tally import Tally
from cogeval.core.agent import Price, Seated
from cogeval.core.episode import Fallback
from cogeval.core.game import AnyGame
from cogeval.core.quota import Limits
from cogeval.core.record import episode_id
from cogeval.core.seat import Deadlines
from cogeval.schedule.designs import Schedule, Slot
from cogeval.store.shards import SealedShard

_SILENCE_S = 30.0  # of a worker, beyond what decisions may take


class ClusterOptions(msgspec.Struct, frozen=True):
    """Where a run plays and how wide."""

    address: str | None = None  # None: a Ray of our own on this machine
    workers: int | None = None  # episode actors; None: one for each CPU
    max_attempts: int = 3  # of an episode before it is void


class RunPlan(msgspec.Struct, frozen=True):
    """Everything that decides what is played, and how workers write it down."""

    run_id: str
    run_path: str  # the run directory, absolute
    game: AnyGame
    agents: tuple[AgentEntry, ...]
    schedule: Schedule
    deadlines: Deadlines
    fallback: Fallback
    experiment_key: str  # what all its episodes have in common, from `core.record.experiment_key`
    import_paths: tuple[str, ...] = ()  # absolute directories to import agents from
    episodes_in_flight: int = 64  # in each worker
    shard_bytes: int = 64_000_000  # of rows in memory at which a worker seals its shard
    seal_every_s: float = 60.0
    limits: Mapping[str, Limits] = {}  # what each account allows
    cap_usd: float | None = None  # what the run may spend; None: as much as it takes
    prices: Mapping[str, Price] = {}  # model -> price
    token: str | None = None  # a file of the run's directory that every worker must see; None: none is there

    @property
    def deterministic(self) -> bool:
        """True when no agent of the pool depends on anything but its requests."""
        return all(agent.seated.deterministic for agent in self.agents)

    @property
    def uses_quota(self) -> bool:
        """True when somebody has to keep the books of what the run's agents ask of services."""
        is_limited = bool(self.limits) or self.cap_usd is not None
        return is_limited or any(agent.seated.is_model for agent in self.agents)

    @property
    def seat_needs(self) -> tuple[Need, ...]:
        """What the seat actors of each agent that has some ask for."""
        asked = ((agent.name, options_of(agent.seated.agent)) for agent in self.agents)
        return tuple(need_of(name, options) for name, options in asked if options is not None)

    @property
    def silence_s(self) -> float | None:
        """How long a worker may say nothing before it counts as hung; None: for ever.

        A deterministic agent may think as long as it likes, and blocks its worker meanwhile. Others have
        deadlines: a worker that is silent for longer is blocked by one that never awaits.
        """
        if self.deterministic:
            return None
        return self.deadlines.decision_s + self.deadlines.retry_s + _SILENCE_S

    def seats(self, lineup: Sequence[int]) -> list[Seated]:
        """Who sits where."""
        return [self.agents[i].seated for i in lineup]

    def episode_id(self, slot: Slot) -> str:
        """The identity of a scheduled episode: 32 hexadecimal digits."""
        who = [f"{self.agents[i].name}:{self.agents[i].fingerprint}" for i in slot.lineup]
        return episode_id(self.experiment_key, slot.seed, who, slot.replicate)


class Receipt(msgspec.Struct, frozen=True):
    """What a worker tells the driver since its last receipt; small, whatever was played."""

    worker: str
    finished: tuple[int, ...]  # indexes whose rows are in the worker's streams
    failed: tuple[tuple[int, str], ...]  # our own failures: (index, what)
    returned: tuple[int, ...]  # given back unfinished because the driver asked to stop
    sealed: tuple[SealedShard, ...]  # shards complete on disk, awaiting their records
    tally: Tally
    fatal: str | None = None  # why this worker cannot go on (a full disk)
    paused: bool = False  # the run's money is spent: this worker begins no episode more
