"""What is known of a shard without opening it: its names, its seal, its record, its sums.

Invariant: a record carries a checksum of itself and of each file, so that nothing damaged is taken
for data. Pure values and text; must not touch files or Arrow.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from cogeval.errors import InputError

Indexes = NDArray[np.int64]

SCHEMA_VERSION: Final = 2  # what is written
_READ_VERSIONS: Final = (1, SCHEMA_VERSION)  # what can be read
"""Version of the tables, records and manifest that this code writes."""

TABLES: Final = ("decisions", "seats", "episodes")
"""The tables of a shard, in the order in which they are written."""

MERGING: Final = "compact"
"""The worker id, which no worker has, of shards that others were merged into."""

_HIGHEST: Final = 1 << 62  # index in a schedule
_MOST_EPISODES: Final = 1 << 24  # of one shard: to read a record that names more would fill the memory

_SHARD_ID = re.compile(r"(?P<worker>[A-Za-z0-9][A-Za-z0-9_-]*)-(?P<number>\d{4,})")


class AgentSums(msgspec.Struct, frozen=True):
    """What one agent did in a set of episodes."""

    episodes: int  # in which it sat
    seats: int  # that it took
    faults: int  # attempts with a fault
    fallbacks: int  # decisions that a fallback took in its place


class Sums(msgspec.Struct, frozen=True):
    """What a set of episodes adds up to."""

    episodes: int = 0
    faults: int = 0  # attempts with a fault, all seats
    clock_events: int = 0  # episodes in which time decided something
    cost_usd: float = 0.0
    tokens_in: int = 0  # cached ones included
    tokens_out: int = 0
    tokens_cached: int = 0
    first_s: float | None = None  # unix time at which the first of them was handed to the store; None: empty
    last_s: float | None = None  # and the last
    agents: dict[str, AgentSums] = {}  # by name in the pool


class FileSeal(msgspec.Struct, frozen=True):
    """One finished file of a shard."""

    rows: int
    size: int  # bytes
    sha256: str  # 64 hexadecimal digits


class SealedShard(msgspec.Struct, frozen=True):
    """A shard whose files are complete on disk; it exists once the driver has committed it."""

    shard_id: str
    indexes: tuple[int, ...]  # schedule indexes of its episodes, in the order of its rows
    files: dict[str, FileSeal]  # by table
    sums: Sums | None = None  # over all of its rows

    @property
    def rows(self) -> dict[str, int]:
        """Rows per table."""
        return {table: seal.rows for table, seal in self.files.items()}

    @property
    def num_episodes(self) -> int:
        """Number of episodes."""
        return len(self.indexes)

    @property
    def num_bytes(self) -> int:
        """Size of its files on disk."""
        return sum(seal.size for seal in self.files.values())


class ShardRecord(msgspec.Struct, frozen=True):
    """The commit of a shard, as its JSON record says it. Ranges are half-open, ascending."""

    shard_id: str
    files: dict[str, FileSeal]  # by table
    accepted: tuple[tuple[int, int], ...]  # schedule indexes whose rows here count
    superseded: tuple[tuple[int, int], ...]  # second copies: never read, counted in the spend
    committed: str  # ISO 8601 UTC; of a merged shard: the latest of those in it
    schema_version: int = SCHEMA_VERSION
    sums: Sums | None = None  # over the accepted rows; None: written before records had sums
    superseded_sums: Sums | None = None  # over second copies, those that merging left behind too
    merged: tuple[str, ...] = ()  # shards whose place it takes: their own records count no more

    @property
    def num_accepted(self) -> int:
        """Number of episodes that count."""
        return sum(stop - start for start, stop in self.accepted)

    @property
    def num_bytes(self) -> int:
        """Size of its files."""
        return sum(seal.size for seal in self.files.values())


class DamagedShard(msgspec.Struct, frozen=True):
    """A committed shard that cannot be trusted any more; it is left out of everything."""

    shard_id: str
    file: str  # name of the damaged file
    problem: str  # what is wrong with it
    num_episodes: int | None  # accepted episodes that it held; None: its record is unreadable
    num_elsewhere: int = 0  # of these, that count in shards which it was to replace and which are still there

    @property
    def is_held_elsewhere(self) -> bool:
        """True when no episode is lost with it: there is nothing to play again."""
        return self.num_elsewhere > 0 and self.num_elsewhere == self.num_episodes

    def message(self, run: str) -> str:
        """One line for people, with the way out.

        Args:
            run: how to name the run on the command line.
        """
        held = "an unknown number of" if self.num_episodes is None else f"{self.num_episodes:,}"
        told = f"shard {self.shard_id} is damaged: {self.file} {self.problem}. It held {held} episodes, "
        if self.is_held_elsewhere:
            return (
                f"{told}which all count, for the shards merged into it are still there; "
                f"`cogeval resume {run}` or compact sets it aside, and plays none of them again"
            )
        if self.num_elsewhere and self.num_episodes is not None:
            return (
                f"{told}{self.num_elsewhere:,} of which count, for shards merged into it are still there; "
                f"`cogeval resume {run}` plays the other {self.num_episodes - self.num_elsewhere:,} again"
            )
        return f"{told}which are left out; `cogeval resume {run}` plays them again"


def check_schema_version(version: object, where: str) -> None:
    """Refuses files that this code cannot read.

    Args:
        version: as written in them.
        where: what to name in the message.

    Raises:
        InputError: the version is not a known one.
    """
    if type(version) is int and version in _READ_VERSIONS:
        return
    way_out = (
        "upgrade cogeval to read it"
        if isinstance(version, int) and version > SCHEMA_VERSION
        else "read it with the cogeval that wrote it (its version is in manifest.json)"
    )
    raise InputError(f"expected schema version {SCHEMA_VERSION} in {where}, got {version!r}; {way_out}")


def check_shard_id(shard_id: str) -> str:
    """Gives the id back when it is one: ``<worker id>-<nnnn>``.

    Raises:
        ValueError: it is not.
    """
    if not _SHARD_ID.fullmatch(shard_id):
        raise ValueError(f"expected a shard id like 'w3f-0-0001' (worker id, dash, number), got {shard_id!r}")
    return shard_id


def is_merged_id(shard_id: str) -> bool:
    """True for the id of a shard that others were merged into: without a record it holds nothing new."""
    return shard_id.startswith(f"{MERGING}-")


def check_record(record: ShardRecord) -> None:
    """Refuses a record that would hide shards, count episodes twice, or name more than there can be.

    Raises:
        ValueError: what is wrong with it, as the rest of a sentence about it.
    """
    if set(record.files) != set(TABLES):
        raise ValueError(f"names other tables than {', '.join(TABLES)}")
    if record.shard_id in record.merged:
        raise ValueError("names its own shard among those that were merged into it")
    if record.merged and not is_merged_id(record.shard_id):
        raise ValueError(f"names merged shards, which only one with an id in {MERGING}-... may")
    if record.merged and record.superseded:
        raise ValueError("names merged shards and second copies, which merging leaves behind")
    for what in ("accepted", "superseded"):
        last = 0
        for start, stop in getattr(record, what):
            if not last <= start < stop <= _HIGHEST:
                raise ValueError(
                    f"has ranges of {what} episodes that are not ascending, disjoint and within 0 .. 2^62"
                )
            last = stop
    named = sum(stop - start for start, stop in (*record.accepted, *record.superseded))
    if named > _MOST_EPISODES:
        raise ValueError(f"names {named:,} episodes, more than a shard can hold")


def standing(records: Iterable[ShardRecord]) -> list[ShardRecord]:
    """The records that count: those that another one names as merged do not.

    Args:
        records: all that can be read, in order.
    """
    records = list(records)
    gone = {shard_id for record in records for shard_id in record.merged}
    return [record for record in records if record.shard_id not in gone]


def records_seal(records: Iterable[ShardRecord]) -> str:
    """Hashes what a run holds: another shard, another byte or another accepted episode changes it.

    Args:
        records: those that count, in any order.

    Returns:
        64 hexadecimal digits.
    """
    entries = sorted(
        (r.shard_id, sorted((table, seal.sha256) for table, seal in r.files.items()), r.accepted)
        for r in records
    )
    return hashlib.sha256(json.dumps(entries, separators=(",", ":")).encode()).hexdigest()


def file_name(shard_id: str, table: str) -> str:
    """Name of a finished table."""
    return f"{shard_id}.{table}.arrow"


def hot_name(shard_id: str, stream: str) -> str:
    """Name of a stream that is being written: a table's, or ``sums``."""
    return f"{shard_id}.{stream}.hot"


def record_name(shard_id: str) -> str:
    """Name of the record whose presence commits the shard."""
    return f"{shard_id}.json"


def set_aside_name(shard_id: str) -> str:
    """Name of the record of a damaged shard that is being played again."""
    return f"{shard_id}.json.damaged"


def checked_json(value: Mapping[str, Any]) -> bytes:
    """Writes an object as readable JSON with a checksum of itself as the last member.

    Args:
        value: JSON values; a member ``checksum`` is replaced.
    """
    body = {k: v for k, v in value.items() if k != "checksum"}
    return (json.dumps({**body, "checksum": _checksum(body)}, indent=1) + "\n").encode()


def read_checked_json(data: bytes) -> dict[str, Any]:
    """Reads what `checked_json` wrote, without its checksum.

    Raises:
        ValueError: it is cut short or has changed since; the message says which.
    """
    try:
        value = json.loads(data)
    except ValueError as error:
        raise ValueError("is cut short or not JSON") from error
    if not isinstance(value, dict) or value.pop("checksum", None) != _checksum(value):
        raise ValueError("does not match its own checksum: it has changed since it was written")
    return value


def _checksum(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
