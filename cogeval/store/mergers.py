"""Whether a record may take the place of those that it names as merged.

Invariant: no record hides another that does not hold its episodes, and none hides one that hides it: what
cannot be proved from the records that are there is named as damage, and what it would hide counts on. Pure
values; must not touch files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np

from cogeval.core.ranges import from_ranges
from cogeval.store.shards import DamagedShard, ShardRecord, record_name

_NUM_EXAMPLES = 3


def judged(records: Iterable[ShardRecord]) -> tuple[list[ShardRecord], list[DamagedShard]]:
    """Parts the records that may be believed from those whose claims on others are false.

    A shard whose record is gone proves nothing: merging removes what it replaced.

    Args:
        records: all that can be read, in order.

    Returns:
        The records to believe, in order, those named as merged among them; and the others, as damage.
    """
    by_id = {record.shard_id: record for record in records}
    problems = _cycles(by_id)
    for record in by_id.values():
        problem = None if record.shard_id in problems else _unproved(record, by_id)
        if problem is not None:
            problems[record.shard_id] = problem
    damaged = [
        DamagedShard(shard_id, record_name(shard_id), problems[shard_id], record.num_accepted)
        for shard_id, record in by_id.items()
        if shard_id in problems
    ]
    return [record for record in by_id.values() if record.shard_id not in problems], damaged


def _cycles(by_id: Mapping[str, ShardRecord]) -> dict[str, str]:
    """What is wrong with the records that name each other in a circle, by shard id."""
    claims = {
        shard_id: [old for old in record.merged if old in by_id]
        for shard_id, record in by_id.items()
        if record.merged
    }
    found: dict[str, str] = {}
    while True:
        try:
            TopologicalSorter(claims).prepare()
        except CycleError as error:
            circle = list(reversed(error.args[1]))  # every one is named as merged by the one before
            for shard_id in set(circle):
                found[shard_id] = f"names as merged what names it so in turn ({_way(circle, shard_id)})"
                del claims[shard_id]
        else:
            return found


def _way(circle: Sequence[str], shard_id: str) -> str:
    """A circle, from one of its members to itself."""
    members = circle[:-1]
    start = members.index(shard_id)
    return " -> ".join([*members[start:], *members[:start], shard_id])


def _unproved(record: ShardRecord, by_id: Mapping[str, ShardRecord]) -> str | None:
    """What a record claims and does not hold; None: nothing that can be seen."""
    olds = [by_id[shard_id] for shard_id in record.merged if shard_id in by_id]
    if not olds:
        return None
    held = from_ranges(record.accepted)
    for old in olds:
        lacking = np.setdiff1d(from_ranges(old.accepted), held, assume_unique=True)
        if lacking.size:
            some = ", ".join(map(str, lacking[:_NUM_EXAMPLES].tolist()))
            more = ", ..." if lacking.size > _NUM_EXAMPLES else ""
            return (
                f"names {old.shard_id} as merged into it and lacks {lacking.size:,} of its "
                f"{old.num_accepted:,} episodes ({some}{more})"
            )
    return None
