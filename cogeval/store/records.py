"""Reading the records of a run: each is believed whole or named as damaged.

Invariant: no file but records is read, and none is changed.
"""

from __future__ import annotations

import msgspec

from cogeval.store.places import Place
from cogeval.store.shards import (
    DamagedShard,
    ShardRecord,
    check_record,
    check_schema_version,
    read_checked_json,
    record_name,
)


def read_records(shards: Place) -> tuple[list[ShardRecord], list[DamagedShard]]:
    """Reads every record.

    Args:
        shards: the place of the run's shards.

    Returns:
        The records in the order of shard ids, and the shards whose record cannot be used.

    Raises:
        InputError: a record is of a schema version that this code does not read.
    """
    records, damaged = [], []
    for name, data in shards.read_each(shards.names(record_name("*"))):
        try:
            records.append(_read_record(shards, name, data))
        except (ValueError, OSError) as error:
            damaged.append(DamagedShard(name.removesuffix(".json"), name, problem_of(error), None))
    return records, damaged


def problem_of(error: Exception) -> str:
    """What kept a file from being read, as the rest of a sentence about it."""
    return f"cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)


def _read_record(shards: Place, name: str, data: bytes | OSError) -> ShardRecord:
    if isinstance(data, OSError):
        raise data
    value = read_checked_json(data)
    check_schema_version(value.get("schema_version"), shards.where(name))
    record = msgspec.convert(value, ShardRecord)
    if name != record_name(record.shard_id):
        raise ValueError(f"is the record of shard {record.shard_id} under another name")
    check_record(record)
    return record
