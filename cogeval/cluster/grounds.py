"""Where a run's workers may be, and how many there is room for, while nodes come and go.

Invariant: a node that joined and on which no worker can play gets no other one. Looks from a thread of
its own, for a question to a cluster whose head is lost may wait for minutes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType

from cogeval.cluster.nodes import living_nodes
from cogeval.cluster.seat_fit import Need, Node, fitting_workers
from cogeval.errors import InputError

_LOOK_S = 2.0  # between two looks at the nodes
_END_S = 2.0  # longest wait for the thread when all is over


class Grounds:
    """The nodes of one run; watches them while it is entered.

    Args:
        num_workers: that the run begins with.
        needs: of its seat actors.
        trusted: ids of the nodes that were checked before it began.
        grows: nodes that join get workers beyond the first number.
        nodes: asks the cluster.
    """

    def __init__(
        self,
        num_workers: int,
        needs: Sequence[Need] = (),
        trusted: Iterable[str] = (),
        *,
        grows: bool = False,
        nodes: Callable[[], Mapping[str, Node]] = living_nodes,
    ) -> None:
        self._room = num_workers
        self._needs = needs
        self._checked = frozenset(trusted)
        self._trusted = set(self._checked)
        self._refused: set[str] = set()
        self._nodes = nodes
        self._ended = threading.Event()
        watch = threading.Thread(target=self._watch, name="grounds", daemon=True)
        self._thread = watch if grows else None

    def __enter__(self) -> Grounds:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_END_S)

    def lacking(self, num_workers: int) -> int:
        """How many more workers there is room for; 0 when nodes were lost and others are still to come."""
        return max(0, self._room - num_workers)

    def has_joined(self, node_id: str) -> bool:
        """True when a node was not there before the run began."""
        return node_id not in self._checked

    def trust(self, node_id: str) -> None:
        """A worker plays there."""
        self._trusted.add(node_id)

    def refuse(self, node_id: str) -> bool:
        """Keeps every further worker off a node; False when that is so already."""
        is_new = node_id not in self._refused
        self._refused.add(node_id)
        return is_new

    def is_doubtful(self, node_id: str) -> bool:
        """True for a node that joined and on which no worker has played yet: a death there is its doing."""
        return node_id not in self._trusted

    def label_selector(self) -> dict[str, str]:
        """Which nodes a new worker may be on, as Ray wants it said; empty: all."""
        return {"ray.io/node-id": f"!in({','.join(sorted(self._refused))})"} if self._refused else {}

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_S):
            try:
                nodes = [node for name, node in self._nodes().items() if name not in self._refused]
                self._room = fitting_workers(self._needs, nodes, None)
            except InputError:  # less room than the seat actors need: those that were lost come first
                continue
            except Exception:  # noqa: BLE001, S112 - the cluster does not answer: the lifeline judges that
                continue
