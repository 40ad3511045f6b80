"""How a run stands: from its manifest, its records and its log.

Invariant: whatever the run's size, no recorded episode is looked at; the only exceptions are runs that
are small (`totals.SMALL_BYTES`) and shards that an older version wrote. Changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

from cogeval.cli.recorded import scheduled, void_reasons
from cogeval.store.lock import LockHolder
from cogeval.store.recover import hot_shards, open_indexes
from cogeval.store.run import RunDir
from cogeval.store.shards import AgentSums, Sums
from cogeval.store.spend import spend_of
from cogeval.store.totals import (
    KnownShards,
    Totals,
    computed_digest,
    logged_digest,
    spend_facts,
    totals_of,
)

PACE_S: Final = 600.0
"""The pace is that of the last so many seconds, or of the driver's time when that is shorter."""

_KEYS: Final = ("name", "kind", "version", "fingerprint", "deterministic")


def standing(run: RunDir, known: KnownShards | None = None, *, digest: bool = True) -> dict[str, Any]:
    """Says how a run stands.

    Args:
        run: the run.
        known: what an earlier look found out.
        digest: compute the digest of a small run that the log has none of.

    Returns:
        JSON values, as ``cogeval status --json`` prints them.
    """
    known = known or KnownShards()
    totals, log, holder = totals_of(run, known), run.log_lines(), run.driver()
    void = totals.recorded.outside(void_reasons(run, log)).size
    missing = max(0, scheduled(run) - len(totals.recorded) - void)
    num_open = totals.recorded.outside(open_indexes(run.place).tolist()).size
    spend = spend_of(run, totals, log)
    stopped = "paused" if spend.is_paused else "interrupted"
    is_lacking = bool(missing) or not all(shard.is_held_elsewhere for shard in totals.damaged)
    state = "running" if holder else stopped if is_lacking else "complete"
    pace = _pace(known.sums.values(), num_open, holder, time.time()) if holder else None
    return {
        "run_id": run.run_id,
        "path": run.uri,
        "state": state,
        "driver": {"host": holder.host, "pid": holder.pid} if holder else None,
        "created": run.manifest["created"],
        "game": run.manifest["game"],
        "digest": _digest(run, totals, log, compute=digest),
        "checked": "checksums" if totals.is_small else "sizes",
        "scheduled": scheduled(run),
        "recorded": len(totals.recorded),
        "void": void,
        "missing": missing,
        "episodes_per_s": None if pace is None else round(pace, 3),
        "left_s": round(max(0, missing - num_open) / pace, 1) if pace else None,
        "faults": totals.sums.faults,
        "clock_events": totals.sums.clock_events,
        "shards": len(totals.records),
        "bytes": sum(record.num_bytes for record in totals.records),
        "open_shards": hot_shards(run.place),
        "open_episodes": num_open,
        "spent_usd": round(spend.spent_usd, 9),
        "cap_usd": spend.cap_usd if state == "paused" else None,
        "tokens_in": totals.sums.tokens_in,
        "tokens_out": totals.sums.tokens_out,
        "superseded": spend_facts(totals.superseded),
        "damaged": [
            {
                "shard": d.shard_id,
                "file": d.file,
                "problem": d.problem,
                "episodes": d.num_episodes,
                "elsewhere": d.num_elsewhere,
            }
            for d in totals.damaged
        ],
        "agents": [_agent_facts(agent, totals.sums) for agent in run.manifest["agents"]],
    }


def _digest(run: RunDir, totals: Totals, log: Iterable[dict[str, Any]], *, compute: bool) -> str | None:
    """The run's digest, where it is logged or cheap; None elsewhere, and when nothing is recorded."""
    is_whole = all(shard.is_held_elsewhere for shard in totals.damaged)
    found = logged_digest(log, totals.records) if is_whole else None
    if found is None and compute and totals.is_small:
        found = computed_digest(run, [record.shard_id for record in totals.records])
    return found


def _agent_facts(agent: dict[str, Any], sums: Sums) -> dict[str, Any]:
    did = sums.agents.get(agent["name"], AgentSums(0, 0, 0, 0))
    return {
        **{key: agent.get(key) for key in _KEYS},
        "episodes": did.episodes,
        "seats": did.seats,
        "faults": did.faults,
        "fallbacks": did.fallbacks,
    }


def _pace(shards: Iterable[tuple[Sums, Sums]], num_open: int, holder: LockHolder, now: float) -> float | None:
    """Episodes/s that this driver's workers finish, from the times in the records; None: none yet.

    Within a shard they are taken to have been finished evenly.
    """
    done = [sums for sums, _ in shards if sums.first_s is not None and sums.first_s >= holder.start]
    first_s = min((sums.first_s for sums in done if sums.first_s is not None), default=holder.start)
    since = max(first_s, now - PACE_S)
    num = num_open + sum(_share_after(sums, since) * sums.episodes for sums in done)
    return num / (now - since) if num and now > since else None


def _share_after(sums: Sums, since: float) -> float:
    """The part of a shard's episodes that were finished after some time."""
    first_s, last_s = sums.first_s or 0.0, sums.last_s or 0.0
    if since <= first_s:
        return 1.0
    return max(0.0, last_s - since) / (last_s - first_s) if last_s > first_s else 0.0
