"""What the seat actors of a planned run will occupy, and whether this machine can hold them.

Invariant: pure arithmetic on what the pool asks for; no Ray is started and no replica made. GPUs of this
machine are not counted here: a run finds out in seconds whether there are enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cogeval.agents.actor.build import options_of
from cogeval.cluster.seat_fit import Need, Node, check_each, need_of, this_machine
from cogeval.config import Experiment
from cogeval.errors import InputError


def seat_lines(experiment: Experiment) -> list[str]:
    """What the seat actors of each agent that has some occupy, each in a line."""
    lines = []
    for entry in experiment.agents:
        options = options_of(entry.seated.agent)
        if options is None:
            continue
        num = options.replicas + options.spares
        total = [f"{num * options.cpus:g} CPUs", f"{num * options.gpus:g} GPUs"]
        if options.memory_mb:
            total.append(f"{num * options.memory_mb:,g} MB of memory")
        count = (
            f"{options.replicas:,} + {options.spares:,} spare" if options.spares else f"{options.replicas:,}"
        )
        lines.append(f"{entry.name}: {count}, in all {', '.join(total)}")
    return lines


def seat_troubles(experiment: Experiment, machine: Node | None = None) -> list[str]:
    """Why a run on this machine would be refused, or slow: one seat actor wants too much, or all together do.

    Args:
        experiment: what would be played; on a cluster that was there before nobody knows here.
        machine: what there is; None: this machine.
    """
    if experiment.config.cluster.address is not None:
        return []
    node = machine or this_machine()
    needs = list(_needs(experiment))
    refused = [str(error) for need in needs if (error := _refusal(need, node)) is not None]
    return refused or crowding(needs, experiment.config.cluster.workers or math.floor(node.cpus), node)


def crowding(needs: Sequence[Need], workers: int, node: Node) -> list[str]:
    """A warning when the seat actors of a run want more CPUs than the machine has; they get them on paper.

    Args:
        needs: of the run's agents.
        workers: beside them, with a CPU each.
        node: the machine.
    """
    asked = sum(need.count * need.cpus for need in needs)
    if asked <= node.cpus:
        return []
    return [
        f"seat actors, spares included, ask for {asked:g} CPUs beside {workers} workers, and {node.name} has "
        f"{node.cpus:g}: they share them, and every decision takes longer; lower replicas, spares or cpus"
    ]


def _refusal(need: Need, node: Node) -> InputError | None:
    try:
        check_each([need], [node])
    except InputError as error:
        return error
    return None


def _needs(experiment: Experiment) -> Iterable[Need]:
    for entry in experiment.agents:
        options = options_of(entry.seated.agent)
        if options is not None:
            yield need_of(entry.name, options)
