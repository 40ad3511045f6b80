"""`cogeval compact`: merges a run's small shards, or says what it would merge.

Invariant: what is read from the run is the same before and after; a run that somebody drives is refused.
"""

from __future__ import annotations

from typing import Any

from cogeval.cli.arguments import Arguments
from cogeval.cli.output import counted, print_json, show, size, warn
from cogeval.cli.progress import doing
from cogeval.cli.settings import called
from cogeval.cli.status import one_run
from cogeval.errors import InputError
from cogeval.store.compact import TARGET_BYTES, compact, plan_groups
from cogeval.store.run import RunDir


def compact_run(arguments: Arguments) -> int:
    """Carries out ``cogeval compact``."""
    run = one_run(arguments)
    target_bytes = _target_bytes(arguments.value("--target-mb"))
    as_json = arguments.switch("--json")
    if arguments.switch("--plan"):
        facts = _planned(run, target_bytes)
    else:
        with doing("merging shards", quiet=as_json or arguments.switch("--quiet")):
            facts = _compacted(run, target_bytes)
    if as_json:
        print_json(facts)
    else:
        show(_sentence(facts))
    return 0


def _target_bytes(given: str | None) -> int:
    if given is None:
        return TARGET_BYTES
    try:
        megabytes = float(given)
    except ValueError:
        megabytes = 0.0
    if not 1 <= megabytes <= 4096:
        raise InputError(f"--target-mb: expected megabytes, 1 to 4096 (best 64 to 256), got {given!r}")
    return int(megabytes * 1e6)


def _planned(run: RunDir, target_bytes: int) -> dict[str, Any]:
    records, damaged = run.scan()
    warn(shard.message(called(run)) for shard in damaged)
    groups = plan_groups(records, target_bytes)
    num_merged = sum(map(len, groups))
    return {
        "run_id": run.run_id,
        "planned": True,
        "shards_before": len(records),
        "merged": num_merged,
        "made": len(groups),
        "shards_after": len(records) - num_merged + len(groups),
        "bytes": sum(record.num_bytes for group in groups for record in group),
    }


def _compacted(run: RunDir, target_bytes: int) -> dict[str, Any]:
    done = compact(run, target_bytes)
    warn(shard.message(called(run)) for shard in done.damaged)
    return {
        "run_id": run.run_id,
        "planned": False,
        "shards_before": done.num_before,
        "merged": done.num_merged,
        "made": done.num_made,
        "shards_after": done.num_before - done.num_merged + done.num_made,
        "bytes": done.num_bytes,
    }


def _sentence(facts: dict[str, Any]) -> str:
    would = "would merge" if facts["planned"] else "merged"
    if not facts["made"]:
        return f"{facts['run_id']}: nothing to merge, {counted(facts['shards_before'], 'shard')}"
    return (
        f"{facts['run_id']}: {would} {counted(facts['merged'], 'shard')} into {facts['made']:,} "
        f"({size(facts['bytes'])}); {counted(facts['shards_after'], 'shard')} in all"
    )
