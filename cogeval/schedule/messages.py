"""What the ledger hears and what it says: events in, commands out.

Invariant: every message is a value of worker names and indexes, so that it can be logged and replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec


class Room(msgspec.Struct, frozen=True, gc=False):
    """The worker can take so many more. Replaces what it offered before; dispatches are taken off it."""

    worker: str
    num: int


class Finished(msgspec.Struct, frozen=True):
    """The episodes are flushed to the worker's streams."""

    worker: str
    indexes: Sequence[int]


class Failed(msgspec.Struct, frozen=True, gc=False):
    """One episode failed through our own fault; the worker lives on."""

    worker: str
    index: int
    reason: str


class Returned(msgspec.Struct, frozen=True):
    """The worker gives episodes back that it never began, as it does when it is told to stop."""

    worker: str
    indexes: Sequence[int]


class Sealed(msgspec.Struct, frozen=True):
    """A shard's files are complete on disk; `worker` is who played it, alive or lost."""

    worker: str
    shard_id: str
    indexes: Sequence[int]


class WorkerLost(msgspec.Struct, frozen=True, gc=False):
    """The worker is gone; its name never comes back.

    A mishap: it went with its node, or could not be reached. That says little about what it played.
    """

    worker: str
    is_mishap: bool = False


class Recovered(msgspec.Struct, frozen=True, gc=False):
    """All that could be recovered from the lost worker's streams has been reported as `Sealed`."""

    worker: str


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Send nothing more."""


class Dispatch(msgspec.Struct, frozen=True):
    """Send these episodes to the worker. Alone: it holds no other one until this one is back."""

    worker: str
    indexes: tuple[int, ...]
    alone: bool


class Commit(msgspec.Struct, frozen=True):
    """Write the shard's record: what counts, and what is a second copy of something settled."""

    worker: str
    shard_id: str
    accepted: tuple[int, ...]
    superseded: tuple[int, ...]


class Recover(msgspec.Struct, frozen=True, gc=False):
    """Read the lost worker's streams, report each shard as `Sealed`, then `Recovered`."""

    worker: str


class Void(msgspec.Struct, frozen=True, gc=False):
    """The episode will never be scored: every attempt failed."""

    index: int
    reason: str


class Done(msgspec.Struct, frozen=True, gc=False):
    """Nothing more will be sent and nothing is out. Complete: every index is recorded or void."""

    complete: bool


class Counts(msgspec.Struct, frozen=True, gc=False):
    """How many episodes stand where; they add up to the schedule's length."""

    todo: int  # to be sent
    out: int  # sent and unfinished, or lost and not yet recovered
    finished: int  # in a worker's streams, not yet sealed
    recorded: int
    void: int


Event: TypeAlias = Room | Finished | Failed | Returned | Sealed | WorkerLost | Recovered | Stop
Command: TypeAlias = Dispatch | Commit | Recover | Void | Done
