"""Plays runs on a cluster of three nodes while processes and nodes are killed, and proves each run.

``python tests/chaos/run.py --seed 7`` does what seed 7 draws, ``--seeds 50`` what seeds 0 to 49 draw.
The exit code is 1 when any run differs from the undisturbed one, misses an episode or has one twice.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from chaos_cluster import Machines
from chaos_run import Ordeal, Report, Scene, new_directory, undisturbed
from chaos_schedule import draw_schedule

_HAS_SEAT_ACTORS = importlib.util.find_spec("cogeval.cluster.seat_pool") is not None


def main() -> int:
    """Plays the seeds that were asked for."""
    asked = read_arguments()
    seeds = [asked.seed] if asked.seed is not None else list(range(asked.first, asked.first + asked.seeds))
    directory, began = new_directory(None), time.monotonic()
    reports: list[Report] = []
    with Machines() as machines:
        scene = Scene(machines, directory, asked.episodes, asked.decision_s, _HAS_SEAT_ACTORS)
        quiet = undisturbed(scene)
        say(f"undisturbed: {quiet.elapsed_s:.0f} s, digest {quiet.digest[:16]}, {problems(quiet)}")
        for seed in seeds:
            report = Ordeal(scene, seed).go(draw_schedule(seed, seats=_HAS_SEAT_ACTORS))
            if report.digest != quiet.digest:
                report.problems.append(f"digest {report.digest[:16]} is not the undisturbed run's")
            reports.append(report)
            say(row(report))
    failed = [report for report in reports if report.problems]
    say("", *summary(reports, time.monotonic() - began))
    if failed or quiet.problems:
        say(f"the runs are kept in {directory}", *(again(report) for report in failed))
        return 1
    shutil.rmtree(directory)
    return 0


def read_arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--seeds", type=int, default=50, help="how many (default: 50)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--episodes", type=int, default=400, help="in a run (default: 400)")
    parser.add_argument("--decision-s", type=float, default=0.05, help="of the slow agent (default: 0.05)")
    return parser.parse_args()


def say(*lines: str) -> None:
    """Writes lines at once."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def problems(report: Report) -> str:
    """What differed."""
    return "; ".join(report.problems) or "ok"


def row(report: Report) -> str:
    """One seed in one line."""
    done = ", ".join(report.actions) or "nothing in time"
    numbers = f"{report.num_resumes} resumes  {report.elapsed_s:>4.0f} s"
    return f"seed {report.seed:>4}  {numbers}  {problems(report)}  [{done}]"


def summary(reports: list[Report], elapsed_s: float) -> list[str]:
    """The table at the end."""
    lines = [f"{'seed':>6} {'actions':>8} {'resumes':>8} {'seconds':>8}  digest and audit"]
    for report in reports:
        numbers = f"{len(report.actions):>8} {report.num_resumes:>8} {report.elapsed_s:>8.0f}"
        lines.append(f"{report.seed:>6} {numbers}  {problems(report)}")
    num_failed = sum(bool(report.problems) for report in reports)
    lines.append(f"{len(reports)} schedules, {num_failed} failed, {elapsed_s / 60:.1f} minutes")
    return lines


def again(report: Report) -> str:
    """How to see a failure again."""
    return f"again: python tests/chaos/run.py --seed {report.seed}"


if __name__ == "__main__":
    sys.exit(main())
