"""Who plays whom: the i-th episode of a run as a pure function of its configuration.

Invariant: equal arguments give equal slots, on any machine, in any order of access; nothing is stored
but one cycle of lineups. Must not know agents or games beyond their number.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Final, TypeAlias, overload

import msgspec

from cogeval.core.rng import block_seed
from cogeval.errors import InputError, unknown_name
from cogeval.schedule.lineups import Lineup, balanced_lineups, distinct_rotations

__all__ = ["DESIGNS", "Design", "Lineup", "Schedule", "Slot", "make_schedule"]

_DIGEST_SLOTS = 256  # of the schedule itself that its digest covers


class Slot(msgspec.Struct, frozen=True, gc=False):
    """One scheduled episode."""

    index: int  # 0-based, in the schedule
    block: int  # 0-based
    seed: int  # the block's; signed 64-bit
    lineup: Lineup  # per seat, the agent's index in the pool
    replicate: int  # 0-based


BlockLineups: TypeAlias = tuple[Lineup, ...]
"""The lineups of one block, in the order that they are played in."""

MAX_BLOCKS: Final = 100_000_000
"""Most blocks of one run."""


class Design(msgspec.Struct, frozen=True):
    """A way to make the blocks of a schedule."""

    name: str
    summary: str  # one line, for people
    min_agents: int
    cycle: Callable[[int, int, int, int], tuple[BlockLineups, ...]]
    """(num_agents, num_seats, run_seed, blocks) to at least one block's lineups; block b plays b modulo."""


def _round_robin(num_agents: int, num_seats: int, run_seed: int, blocks: int) -> tuple[BlockLineups, ...]:
    return tuple((lineup,) for lineup in balanced_lineups(num_agents, num_seats, run_seed, blocks))


def _rotations(num_agents: int, num_seats: int, run_seed: int, blocks: int) -> tuple[BlockLineups, ...]:
    return tuple(map(distinct_rotations, balanced_lineups(num_agents, num_seats, run_seed, blocks)))


DESIGNS: Final[Mapping[str, Design]] = MappingProxyType(
    {
        design.name: design
        for design in (
            Design(
                "round_robin", "one lineup a block, every agent equally often in every seat", 1, _round_robin
            ),
            Design("rotations", "all distinct rotations of one lineup on one seed", 1, _rotations),
        )
    }
)
"""Every design, by the name that a configuration gives."""


class Schedule(Sequence[Slot]):
    """The episodes of a run, each computed when it is asked for; made by `make_schedule`."""

    def __init__(
        self,
        design: Design,
        num_agents: int,
        num_seats: int,
        blocks: int,
        run_seed: int,
        seeds: tuple[int, ...] | None,
        replicates: int,
    ) -> None:
        self.design = design
        self.num_agents = num_agents
        self.num_seats = num_seats
        self.num_blocks = blocks
        self.run_seed = run_seed
        self.seeds = seeds
        self.replicates = replicates
        self._cycle = design.cycle(num_agents, num_seats, run_seed, blocks)
        # Blocks may differ in length: ends[b] is where block b of the cycle ends.
        self._ends = [*accumulate(len(lineups) * replicates for lineups in self._cycle)]
        whole, rest = divmod(blocks, len(self._cycle))
        self._length = whole * self._ends[-1] + (self._ends[rest - 1] if rest else 0)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Slot: ...
    @overload
    def __getitem__(self, index: slice) -> list[Slot]: ...
    def __getitem__(self, index: int | slice) -> Slot | list[Slot]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._length))]
        i = index + self._length if index < 0 else index
        if not 0 <= i < self._length:
            raise IndexError(f"expected an index below {self._length}, got {index}")
        cycle, within = divmod(i, self._ends[-1])
        b = bisect_right(self._ends, within)
        lineup, replicate = divmod(within - (self._ends[b - 1] if b else 0), self.replicates)
        block = cycle * len(self._cycle) + b
        return Slot(i, block, self.seed_of(block), self._cycle[b][lineup], replicate)

    def __iter__(self) -> Iterator[Slot]:
        return (self[i] for i in range(self._length))

    def __repr__(self) -> str:
        return f"<Schedule {self.design.name}: {self._length} episodes in {self.num_blocks} blocks>"

    def seed_of(self, block: int) -> int:
        """The seed of a block, 0 <= block < num_blocks."""
        return block_seed(self.run_seed, block) if self.seeds is None else self.seeds[block]

    def digest(self) -> str:
        """Hashes the description and the first slots, so that a changed algorithm is noticed.

        Returns:
            64 hexadecimal digits of a sha256.
        """
        first = [(s.block, s.seed, s.lineup, s.replicate) for s in self[:_DIGEST_SLOTS]]
        text = json.dumps(
            {
                "design": self.design.name,
                "num_agents": self.num_agents,
                "num_seats": self.num_seats,
                "blocks": self.num_blocks,
                "run_seed": self.run_seed,
                "seeds": self.seeds,
                "replicates": self.replicates,
                "episodes": self._length,
                "first": first,
            },
            sort_keys=True,
            separators=(",", ":"),
        )
        return hashlib.sha256(text.encode()).hexdigest()


def make_schedule(
    design: str,
    *,
    num_agents: int,
    num_seats: int,
    blocks: int,
    run_seed: int,
    seeds: Sequence[int] | None = None,
    replicates: int = 1,
) -> Schedule:
    """Makes the schedule of a run.

    Args:
        design: a name in DESIGNS.
        num_agents: size of the pool.
        num_seats: size of the table, at least 1.
        blocks: number of seeds to play, at least 1.
        run_seed: seed of the run: lineups and, unless listed, the seeds of the blocks derive from it.
        seeds: the seeds of the blocks, distinct signed 64-bit integers, at least `blocks` of them; those
            beyond are not played.
        replicates: how often each lineup of a block is played, at least 1.

    Returns:
        The schedule.

    Raises:
        InputError: when the design is unknown or an argument does not fit it.
    """
    chosen = DESIGNS.get(design)
    if chosen is None:
        raise unknown_name("schedule.design", design, DESIGNS)
    for name, value in (("blocks", blocks), ("replicates", replicates), ("num_seats", num_seats)):
        if not _is_integer(value) or value < 1:
            raise InputError(f"expected schedule.{name} of at least 1, got {value!r}")
    if num_agents < chosen.min_agents:
        raise InputError(
            f"expected a pool of at least {_agents(chosen.min_agents)} for schedule.design={design}, "
            f"got {num_agents}; add agents to the pool or choose another design"
        )
    if blocks > MAX_BLOCKS:  # the ledger keeps some bytes of each in memory
        raise InputError(
            f"expected schedule.blocks of at most {MAX_BLOCKS:,}, got {blocks!r}; make several runs with "
            "different seeds and rate them together"
        )
    listed = None if seeds is None else _checked_seeds(seeds, blocks)
    return Schedule(chosen, num_agents, num_seats, blocks, run_seed, listed, replicates)


def _agents(num: int) -> str:
    return "1 agent" if num == 1 else f"{num} agents"


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _checked_seeds(seeds: Sequence[int], blocks: int) -> tuple[int, ...]:
    if len(seeds) < blocks:
        raise InputError(
            f"expected at least {blocks} schedule.seeds for schedule.blocks={blocks}, got {len(seeds)}; "
            f"list more seeds or set schedule.blocks={max(len(seeds), 1)}"
        )
    first_at: dict[int, int] = {}
    for i, seed in enumerate(seeds):
        if not _is_integer(seed) or not -(2**63) <= seed < 2**63:
            raise InputError(f"expected schedule.seeds to be signed 64-bit integers, got {seed!r} at {i}")
        if first_at.setdefault(seed, i) != i:
            raise InputError(
                f"expected distinct schedule.seeds, got {seed} at {first_at[seed]} and at {i}; "
                f"remove one, or use schedule.replicates to play a seed again"
            )
    return tuple(seeds)
