"""Throughput of a whole sweep: `cogeval run` with two workers against the bare loop in one process.

Prints episodes/s of the loop alone (engine and agents, nothing written), of the run from its first
receipt to its last, and their ratio; then start-up, sealing, rating and tracking times. Both are
measured in one call, alternating, because a shared machine changes speed from minute to minute.

    python benchmarks/sweep_speed.py --episodes 20000 --workers 2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hydra import compose, initialize_config_dir

from cogeval.config import build_experiment, conf_dir, read_config
from cogeval.core.episode import play
from cogeval.core.record import ActionCodec


def loop_speed(overrides: list[str], seconds: float) -> float:
    """Episodes/s of `play` alone over the first episodes of the same schedule."""
    with initialize_config_dir(str(conf_dir()), version_base=None):
        experiment = build_experiment(read_config(compose("config", overrides)))
    codec = ActionCodec(experiment.game)

    async def loop() -> float:
        started, num = time.perf_counter(), 0
        while (spent := time.perf_counter() - started) < seconds:
            slot = experiment.schedule[num % len(experiment.schedule)]
            seats = [experiment.agents[i].seated for i in slot.lineup]
            await play(experiment.game, slot.seed, seats, codec=codec)
            num += 1
        return num / spent

    return asyncio.run(loop())


def sweep(overrides: list[str]) -> dict[str, float]:
    """One `cogeval run` in a process of its own; gives the timings that it reports."""
    command = [sys.executable, "-m", "cogeval", "run", "--json", *overrides]
    started = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    timings: dict[str, float] = json.loads(done.stdout)["timings"]
    return {**timings, "wall_s": time.perf_counter() - started}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of the pair of measurements")
    parser.add_argument("--pool", default="assayers")
    parser.add_argument("--tracking", default="off")
    args = parser.parse_args()
    what = [f"pool={args.pool}", "schedule=round_robin", f"schedule.blocks={args.episodes}"]
    print(f"{args.episodes} episodes of pool {args.pool}, {args.workers} workers")
    columns = ("loop/s", "run/s", "of ideal", "start s", "play s", "rate s", "track s", "wall s")
    print(" ".join(f"{column:>8}" for column in columns))
    ratios = []
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as root:
            before = loop_speed(what, 4.0)
            run = sweep(
                [
                    *what,
                    f"cluster.workers={args.workers}",
                    f"tracking={args.tracking}",
                    f"run.root={Path(root) / 'runs'}",
                ]
            )
            alone = (before + loop_speed(what, 4.0)) / 2
        ratio = run["episodes_per_s"] / (alone * args.workers)
        ratios.append(ratio)
        times = " ".join(f"{run[key]:8.2f}" for key in ("start_s", "play_s", "rate_s", "track_s", "wall_s"))
        print(f"{alone:8.0f} {run['episodes_per_s']:8.0f} {ratio:8.1%} {times}", flush=True)
    print(f"median {sorted(ratios)[len(ratios) // 2]:.1%} of {args.workers} times the loop")


if __name__ == "__main__":
    main()
