"""Waits until a Ray cluster has so many nodes, and prints its address.

A run starts one worker for each CPU that is there. Nodes that come later get theirs where cluster.workers is
null; but what is checked before a run (do all nodes share its directory, does a seat actor fit) is checked of
those that are there.

    python jobs/wait_for_nodes.py --address HOST:PORT 4
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import time
from pathlib import Path

import ray

LOG_LINES = 20


def main() -> int:
    """Waits and prints.

    Returns:
        0; 1 when they are not there in time.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("num_nodes", type=int)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--address", help="HOST:PORT of the head")
    where.add_argument("--address-file", type=Path, help="ray_current_cluster in the head's --temp-dir")
    parser.add_argument("--pid", type=int, help="of `ray start`: there is nothing to wait for without it")
    parser.add_argument("--log", type=Path, help="what `ray start` prints; its end is shown on failure")
    parser.add_argument("--timeout-s", type=float, default=300.0)
    args = parser.parse_args()
    deadline = time.monotonic() + args.timeout_s
    address, num_alive = args.address, 0
    while time.monotonic() < deadline and is_alive(args.pid):
        if args.address_file is not None and args.address_file.is_file():
            address = args.address_file.read_text().strip()
        if address and listens(address):
            num_alive = wait_for(address, args.num_nodes, deadline, args.pid)
            break
        time.sleep(0.5)
    if num_alive >= args.num_nodes:
        print(address)
        return 0
    print(why_not(args, address, num_alive), file=sys.stderr)
    return 1


def why_not(args: argparse.Namespace, address: str | None, num_alive: int) -> str:
    """What went wrong, with the end of the log where there is one."""
    expected = f"expected {args.num_nodes} nodes at {address or 'the head'}"
    if is_alive(args.pid):
        said = f"{expected} within {args.timeout_s:.0f} s, got {num_alive}"
    else:
        said = f"{expected}, got {num_alive}: `ray start` (process {args.pid}) has ended"
    if args.log is None:
        return f"{said}; what `ray start` printed says why"
    try:
        lines = args.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
    except OSError as error:
        return f"{said}; its log {args.log} cannot be read: {error.strerror}"
    return "\n  ".join([f"{said}; its log ends", *(lines or ["(it is empty)"])])


def is_alive(pid: int | None) -> bool:
    """Whether a process of ours runs; of no process: as far as we know."""
    if pid is None:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def listens(address: str) -> bool:
    """Whether something answers there; Ray itself would insist for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5.0).close()
    except OSError:
        return False
    return True


def wait_for(address: str, num_nodes: int, deadline: float, pid: int | None) -> int:
    """How many nodes are alive, as soon as there are enough, at the deadline, or without the process."""
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        while True:
            num_alive: int = sum(node["Alive"] for node in ray.nodes())
            if num_alive >= num_nodes or time.monotonic() >= deadline or not is_alive(pid):
                return num_alive
            time.sleep(0.5)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    sys.exit(main())
