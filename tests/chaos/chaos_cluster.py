"""Three nodes on this machine, which can be killed and replaced.

Invariant: every process that is killed was started by this object or by a node of its.
"""

from __future__ import annotations

import contextlib
import os
from types import TracebackType
from typing import Any

import psutil
from ray.cluster_utils import Cluster

_SEES_DEATH = {  # a dead node is known after 1.5 s; by default after 15 s
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}
_NODE = {"num_cpus": 1, "object_store_memory": 100_000_000}


class Machines:
    """A cluster of a head and some nodes, one CPU each.

    Args:
        num_nodes: with the head.
        head_cpus: of the head.
    """

    def __init__(self, num_nodes: int = 3, head_cpus: int = 1) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        head = {**_NODE, "num_cpus": head_cpus, "include_dashboard": False, "_system_config": _SEES_DEATH}
        self._num_nodes = num_nodes
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes: list[Any] = []  # beside the head
        self.restore()

    @property
    def address(self) -> str:
        """Where drivers connect."""
        return str(self._cluster.address)

    def __enter__(self) -> Machines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.shutdown()

    def add_node(self, **options: Any) -> Any:
        """Starts one more node; on a busy machine one may not be up in time, and is tried again."""
        for left in (2, 1, 0):
            try:
                self.nodes.append(self._cluster.add_node(**{**_NODE, **options}))
                break
            except Exception as error:  # Ray has no class of its own for it
                if not left or "timed out" not in str(error):
                    raise
        return self.nodes[-1]

    def kill_node(self, number: int) -> None:
        """Kills everything on a node at once, as a power cut does; the head is never taken."""
        if not self.nodes:
            return
        node = self.nodes.pop(number % len(self.nodes))
        started = [
            psutil.Process(info.process.pid) for infos in node.all_processes.values() for info in infos
        ]
        for process in [*started, *(child for p in started for child in p.children(recursive=True))]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._cluster.remove_node(node, allow_graceful=False)

    def kill_head(self) -> None:
        """Kills everything on the head at once: the cluster is lost."""
        node = self._cluster.head_node
        started = [
            psutil.Process(info.process.pid) for infos in node.all_processes.values() for info in infos
        ]
        for process in [*started, *(child for p in started for child in p.children(recursive=True))]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def restore(self) -> None:
        """Gives the cluster the number of nodes that it began with."""
        while len(self.nodes) >= self._num_nodes:
            self.kill_node(len(self.nodes) - 1)
        while len(self.nodes) < self._num_nodes - 1:
            self.add_node()

    @staticmethod
    def actors(kind: str) -> list[psutil.Process]:
        """Processes of Ray actors of a class, by process id."""
        return sorted(_named(f"ray::{kind}"), key=lambda process: process.pid)


def _named(text: str) -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if " ".join(process.cmdline()).startswith(text):
                found.append(process)
    return found
