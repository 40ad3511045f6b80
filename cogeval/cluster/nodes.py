"""The nodes of a cluster before and beside the workers: what they run, and what lies on their disks.

Invariant: a node is asked by a task that is pinned to it, and one that is gone, or does not answer in
time, holds up nobody. What is asked before the versions are known to be the same needs nothing of ours
on the node.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import ray
from ray import cloudpickle
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cogeval import __version__
from cogeval.cluster import node_facts
from cogeval.cluster.seat_fit import Node, node_of
from cogeval.errors import InputError
from cogeval.store.places import Place
from cogeval.store.probe import answer, probe
from cogeval.store.recover import recover
from cogeval.store.shards import SealedShard

_LOOK_S = 60.0  # longest wait for all nodes' facts: each starts a process
_RECOVER_S = 120.0  # and for what a node has to seal and send


def living_nodes() -> dict[str, Node]:
    """Node id -> what it has, of every node of the cluster that lives."""
    return {n["NodeID"]: node_of(n["NodeManagerAddress"], n["Resources"]) for n in ray.nodes() if n["Alive"]}


def alive() -> dict[str, str]:
    """Node id -> address of every node of the cluster that lives."""
    return {node_id: node.name for node_id, node in living_nodes().items()}


def own_node() -> str:
    """Id of the node that this driver is on."""
    return str(ray.get_runtime_context().get_node_id())


def check_nodes(place: Place) -> None:
    """Refuses a cluster that would play with another cogeval, or write into other directories.

    Args:
        place: the run's.

    Raises:
        InputError: a node has another version, or none, or does not share the run's directory; each is
            named.
    """
    nodes = alive()
    cloudpickle.register_pickle_by_value(node_facts)  # a node with another cogeval has no such module
    try:
        facts = _ask(node_facts.facts, nodes, _LOOK_S, [])
    finally:
        cloudpickle.unregister_pickle_by_value(node_facts)
    wrong = [complaint for node_id, fact in facts.items() if (complaint := _complaint(nodes[node_id], fact))]
    if wrong:
        raise InputError(f"{'; '.join(wrong)}: every node needs what the driver has")
    if place.path is not None and nodes.keys() - {own_node()}:

        def ask(uri: str, name: str) -> list[tuple[str, str | None]]:
            return [(nodes[n], said) for n, said in _ask(answer, nodes, _LOOK_S, [uri, name]).items()]

        probe(place, ask)


def recover_on(node_ids: Iterable[str], place: Place, prefix: str = "") -> list[SealedShard]:
    """Seals what dead workers left on the disks of other nodes, as `recover` does here.

    Args:
        node_ids: of nodes that may live or not.
        place: the run's.
        prefix: a worker id; empty: all workers.

    Returns:
        The shards to commit, each once; those of nodes that are gone or silent are not among them.
    """
    found = _ask(recover, set(node_ids) & alive().keys(), _RECOVER_S, [place, prefix])
    return list({shard.shard_id: shard for shards in found.values() for shard in shards}.values())


def _ask(
    what: Callable[..., Any], node_ids: Iterable[str], patience_s: float, arguments: list[Any]
) -> dict[str, Any]:
    """Calls a function on every node at once: node id -> answer of those that gave one."""
    remote = ray.remote(num_cpus=0, max_retries=0)(what)
    calls = {
        remote.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False)).remote(
            *arguments
        ): node_id
        for node_id in node_ids
    }
    if not calls:
        return {}
    done, _ = ray.wait(list(calls), num_returns=len(calls), timeout=patience_s)
    answers = {}
    for call in done:
        try:
            answers[calls[call]] = ray.get(call, timeout=1.0)
        except (RayError, GetTimeoutError):
            continue  # the node went meanwhile: its workers, if it gets any, tell more
    return answers


def _complaint(address: str, fact: dict[str, Any]) -> str | None:
    """What is wrong with a node, in a clause; None: nothing."""
    where = f"node {fact['host']} ({address})"
    if fact["cogeval"] is None:
        return f"{where} has no cogeval for its Python ({fact['executable']}), the driver {__version__}"
    if fact["cogeval"] != __version__:
        return f"{where} runs cogeval {fact['cogeval']}, the driver {__version__}"
    if fact["python"] != sys.version_info[:2]:
        return f"{where} runs Python {_dotted(fact['python'])}, the driver {_dotted(sys.version_info[:2])}"
    return None


def _dotted(version: Iterable[int]) -> str:
    return ".".join(map(str, version))
