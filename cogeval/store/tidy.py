"""What a merger that was killed leaves behind, and how it goes.

Invariant: nothing is removed but shards that an intact merged shard has replaced, and merged shards
without a record, whose rows are all in their sources. Only for the holder of the run's lock.
"""

from __future__ import annotations

from collections.abc import Sequence

from cogeval.store.damage import find_damage
from cogeval.store.run import RunDir
from cogeval.store.shards import (
    TABLES,
    DamagedShard,
    ShardRecord,
    file_name,
    hot_name,
    is_merged_id,
    record_name,
    set_aside_name,
)


def tidy(run: RunDir, merged: Sequence[ShardRecord] | None = None) -> list[DamagedShard]:
    """Ends mergers: removes what they replaced, and what was written of those that never came to be.

    A merged shard that is damaged while its sources are still there is set aside: they count again. So is one
    whose record claims what it does not hold: when what it names is gone, nothing could prove it false.

    Args:
        run: the run, locked.
        merged: records of merged shards to end; None: all there are, and unfinished ones.

    Returns:
        The merged shards that were set aside.
    """
    names, aside = set(run.shards.names()), []
    records, broken = (merged, []) if merged is not None else run.scan()
    for shard in broken:
        if shard.num_episodes is not None:  # its record can be read, and is false, or hides nothing
            run.set_aside(shard)
            aside.append(shard)
    for record in records:
        # Without a record it may be a shard that nobody has committed: recovery looks what is in it.
        olds = [shard_id for shard_id in record.merged if record_name(shard_id) in names]
        left = [name for shard_id in olds for name in _names(shard_id) if name in names]
        if not left:
            continue
        damage = find_damage(run.shards, record)
        if damage is not None:
            run.set_aside(damage)
            aside.append(damage)
            continue
        # Records last: files without one would be taken for what a dead worker left.
        for name in sorted(left, key=lambda name: name.endswith(".json")):
            run.shards.remove(name)
    if merged is None:
        for name in names:
            shard_id = name.split(".")[0]
            is_settled = {record_name(shard_id), set_aside_name(shard_id)} & names
            if is_merged_id(shard_id) and (not is_settled or name.endswith(".tmp")):
                run.shards.remove(name)
    return aside


def _names(shard_id: str) -> list[str]:
    """All that a shard may have; streams too, which a commit that was killed has left."""
    streams = (hot_name(shard_id, stream) for stream in (*TABLES, "sums"))
    return [*streams, *(file_name(shard_id, table) for table in TABLES), record_name(shard_id)]
