"""Share of the ideal with seats that take their time, beside their episodes and in seat actors; recovery.

Every decision of a game with one decision at a time (COGZ, two seats) sleeps. With N episodes in flight the
ideal is N / latency decisions a second; measured is how long whole rounds of N take, after two seconds.
Recovery is the time from kill -9 of a process, or of a node of three on this machine, to the next decision of
its successor. A machine that is cut off says less than one whose processes are killed: there Ray's own
patience with a silent node comes first.

    python benchmarks/seat_latency.py
    python benchmarks/seat_latency.py --recovery
    python benchmarks/seat_latency.py --case actor,1000,1.0 --seconds 12
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import tempfile
import time
from array import array
from bisect import bisect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil
from hydra import compose, initialize_config_dir
from ray.cluster_utils import Cluster

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


def new_plan(root: Path, placement: str, in_flight: int, latency_s: float, replicas: int, cpus: float) -> Any:
    """A run of more short games than there is time for, its plan and the directory of its times."""
    log = root / "log"
    log.mkdir()
    agent: dict[str, Any] = {"_target_": "seat_latency.Sleeps", "seconds": latency_s, "log": str(log)}
    if placement == "actor":
        agent |= {"placement": "actor", "actor": {"replicas": replicas, "cpus": cpus}}
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
        strike: kills when half of that is over, given the ids of the processes that decide; None: nobody.
    """

    def __init__(self, log: Path, seconds: float, strike: Callable[[set[int]], None] | None) -> None:
        self.log = log
        self.seconds = seconds
        self.strike = strike
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
        if self.strike and self.killed_at is None and now - self.began > self.seconds / 2:
            self.known = set(times_of(self.log))
            self.killed_at = time.time()
            self.strike(self.known)
        if now - self.began > self.seconds:
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C: the driver stops and seals


def kill_process(deciding: set[int]) -> None:
    """Kills one of the processes that decide."""
    os.kill(min(deciding), signal.SIGKILL)


class Nodes:
    """A head on which nobody plays and two more nodes on this machine, each with room for all."""

    def __init__(self) -> None:
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 100_000_000}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.others = [
            self.cluster.add_node(num_cpus=2 * WORKERS, object_store_memory=100_000_000) for _ in range(2)
        ]

    def kill_node(self, deciding: set[int]) -> None:
        """Kills a node with one of the processes that decide."""
        for node in self.others:
            raylets = [psutil.Process(info.process.pid) for info in node.all_processes["raylet"]]
            here = [child for raylet in raylets for child in raylet.children(recursive=True)]
            if deciding & {process.pid for process in here}:
                self.cluster.remove_node(node, allow_graceful=False)
                for process in here:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.kill()
                return
        raise RuntimeError("nobody decides on these nodes")


def measure(
    placement: str,
    in_flight: int,
    latency_s: float,
    seconds: float,
    strike: Callable[[set[int]], None] | None = None,
    address: str | None = None,
) -> float:
    """The share of the ideal; or, when somebody is killed, seconds to the successor's first decision."""
    cpus = 0 if address is None else 0.01  # of a seat actor, which keeps it off a head without CPUs
    with tempfile.TemporaryDirectory() as root:
        run, plan, log = new_plan(Path(root), placement, in_flight, latency_s, replicas=WORKERS, cpus=cpus)
        watch = Watch(log, seconds, strike)
        drive(plan, run, ClusterOptions(address=address, workers=WORKERS), [watch])
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
    parser.add_argument("--recovery", action="store_true", help="only how long a recovery takes")
    args = parser.parse_args()
    chosen = [tuple(case.split(",")) for case in args.case or ()]
    if not args.recovery:
        report_shares([c for c in CASES if not chosen or tuple(map(str, c[:3])) in chosen], args.seconds)
    if not chosen:
        report_recovery(args.seconds)


def report_shares(cases: list[tuple[str, int, float, float | None]], seconds: float) -> None:
    """Measures and prints the share of the ideal."""
    with connected(ClusterOptions(workers=WORKERS)):
        print(f"{WORKERS} workers and {WORKERS} seat actors on {os.cpu_count()} cores")
        print(f"{'placement':>10} {'in flight':>10} {'latency s':>10} {'of ideal':>10} {'goal':>6}")
        for placement, in_flight, latency_s, goal in cases:
            share = measure(placement, in_flight, latency_s, seconds)
            verdict = "" if goal is None else f"{goal:6.0%}" + ("" if share >= goal else " missed")
            print(f"{placement:>10} {in_flight:>10} {latency_s:>10} {share:>10.1%} {verdict}", flush=True)


def report_recovery(seconds: float) -> None:
    """Measures and prints how long a killed process, and a killed node, are missed."""
    placements = {"inline": "an episode actor", "actor": "a seat actor"}
    with connected(ClusterOptions(workers=WORKERS)):
        for placement, name in placements.items():
            took_s = measure(placement, 200, 0.2, seconds, kill_process)
            print(f"from kill -9 of {name} to its successor's first decision: {took_s:.2f} s", flush=True)
    for placement, name in placements.items():
        nodes = Nodes()
        try:
            took_s = measure(placement, 200, 0.2, 2 * seconds, nodes.kill_node, nodes.cluster.address)
        finally:
            nodes.cluster.shutdown()
        print(f"from kill -9 of a node with {name} to the same: {took_s:.2f} s", flush=True)


if __name__ == "__main__":
    main()
