"""Memory of an episode actor, by how many episodes it has in flight: what a node of a cluster must have.

Plays in an `EpisodeHost` (what an episode actor is, without Ray around it) whose seats wait before they
answer, so that as many episodes are under way as may be; samples what its process has of its own (USS).
Each figure is of a fresh process.

    python benchmarks/actor_memory.py --in-flight 1 64 500
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import ray  # noqa: F401 - as an actor's process has it
from hydra import compose, initialize_config_dir

from cogeval.cluster.host import EpisodeHost
from cogeval.config import build_experiment, build_plan, conf_dir, config_to_yaml, read_config
from cogeval.core.agent import Reply
from cogeval.store.run import RunDir


class Waits:
    """Draws a legal action after a while, and notes a kilobyte."""

    def __init__(self, rng, seconds):
        self.rng, self.seconds = rng, seconds

    async def decide(self, request):  # noqa: D102
        await asyncio.sleep(self.seconds)
        return Reply(request.decision.legal.sample(self.rng), notes="n" * 1000)


def measure(game: str, in_flight: int, wait_s: float, seconds: float) -> None:
    """Plays for a while and prints this process's USS in MB: before, and the largest while playing."""
    with tempfile.TemporaryDirectory() as root:
        overrides = [
            f"game={game}", "~pool.agents",
            f"+pool.agents.w={{_target_: actor_memory.Waits, seconds: {wait_s}}}",
            "schedule.blocks=1000000", f"cluster.episodes_in_flight={in_flight}", "tracking=off",
            f"agent_paths=[{Path(__file__).parent}]",
        ]  # fmt: skip
        with initialize_config_dir(str(conf_dir()), version_base=None):
            experiment = build_experiment(read_config(compose("config", overrides)))
        run = RunDir.create(root, "memory", {"agents": []}, config_to_yaml(experiment.config))
        plan = build_plan(experiment, run.run_id, str(Path(root) / "memory"))
        process = psutil.Process()

        async def play() -> tuple[float, float]:
            host = EpisodeHost(plan, "w0")
            before = largest = process.memory_full_info().uss
            host.give(range(1_000_000 if seconds else 0))
            ends = asyncio.get_running_loop().time() + seconds
            while asyncio.get_running_loop().time() < ends:
                await host.report(0.5)
                largest = max(largest, process.memory_full_info().uss)
            await host.drain()
            return before / 1e6, largest / 1e6

        print(*(f"{mb:.1f}" for mb in asyncio.run(play())))


def main() -> None:
    """Measures each case in a process of its own, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--in-flight", type=int, nargs="+", default=[1, 64, 500])
    parser.add_argument("--games", nargs="+", default=["cogchemists", "cogmud", "cogz"])
    parser.add_argument("--seconds", type=float, default=20.0, help="of play for each figure")
    parser.add_argument("--wait-s", type=float, default=1.0, help="that a seat takes to answer")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        measure(args.games[0], args.in_flight[0], args.wait_s, args.seconds)
        return
    print(
        f"{'game':>12} {'in flight':>9} {'idle MB':>8} {'MB':>8} {'KB each':>8}   USS of one worker's process"
    )
    for game in args.games:
        for in_flight in args.in_flight:
            command = [
                sys.executable, __file__, "--one", "--games", game, "--in-flight", str(in_flight),
                "--seconds", str(args.seconds), "--wait-s", str(args.wait_s),
            ]  # fmt: skip
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            idle_mb, most_mb = (float(mb) for mb in done.stdout.split())
            each_kb = (most_mb - idle_mb) / in_flight * 1e3
            print(f"{game:>12} {in_flight:>9} {idle_mb:8.0f} {most_mb:8.0f} {each_kb:8.0f}", flush=True)


if __name__ == "__main__":
    main()
