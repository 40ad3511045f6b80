"""What Ray says of an actor that is gone, or cannot be reached: why, and where it was.

Invariant: reads what Ray words without a code in one place only, and never raises.
"""

from __future__ import annotations

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnavailableError

from cogeval.cluster.lifeline import Lifeline

_WITH_NODE = ("node has died", "node was terminated")
_CANCELLED = "never ran"


def last_line(error: BaseException) -> str:
    """The last line of an error's text: Ray puts the cause there, beneath its own traceback."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def went_with_node(error: BaseException) -> bool:
    """True when an actor was lost because its node was."""
    return any(words in str(error) for words in _WITH_NODE)


def is_mishap(error: BaseException) -> bool:
    """True when a worker went with its node, or cannot be reached: what it played need not be the cause."""
    return isinstance(error, ActorUnavailableError) or went_with_node(error) or _CANCELLED in str(error)


def node_of_actor(actor: ActorHandle, line: Lifeline) -> str | None:
    """Id of the node that an actor is, or was, on; None: it never was on one, or nobody knows.

    Args:
        actor: alive or dead.
        line: tells whether the cluster can be asked.
    """
    try:
        if not line.look():
            return None
        # Ray has no public name for it without a dashboard.
        node_id = str(ray._private.state.actors(actor._actor_id.hex())["Address"]["NodeID"])
    except Exception:  # noqa: BLE001 - private names come and go: then nobody knows
        return None
    return None if set(node_id) <= {"f"} else node_id
