"""Waits until a Ray cluster has so many nodes, and prints its address.

A run starts one worker for each CPU that is there when it starts: nodes that come later play nothing.

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
    parser.add_argument(
        "--head-pid", type=int, help="of `ray start`: there is nothing to wait for without it"
    )
    parser.add_argument("--timeout-s", type=float, default=300.0)
    args = parser.parse_args()
    deadline = time.monotonic() + args.timeout_s
    address, num_alive = args.address, 0
    while time.monotonic() < deadline and (args.head_pid is None or is_alive(args.head_pid)):
        if args.address_file is not None and args.address_file.is_file():
            address = args.address_file.read_text().strip()
        if address and listens(address):
            num_alive = wait_for(address, args.num_nodes, deadline)
            break
        time.sleep(0.5)
    if num_alive >= args.num_nodes:
        print(address)
        return 0
    print(
        f"expected {args.num_nodes} nodes at {address or 'the head'} within {args.timeout_s:.0f} s, got "
        f"{num_alive}; what `ray start` printed says why",
        file=sys.stderr,
    )
    return 1


def is_alive(pid: int) -> bool:
    """Whether a process of ours runs."""
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


def wait_for(address: str, num_nodes: int, deadline: float) -> int:
    """How many nodes are alive, as soon as there are enough or at the deadline."""
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        while True:
            num_alive = sum(node["Alive"] for node in ray.nodes())
            if num_alive >= num_nodes or time.monotonic() >= deadline:
                return num_alive
            time.sleep(0.5)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    sys.exit(main())
