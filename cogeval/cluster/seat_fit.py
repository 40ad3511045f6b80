"""Whether a run's seat actors fit on a cluster beside its workers: found out before anything plays.

Invariant: for what is accepted here there is room when the seat actors are placed before the workers; for
anything else Ray would wait silently. Pure, but for a look at this machine; imports no ray.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence

import msgspec
import psutil

from cogeval.agents.actor.options import ActorOptions
from cogeval.errors import InputError, few

_MOST_NODES = 8  # that a message names
_MB = 1_000_000
_UNKNOWN = math.inf  # GPUs of a machine whose Ray has not counted them yet
_SLACK = 1e-6  # Ray counts resources in ten thousandths


class Need(msgspec.Struct, frozen=True):
    """What the seat actors of one agent ask for."""

    agent: str  # its name in the pool
    count: int  # replicas and spares
    cpus: float  # of each
    gpus: float
    memory_mb: float

    def each(self) -> str:
        """What one of them asks for, for people."""
        return _amounts(self.cpus, self.gpus, self.memory_mb, known_memory=self.memory_mb > 0)


class Node(msgspec.Struct, frozen=True):
    """What one node has in all."""

    name: str
    cpus: float
    gpus: float
    memory_mb: float

    def holds(self, need: Need) -> bool:
        """True when one of them can be here."""
        return (
            need.cpus <= self.cpus + _SLACK
            and need.gpus <= self.gpus + _SLACK
            and need.memory_mb <= self.memory_mb + _SLACK
        )

    def without(self, need: Need) -> Node:
        """What is left beside one of them."""
        return Node(self.name, self.cpus - need.cpus, self.gpus - need.gpus, self.memory_mb - need.memory_mb)

    def __str__(self) -> str:
        return f"{self.name}: {_amounts(self.cpus, self.gpus, self.memory_mb)}"


def need_of(agent: str, options: ActorOptions) -> Need:
    """What the seat actors of an agent ask for.

    Args:
        agent: its name in the pool.
        options: its setting ``actor``.
    """
    num = options.replicas + options.spares
    return Need(agent, num, options.cpus, options.gpus, options.memory_mb or 0)


def this_machine() -> Node:
    """What this machine has; GPUs are for a Ray to count."""
    return Node("this machine", os.cpu_count() or 1, _UNKNOWN, psutil.virtual_memory().total / _MB)


def node_of(name: str, resources: dict[str, float]) -> Node:
    """A node from what Ray says of its resources."""
    memory_mb = resources.get("memory", 0.0) / _MB
    return Node(name, resources.get("CPU", 0.0), resources.get("GPU", 0.0), memory_mb)


def own_cpus(needs: Iterable[Need]) -> int:
    """CPUs that a Ray of our own gives to seat actors, beyond those of its workers."""
    return math.ceil(sum(need.count * need.cpus for need in needs))


def check_each(needs: Sequence[Need], nodes: Sequence[Node]) -> None:
    """Refuses a seat actor that no node could hold even if it were alone there.

    Raises:
        InputError: what was asked, and what each node has.
    """
    for need in needs:
        if not any(node.holds(need) for node in nodes):
            raise InputError(
                f"pool.agents.{need.agent}.actor: no node has what one replica asks for: {need.each()}; "
                f"{_listed(nodes)}. Lower cpus, gpus or memory_mb of the agent, or add such a node"
            )


def fitting_workers(needs: Sequence[Need], nodes: Sequence[Node], workers: int | None) -> int:
    """The number of workers, of one CPU each, that fit beside the seat actors.

    Args:
        needs: of the run's agents; none: the whole cluster is the workers'.
        nodes: of the cluster.
        workers: how many must fit; None: as many as do.

    Raises:
        InputError: what was asked, what each node has, and what the workers take.
    """
    check_each(needs, nodes)
    left = list(nodes)
    for need in sorted(needs, key=lambda n: (n.gpus, n.cpus, n.memory_mb), reverse=True):
        for number in range(need.count):
            # The fullest node that holds it: large gaps stay whole for large requests.
            places = [i for i, node in enumerate(left) if node.holds(need)]
            if not places:
                raise _no_room(needs, nodes, workers, f"there is room for {number} of {need.agent}")
            place = min(places, key=lambda i: (left[i].gpus, left[i].cpus))
            left[place] = left[place].without(need)
    room = sum(math.floor(node.cpus + _SLACK) for node in left)
    if room < (workers or 1):
        raise _no_room(needs, nodes, workers, f"beside the seat actors there is room for {room} workers")
    return workers or room


def _no_room(needs: Sequence[Need], nodes: Sequence[Node], workers: int | None, what: str) -> InputError:
    if not needs:
        most = sum(math.floor(node.cpus + _SLACK) for node in nodes)
        return InputError(
            f"cluster.workers: expected at most {most}, the CPUs of the cluster, got {workers or 1}; "
            f"{_listed(nodes)}. Lower it or add nodes"
        )
    asked = "; ".join(f"{need.count} x {need.each()} for {need.agent}" for need in needs)
    return InputError(
        f"the cluster has no room for the run: {what}. Seat actors, spares included, ask for {asked}; "
        f"{workers or 1} workers take a CPU each; {_listed(nodes)}. "
        "Lower replicas or spares of the agents, or cluster.workers, or add nodes"
    )


def _listed(nodes: Sequence[Node]) -> str:
    return "nodes: " + (few([f"[{node}]" for node in nodes], _MOST_NODES) or "none")


def _amounts(cpus: float, gpus: float, memory_mb: float, *, known_memory: bool = True) -> str:
    memory = f", {memory_mb:,.0f} MB of memory" if known_memory else ""
    return f"{cpus:,.6g} CPUs{'' if gpus == _UNKNOWN else f', {gpus:g} GPUs'}{memory}"
