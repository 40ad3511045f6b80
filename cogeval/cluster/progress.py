"""What a driver tells of its run: how far it is, and how it ended.

Invariant: values only, which whoever watches may keep. Imports no ray.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cogeval.cluster.tally import Tally


class Progress(msgspec.Struct, frozen=True):
    """How far a run is; what observers are shown."""

    run_id: str
    total: int
    recorded: int  # in committed shards, from earlier drivers too
    finished: int  # flushed by workers, awaiting their shard's record
    void: int
    episodes_per_s: float  # over the last seconds; 0 when unknown
    num_lost_workers: int
    names: tuple[str, ...]
    tally: Tally  # sums over the episodes that this driver saw finish
    stopping: bool = False  # a stop was asked for: workers seal what is finished
    spent_usd: float = 0.0  # of the whole run, unfinished episodes and earlier drivers included
    num_lost_seat_actors: int = 0  # of this driver's; others took their places

    @property
    def done(self) -> int:
        """Episodes that need no more playing."""
        return self.recorded + self.finished + self.void


class Outcome(msgspec.Struct, frozen=True):
    """How a driver ended."""

    complete: bool  # every scheduled episode is recorded or void
    interrupted: bool  # a signal asked it to stop
    progress: Progress
    start_s: float  # until the first worker answered
    num_played: int  # episodes finished by this driver's workers
    window_s: float  # from the first receipt with finished episodes to the last
    window_episodes: int  # finished in that time
    paused: bool = False  # the spending cap was reached
    spent_usd: float = 0.0  # of the whole run, unfinished episodes included; 0 when nobody kept books
    refused_nodes: tuple[str, ...] = ()  # what was wrong with nodes that joined and got no workers


Observer = Callable[[Progress], None]
