"""Seat actors without a cluster: one replica in this process, asked as any other.

Invariant: a replica that hangs is left behind and another takes its place; its threads are daemons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from cogeval.agents.actor.messages import Replica
from cogeval.agents.actor.replica import SeatReplica


class LocalPool:
    """A pool of one replica.

    Args:
        make: makes it, in the event loop.
    """

    def __init__(self, make: Callable[[], SeatReplica]) -> None:
        self._make = make
        self._replica: SeatReplica | None = None
        self._version = 0
        self._changed = asyncio.Event()

    async def replicas(self, known: int) -> tuple[int, Mapping[str, Replica]]:
        """Waits for another replica than the known one."""
        if known == self._version:
            self._changed.clear()
            await self._changed.wait()
        if self._replica is None:
            self._replica = self._make()
        return self._version, {f"here-{self._version}": self._replica}

    async def lost(self, replica_id: str) -> bool:
        """Makes another replica, unless that was done."""
        if self._replica is not None and replica_id == f"here-{self._version}":
            left, self._replica = self._replica, None
            self._version += 1
            self._changed.set()
            await left.close()
        return False

    async def hung(self, replica_id: str, is_known: bool) -> None:  # noqa: ARG002 - one client only
        """Leaves the replica behind, with its thread."""
        await self.lost(replica_id)

    async def close(self) -> None:
        """Stops what can be stopped."""
        if self._replica is not None:
            await self._replica.close()
