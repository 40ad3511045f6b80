"""What the store costs per episode: add, flush, seal, and reading back with checksums.

Run: ``python benchmarks/store_speed.py [num_episodes] [--replies]``. An episode here has 48 decisions
of four seats, as Cogchemists has; ``--replies`` gives each a model's usage and 600 characters of text.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cogeval.core.agent import Usage
from cogeval.core.game import Results, SeatResult
from cogeval.core.record import Attempt, Episode
from cogeval.store.checks import check_run
from cogeval.store.read import read_tables
from cogeval.store.run import RunDir
from cogeval.store.shards import SealedShard
from cogeval.store.write import ShardWriter

T = TypeVar("T")

NUM_SEATS = 4
NUM_PHASES = 12
GROUP = 256  # episodes flushed together, as workers do
NAMES = ("assayer", "quack", "random")
WORDS = ("brew", "sell", "swap", "taste", "wait", "look", "north", "south", "ask", "give", "salt", "ash")


def make_episode(rng: random.Random, seed: int, replies: bool) -> Episode:
    """Makes an episode of the usual size with made-up contents."""
    attempts = []
    for phase in range(NUM_PHASES):
        for seat in range(NUM_SEATS):
            extra: dict[str, Any] = {}
            if replies:
                extra = {
                    "usage": Usage(rng.randrange(4000), rng.randrange(200), 0, rng.random() / 100),
                    "text": " ".join(rng.choices(WORDS, k=120)),
                    "model": "model-1",
                    "finish_reason": "stop",
                }
            action = (rng.choice(WORDS), rng.randrange(40))
            extra["action_text"] = f'["{action[0]}",{action[1]}]'
            attempts.append(
                Attempt(phase, seat, 0, "lab", "agent", True, action, None, None, rng.random(), 0.0, **extra)
            )
    seats = tuple(
        SeatResult(float(rng.randrange(60)), (0.0,), {word: rng.random() for word in WORDS[:10]})
        for _ in range(NUM_SEATS)
    )
    results = Results("complete", NUM_PHASES, seats)
    digest = f"{rng.getrandbits(256):064x}"
    shares = (1.0, 2 / 3, 1 / 3, 0.0)
    return Episode(
        seed, 0, results, (0, 1, 2, 3), shares, (False,) * NUM_SEATS, tuple(attempts), False, 0.1, digest
    )


def write_and_read(num: int, replies: bool) -> tuple[dict[str, float], int, SealedShard]:
    """Writes one shard, commits it and reads it back.

    Args:
        num: episodes.
        replies: whether they carry a model's replies.

    Returns:
        CPU seconds per step, bytes in the streams, and the sealed shard.
    """
    rng = random.Random(0)
    spent: dict[str, float] = {}

    def timed(step: str, call: Callable[[], T]) -> T:
        start = time.process_time()
        result = call()
        spent[step] = spent.get(step, 0.0) + time.process_time() - start
        return result

    with tempfile.TemporaryDirectory() as root:
        run = RunDir.create(Path(root), "bench", {}, "")
        writer = ShardWriter(run.path, "w0-0000", agent_names=NAMES, worker="w0")
        for index in range(num):
            add = partial(
                writer.add,
                index=index,
                episode_id=f"{index:032x}",
                block=index,
                lineup=(0, 1, 2, 0),
                episode=make_episode(rng, index, replies),
            )
            timed("add", add)
            if index % GROUP == GROUP - 1:
                timed("flush", writer.flush)
        num_bytes = writer.num_bytes
        sealed = timed("seal", writer.seal)
        timed("commit", lambda: run.commit(sealed, sealed.indexes))
        timed("read", lambda: read_tables(run))
        findings = timed("check", lambda: check_run(run))
        assert not findings, findings
    return spent, num_bytes, sealed


def main() -> None:
    """Prints microseconds of CPU time per episode."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("num_episodes", nargs="?", type=int, default=5000)
    parser.add_argument("--replies", action="store_true")
    options = parser.parse_args()
    num = options.num_episodes
    write_and_read(GROUP, options.replies)  # what happens once in a process is not per episode
    spent, num_bytes, sealed = write_and_read(num, options.replies)
    print(f"{num} episodes of {sum(sealed.rows.values()) / num:.0f} rows, flushed {GROUP} at a time")
    print(f"bytes per episode: {num_bytes / num:.0f} in the streams, {sealed.num_bytes / num:.0f} sealed")
    for step, seconds in spent.items():
        print(f"{step:>7} {seconds / num * 1e6:8.2f} us of CPU time per episode")
    total = spent["add"] + spent["flush"] + spent["seal"]
    print(f"writing {total / num * 1e6:8.2f} us (add + flush + seal)")


if __name__ == "__main__":
    main()
