"""Share of the ideal with seats that take their time, beside their episodes and in seat actors; recovery.

Every decision of a game with one decision at a time (COGZ, two seats) sleeps. With N episodes in flight the
ideal is N / latency decisions a second; measured is how long whole rounds of N take, after two seconds.
Recovery is the time from kill -9 of a process to the next decision of its successor.

    python benchmarks/seat_latency.py
    python benchmarks/seat_latency.py --case actor,1000,1.0 --seconds 12
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import tempfile
import time
from array import array
from bisect import bisect
from pathlib import Path
from typing import Any

import msgspec
import psutil
from hydra import compose, initialize_config_dir

from cogeval.cluster.connection import connected
from cogeval.cluster.driver import Progress, drive
from cogeval.cluster.plan import ClusterOptions
from cogeval.config import build_experiment, build_plan, conf_dir, config_to_yaml, read_config
from cogeval.core.agent import Reply, Request
from cogeval.store.run import RunDir, new_run_id

CASES: list[tuple[str, int, float, float | None]] = [
    ("inline", 200, 1.0, 0.95),
    ("inline", 1000, 1.0, 0.95),
    ("inline", 200, 0.2, None),
    ("inline", 1000, 0.2, None),
    ("actor", 1000, 1.0, 0.90),
    ("actor", 200, 1.0, None),
    ("actor", 200, 0.2, 0.85),
    ("actor", 1000, 0.2, None),
]
WORKERS = 2
_KEPT = 50  # times of decisions that a process keeps before it writes them down


class Sleeps:
    """Takes the do-nothing action after a while, and writes down when each decision began.

    Args:
        seconds: that a decision takes.
        log: a directory with a file of each process.
    """

    times = array("d")  # of this process

    def __init__(self, seconds: float, log: str) -> None:
        self.seconds = seconds
        self.log = Path(log)

    async def decide(self, request: Request) -> Reply:
        """Sleeps."""
        self.times.append(time.time())
        if len(self.times) >= _KEPT:
            with (self.log / str(os.getpid())).open("ab") as file:
                file.write(self.times.tobytes())
            del self.times[:]
        await asyncio.sleep(self.seconds)
        return Reply(request.decision.default)


def times_of(log: Path) -> dict[int, list[float]]:
    """When the decisions of each process began, in order."""
    found = {}
    for file in log.iterdir():
        data = file.read_bytes()
        found[int(file.name)] = sorted(array("d", data[: len(data) // 8 * 8]))
    return found


def new_plan(root: Path, placement: str, in_flight: int, latency_s: float, replicas: int) -> Any:
    """A run of more short games than there is time for, its plan and the directory of its times."""
    log = root / "log"
    log.mkdir()
    agent: dict[str, Any] = {"_target_": "seat_latency.Sleeps", "seconds": latency_s, "log": str(log)}
    if placement == "actor":
        agent |= {"placement": "actor", "actor": {"replicas": replicas, "cpus": 0}}
    overrides = [
        "game=cogz",
        "pool=random",
        "schedule=round_robin",
        "schedule.blocks=100000",
        f"cluster.episodes_in_flight={in_flight // WORKERS}",
        "tracking=off",
    ]
    with initialize_config_dir(str(conf_dir()), version_base=None):
        config = read_config(compose("config", overrides))
    pool = msgspec.structs.replace(config.pool, agents={"sleeper": agent})
    config = msgspec.structs.replace(config, pool=pool, agent_paths=[str(Path(__file__).parent)])
    experiment = build_experiment(config)
    run = RunDir.create(root / "runs", new_run_id(experiment.digest), {"agents": []}, config_to_yaml(config))
    return run, build_plan(experiment, run.run_id, str(run.path.resolve())), log


class Watch:
    """Observes a run, kills a process of it when told to, and stops it when the window is over.

    Args:
        log: where the times are.
        seconds: from the first decisions to the stop.
        victim: a word in the name of the process to kill when half of that is over; None: nobody.
    """

    def __init__(self, log: Path, seconds: float, victim: str | None) -> None:
        self.log = log
        self.seconds = seconds
        self.victim = victim
        self.began: float | None = None
        self.killed_at: float | None = None
        self.known: set[int] = set()  # processes that had decided when one was killed

    def __call__(self, progress: Progress) -> None:
        """Looks."""
        now = time.time()
        if self.began is None and any(self.log.iterdir()):
            self.began = now
        if self.began is None or progress.stopping:
            return
        if self.victim and self.killed_at is None and now - self.began > self.seconds / 2:
            self.known = set(times_of(self.log))
            pid = next(pid for pid in self.known if self.victim in psutil.Process(pid).name())
            self.killed_at = time.time()
            os.kill(pid, signal.SIGKILL)
        if now - self.began > self.seconds:
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C: the driver stops and seals


def measure(
    placement: str, in_flight: int, latency_s: float, seconds: float, victim: str | None = None
) -> float:
    """The share of the ideal; or, with a victim, seconds from its death to its successor's first decision."""
    with tempfile.TemporaryDirectory() as root:
        run, plan, log = new_plan(Path(root), placement, in_flight, latency_s, replicas=WORKERS)
        watch = Watch(log, seconds, victim)
        drive(plan, run, ClusterOptions(workers=WORKERS), [watch])
        times = times_of(log)
    assert watch.began is not None
    if watch.killed_at is not None:
        return min(t[0] for pid, t in times.items() if pid not in watch.known) - watch.killed_at
    begun = sorted(t for each in times.values() for t in each)
    # Whole rounds of all that are in flight: a window of fixed length would count one more or less.
    first = bisect(begun, begun[0] + 2.0)
    rounds = (bisect(begun, begun[0] + seconds - 1.0) - 1 - first) // in_flight
    return rounds * latency_s / (begun[first + rounds * in_flight] - begun[first])


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement")
    parser.add_argument(
        "--case", action="append", help="only this one: placement,episodes in flight,latency in seconds"
    )
    args = parser.parse_args()
    cases = CASES
    if args.case:
        chosen = [tuple(case.split(",")) for case in args.case]
        cases = [case for case in CASES if tuple(map(str, case[:3])) in chosen]
    with connected(ClusterOptions(workers=WORKERS)):
        print(f"{WORKERS} workers and {WORKERS} seat actors on {os.cpu_count()} cores")
        print(f"{'placement':>10} {'in flight':>10} {'latency s':>10} {'of ideal':>10} {'goal':>6}")
        for placement, in_flight, latency_s, goal in cases:
            share = measure(placement, in_flight, latency_s, args.seconds)
            verdict = "" if goal is None else f"{goal:6.0%}" + ("" if share >= goal else " missed")
            print(f"{placement:>10} {in_flight:>10} {latency_s:>10} {share:>10.1%} {verdict}", flush=True)
        if not args.case:
            for victim, placement in (("EpisodeActor", "inline"), ("SeatActor", "actor")):
                took_s = measure(placement, 200, 0.2, args.seconds, victim)
                print(f"from kill -9 of an {victim} to its successor's first decision: {took_s:.2f} s")


if __name__ == "__main__":
    main()
