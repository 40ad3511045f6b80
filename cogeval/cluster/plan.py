"""What a worker must know to play any episode of a run, as one value that pickles.

Invariant: an episode is a function of the plan and its index alone. Imports no ray, so that plans
can be made and tested without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from cogeval.agents import AgentEntry
from cogeval.core.agent import Seated
from cogeval.core.episode import Fallback
from cogeval.core.game import AnyGame, Json
from cogeval.core.record import episode_id
from cogeval.core.seat import Deadlines
from cogeval.schedule.designs import Schedule, Slot
from cogeval.store.shards import SealedShard


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
    rules_of_play: Mapping[str, Json]  # deadlines and fallback, part of every episode's identity
    import_paths: tuple[str, ...] = ()  # absolute directories to import agents from
    episodes_in_flight: int = 64  # in each worker
    shard_bytes: int = 64_000_000  # of rows in memory at which a worker seals its shard
    seal_every_s: float = 60.0

    @property
    def deterministic(self) -> bool:
        """True when no agent of the pool depends on anything but its requests."""
        return all(agent.seated.deterministic for agent in self.agents)

    def seats(self, lineup: Sequence[int]) -> list[Seated]:
        """Who sits where."""
        return [self.agents[i].seated for i in lineup]

    def episode_id(self, slot: Slot) -> str:
        """The identity of a scheduled episode: 32 hexadecimal digits."""
        who = [f"{self.agents[i].name}:{self.agents[i].fingerprint}" for i in slot.lineup]
        return episode_id(self.game, slot.seed, who, self.rules_of_play, slot.replicate)


class Tally(msgspec.Struct):
    """Running sums over finished episodes, for a live ladder; never for the final one."""

    wins: np.ndarray  # float [agents, agents]: pairs won by row against column, ties half, 1/(seats - 1) each
    share_sum: np.ndarray  # float [agents]
    num_seats: np.ndarray  # int [agents]
    num_episodes: np.ndarray  # int [agents], in which it held at least one seat
    faults: np.ndarray  # int [agents]
    num_clock_events: int = 0  # episodes in which time decided something
    cost_usd: float = 0.0

    @classmethod
    def empty(cls, num_agents: int) -> Tally:
        """No episodes yet."""
        shape = (num_agents, num_agents)
        seats, episodes, faults = np.zeros((3, num_agents), np.int64)
        return cls(np.zeros(shape), np.zeros(num_agents), seats, episodes, faults)

    @property
    def num_faults(self) -> int:
        """Faults of all agents."""
        return int(self.faults.sum())

    def add(self, other: Tally) -> None:
        """Adds another's sums to these."""
        self.wins += other.wins
        self.share_sum += other.share_sum
        self.num_seats += other.num_seats
        self.num_episodes += other.num_episodes
        self.faults += other.faults
        self.num_clock_events += other.num_clock_events
        self.cost_usd += other.cost_usd


class Receipt(msgspec.Struct, frozen=True):
    """What a worker tells the driver since its last receipt; small, whatever was played."""

    worker: str
    finished: tuple[int, ...]  # indexes whose rows are in the worker's streams
    failed: tuple[tuple[int, str], ...]  # our own failures: (index, what)
    returned: tuple[int, ...]  # given back unfinished because the driver asked to stop
    sealed: tuple[SealedShard, ...]  # shards complete on disk, awaiting their records
    tally: Tally
    fatal: str | None = None  # why this worker cannot go on (a full disk)
