"""Memory of the driver over a large sweep: it must stay flat, whatever was scheduled.

Runs `cogeval run` with the cheapest agents and samples the resident set of its own process (not of
Ray's workers) while it plays.

    python benchmarks/driver_memory.py --episodes 100000
    python benchmarks/driver_memory.py --episodes 1000000 --for-s 120

With ``--for-s`` the run is interrupted after so many seconds, as Ctrl-C would.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

_INTERRUPTED = 130


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--every-s", type=float, default=5.0)
    parser.add_argument("--for-s", type=float, default=float("inf"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        command = [
            sys.executable, "-m", "cogeval", "run", "pool=random", "schedule=round_robin",
            "game.rounds=3",
            f"schedule.blocks={args.episodes}", "tracking=off", f"run.root={Path(root) / 'runs'}",
        ]  # fmt: skip
        process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        started, peak_mb, shown = time.monotonic(), 0.0, -args.every_s
        print(f"{'s':>6} {'MB':>6}   resident set of the driver, {args.episodes} episodes scheduled")
        while process.poll() is None:
            try:
                now_mb = process.memory_info().rss / 1e6
            except psutil.Error:
                break
            peak_mb = max(peak_mb, now_mb)
            spent = time.monotonic() - started
            if spent - shown >= args.every_s:
                shown = spent
                print(f"{spent:6.0f} {now_mb:6.0f}", flush=True)
            if spent >= args.for_s:
                process.send_signal(signal.SIGINT)
                break
            time.sleep(0.1)
        errors = process.communicate()[1].decode()
        if process.returncode not in (0, _INTERRUPTED):
            sys.exit(errors)
        print(f"peak {peak_mb:.0f} MB in {time.monotonic() - started:.0f} s")
        if process.returncode == _INTERRUPTED:
            print(errors.splitlines()[-1])  # how many episodes that were


if __name__ == "__main__":
    main()
