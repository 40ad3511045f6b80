"""What dead workers left of a run, wherever it lies.

Invariant: a run in a directory that every node shares is recovered here; the streams of a run in an
object store lie on the disk of the node that filled them, and are recovered there, while it lives.
"""

from __future__ import annotations

from cogeval.cluster.lifeline import Lifeline
from cogeval.cluster.nodes import alive, own_node, recover_on
from cogeval.store.recover import recover
from cogeval.store.run import RunDir
from cogeval.store.shards import SealedShard


class Remains:
    """The finder of what one driver's workers leave.

    Args:
        run: the run.
        line: tells when other nodes cannot be asked any more: what lies there stays for later.
    """

    def __init__(self, run: RunDir, line: Lifeline) -> None:
        self._run = run
        self._line = line
        self._homes: dict[str, str] = {}  # worker id -> the node that it was on

    @property
    def _is_spread(self) -> bool:
        return self._run.place.path is None

    def note(self, worker_id: str, node_id: str) -> None:
        """Remembers where a worker is."""
        self._homes[worker_id] = node_id

    def on_other_nodes(self) -> list[SealedShard]:
        """What the workers of earlier drivers left on the disks of the other nodes."""
        return recover_on(alive().keys() - {own_node()}, self._run.place) if self._is_spread else []

    def of(self, worker_id: str) -> list[SealedShard]:
        """What a lost worker left."""
        found: dict[str, SealedShard] = {}
        home = self._homes.get(worker_id)
        if self._is_spread and home is not None and not self._line.is_cut and home != own_node():
            found = {shard.shard_id: shard for shard in recover_on([home], self._run.place, worker_id)}
        here = {shard.shard_id: shard for shard in recover(self._run.place, worker_id)}
        return list((here | found).values())
