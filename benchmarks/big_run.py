"""What a run of a million recorded episodes costs to look at: status, show, compact, audit.

Playing that many takes ten minutes of both cores, so a few thousand episodes are played and each is
written again and again, by the store's own writer, under the places, blocks, seeds and lineups of a real
schedule. All numbers of such a run hold; only playing it again (`reproduce`) would find other actions.

    python benchmarks/big_run.py --episodes 1000000
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from cogeval.cli.composing import Composer
from cogeval.cli.session import new_run
from cogeval.config import Experiment, build_experiment, conf_dir, read_config
from cogeval.core.episode import play
from cogeval.core.record import Episode
from cogeval.store.run import RunDir
from cogeval.store.write import ShardWriter

GROUP = 256  # episodes flushed together, as workers do
DISPATCHED = 64  # episodes of one entry of the log


def experiment_of(root: Path, num: int) -> Experiment:
    """The cheapest run of so many episodes."""
    given = [
        "pool=random", "schedule=round_robin", "game.rounds=3", f"schedule.blocks={num}", "tracking=off",
        f"run.root={root}", "run.id=big",
    ]  # fmt: skip
    return build_experiment(read_config(Composer(conf_dir()).compose(given)))


def played(experiment: Experiment, num: int) -> list[Episode]:
    """Plays the first episodes of the schedule."""
    episodes = []
    for index in range(num):
        slot = experiment.schedule[index]
        seats = [experiment.agents[i].seated for i in slot.lineup]
        episodes.append(
            asyncio.run(
                play(
                    experiment.game, slot.seed, seats, replicate=slot.replicate, fallback=experiment.fallback
                )
            )
        )
    return episodes


def write(run: RunDir, experiment: Experiment, episodes: list[Episode], per_shard: int) -> None:
    """Writes the whole schedule, shard by shard."""
    names = [agent.name for agent in experiment.agents]
    total = len(experiment.schedule)
    for number, start in enumerate(range(0, total, per_shard)):
        worker = f"bench-w{number % 2}"
        writer = ShardWriter(run.path, f"{worker}-{number:04d}", agent_names=names, worker=worker)
        for index in range(start, min(start + per_shard, total)):
            slot, source = experiment.schedule[index], episodes[index % len(episodes)]
            digest = hashlib.sha256(f"{source.digest}{index}".encode()).hexdigest()
            writer.add(
                index=index,
                episode_id=digest[:32],
                block=slot.block,
                lineup=slot.lineup,
                episode=msgspec.structs.replace(
                    source, seed=slot.seed, replicate=slot.replicate, digest=digest
                ),
            )
            if index % GROUP == GROUP - 1:
                writer.flush()
            if index % DISPATCHED == 0:  # the log of a driver
                span = [[index, index + DISPATCHED]]
                run.append_log({"event": "dispatch", "worker": worker, "indexes": span, "alone": False})
        sealed = writer.seal()
        run.commit(sealed, sealed.indexes)
    run.close()


def measured(*argv: str) -> tuple[float, float, float, str]:
    """Runs a command: its seconds, those of CPU time, the most memory it had in MB, what it printed."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([sys.executable, "-m", "cogeval", *argv], stdout=out)
        _, state, usage = os.wait4(process.pid, 0)
        spent_s = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(state)
        if process.returncode:
            sys.exit(f"cogeval {' '.join(argv)} failed")
        out.seek(0)
        cpu_s = usage.ru_utime + usage.ru_stime
        return spent_s, cpu_s, usage.ru_maxrss / 1000, out.read().decode()


def report(root: Path, commands: list[list[str]]) -> None:
    """Prints what each command took, and how the run stands."""
    for command in commands:
        spent_s, cpu_s, most_mb, out = measured(command[0], "big", f"run.root={root}", "--json", *command[1:])
        said = json.loads(out)
        keys = ("recorded", "shards", "bytes", "merged", "made", "shards_after", "findings")
        facts = ", ".join(f"{key} {said[key]}" for key in keys if key in said)
        print(
            f"{' '.join(command):<24} {spent_s:7.2f} s ({cpu_s:.2f} s CPU) {most_mb:7.0f} MB   {facts}",
            flush=True,
        )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--played", type=int, default=2000, help="episodes that are really played")
    parser.add_argument("--per-shard", type=int, default=4000, help="episodes of a shard before merging")
    parser.add_argument("--target-mb", default="128")
    parser.add_argument("--audit", action="store_true", help="audit before and after, too")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "runs"
        experiment = experiment_of(root, args.episodes)
        run = new_run(experiment)
        started = time.monotonic()
        episodes = played(experiment, min(args.played, args.episodes))
        write(run, experiment, episodes, args.per_shard)
        print(f"{args.episodes} episodes written in {time.monotonic() - started:.0f} s", flush=True)
        reading = [["status"], ["show"], *([["audit"]] if args.audit else [])]
        report(root, [*reading, ["compact", "--target-mb", args.target_mb], *reading, ["compact"]])


if __name__ == "__main__":
    main()
