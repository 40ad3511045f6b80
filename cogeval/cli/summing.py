"""From recorded episodes to the summary that commands show.

Invariant: a damaged shard is named on stderr each time that it is left out. Computes nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from cogeval.cli.joining import Joined, check_suffix, join
from cogeval.cli.output import counted
from cogeval.cli.recorded import num_void, open_note, scheduled, warn_of_damage
from cogeval.config import RatingConfig
from cogeval.ratings import Ladder, rate
from cogeval.report import RunSummary, summarise
from cogeval.store.run import RunDir


def sum_up(run: RunDir, rating: RatingConfig) -> RunSummary:
    """One run's summary; names its damaged shards on stderr.

    Args:
        run: the run.
        rating: how to rate.
    """
    joined = join([run])
    (episodes,) = joined.runs
    warn_of_damage(joined.runs)
    return summarise(
        run_id=run.run_id,
        digest=episodes.digest or "",
        scheduled=scheduled(run),
        recorded=episodes.num_recorded,
        void=num_void(episodes),
        agents=joined.agents,
        seats=joined.seats,
        ladder=ladder_of(joined, rating),
        decisions=joined.times,
        fault_kinds=joined.fault_kinds or None,
        fault_reasons=joined.fault_reasons,
        warnings=_still_open(joined),
    )


def sum_up_all(runs: Sequence[RunDir], rating: RatingConfig) -> RunSummary:
    """Several runs' common summary; names their damaged shards on stderr."""
    joined = join(runs)
    warn_of_damage(joined.runs)
    one = joined.runs[0].run.run_id
    return summarise(
        run_id=one if len(runs) == 1 else counted(len(runs), "run"),
        digest=joined.runs[0].digest or "" if len(runs) == 1 else "",
        scheduled=sum(scheduled(run) for run in runs) - joined.num_repeated,
        recorded=joined.table.num_episodes,
        void=sum(num_void(episodes) for episodes in joined.runs),
        agents=joined.agents,
        seats=joined.seats,
        ladder=ladder_of(joined, rating),
        warnings=_still_open(joined),
    )


def _still_open(joined: Joined) -> list[str]:
    """What is flushed and not counted, per run that has such episodes."""
    notes = ((episodes.run.run_id, open_note(episodes)) for episodes in joined.runs)
    return [f"{run_id}: {note}" for run_id, note in notes if note is not None]


def ladder_of(joined: Joined, rating: RatingConfig) -> Ladder | None:
    """The ladder; None before anything is recorded."""
    if not joined.table.num_episodes:
        return None
    if rating.anchor is not None:
        check_suffix(joined, rating.anchor)
    return rate(
        joined.table, anchor=rating.anchor, anchor_elo=rating.anchor_elo, confidence=rating.confidence
    )


def summary_json(summary: RunSummary, runs: Sequence[RunDir]) -> dict[str, object]:
    """A summary as one JSON object; the digest is null where there is none, as for several runs."""
    whole = {**summary.to_json(), "digest": summary.digest or None}
    if len(runs) > 1:  # they have no common id
        del whole["run_id"]
    return {"run_ids": [run.run_id for run in runs], **whole}
