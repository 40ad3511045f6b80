"""Times a rating of a million four-seat episodes, seat effects and intervals included, on one core.

Run it as `OMP_NUM_THREADS=1 python benchmarks/rating_speed.py [NUM_BLOCKS]`. The goal is under 10 s.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from cogeval.ratings import Table, rate

NUM_AGENTS = 8
NUM_SEATS = 4


def planted_table(num_blocks: int, seed: int = 0) -> Table:
    """Blocks of four rotations of one lineup, with planted strengths, seat effects and luck of the block."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(0.6, -0.6, NUM_AGENTS)
    advantage = np.array([0.3, 0.1, -0.1, -0.3])
    lineups = rng.permuted(np.tile(np.arange(NUM_AGENTS, dtype=np.int32), (num_blocks, 1)), axis=1)[
        :, :NUM_SEATS
    ]
    agents = np.concatenate([np.roll(lineups, turn, axis=1) for turn in range(NUM_SEATS)])
    blocks = np.tile(np.arange(num_blocks, dtype=np.int32), NUM_SEATS)
    luck = rng.normal(0.0, 0.5, (num_blocks, NUM_AGENTS))
    form = strength[agents] + luck[blocks[:, None], agents] + advantage + rng.gumbel(size=agents.shape)
    scores = np.round(form * 4.0)
    ranks = (scores[:, None, :] > scores[:, :, None]).sum(axis=2).astype(np.int8)
    order = rng.permutation(len(agents))
    return Table(
        agents[order],
        ranks[order],
        scores[order],
        blocks[order],
        np.ones(agents.shape, dtype=np.bool_),
        tuple(f"agent-{i}" for i in range(NUM_AGENTS)),
    )


def timed(num_blocks: int) -> None:
    """Rates one planted table and prints a line of what it took."""
    table = planted_table(num_blocks)
    wall, cpu = time.perf_counter(), time.process_time()
    ladder = rate(table)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    top = ladder.rows[0]
    low, high = top.elo_low, top.elo_high
    span = "none" if low is None or high is None else f"{low:.1f} .. {high:.1f}"
    took = f"{wall:>8.2f} {cpu:>8.2f} {peak:>9,.0f}"
    print(
        f"{table.num_episodes:>10,} {num_blocks:>9,} {ladder.method:>10} {took}"
        f"   {top.name} {top.elo:.1f} ({span})"
    )


def main() -> None:
    """Prints the table: the small end of the jackknife, its far end, and the million."""
    sizes = [int(sys.argv[1])] if len(sys.argv) > 1 else [50, 400, 250_000]
    print(f"{'episodes':>10} {'blocks':>9} {'method':>10} {'wall s':>8} {'cpu s':>8} {'peak MB':>9}   best")
    for num_blocks in sizes:
        timed(num_blocks)


if __name__ == "__main__":
    main()
