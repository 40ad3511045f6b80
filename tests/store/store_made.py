"""Made-up episodes for the store's tests, in this process and in those that are killed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from cogeval.core.agent import Usage
from cogeval.core.game import Results, SeatResult
from cogeval.core.record import Attempt, Episode, seat_ranks, seat_shares
from cogeval.store.run import RunDir
from cogeval.store.write import ShardWriter

NAMES = ("alpha", "beta", "gamma")
NUM_SEATS = 3


def action_text(action: object) -> str:
    """Stands in for a game's codec."""
    return json.dumps(action, sort_keys=True, separators=(",", ":"))


def made_attempt(action: list[Any] | None, **fields: Any) -> Attempt:
    """An attempt that gave an action, or a fault."""
    usual = {"attempt": 0, "source": "agent", "fault": None, "detail": None, "think_s": 1.5, "queue_s": 0.5}
    text = None if action is None else action_text(action)
    return Attempt(accepted=action is not None, action=action, action_text=text, **{**usual, **fields})


def made_episode(index: int, *, num_phases: int = 4, usage: bool = False) -> Episode:
    """An episode with some of everything: a timeout with a fallback, ties, a retry."""
    rng = random.Random(index)
    attempts = []
    for phase in range(num_phases):
        for seat in range(NUM_SEATS):
            used = Usage(rng.randrange(900), rng.randrange(90), 5, rng.random()) if usage else None
            text = "reply \u2713" if usage else None
            shared = {"usage": used, "phase": phase, "seat": seat, "kind": "lab"}
            if (phase + seat + index) % 5 == 0:
                attempts.append(made_attempt(None, fault="timeout", detail="late", queue_s=0.25, **shared))
                shared["usage"] = None
                attempts.append(made_attempt(["wait"], source="baseline", attempt=1, **shared))
            else:
                action = ["brew", rng.randrange(9)]
                attempts.append(made_attempt(action, think_s=rng.random(), text=text, model="m-1", **shared))
    scores = [float(rng.randrange(4)) for _ in range(NUM_SEATS)]
    seats = tuple(SeatResult(score, (score,), {"brewed": score * 2, "sold": 1.0}) for score in scores)
    ranks = seat_ranks([s.rank_key for s in seats], [False] * NUM_SEATS)
    return Episode(
        seed=index // 4,
        replicate=0,
        results=Results("complete", num_phases, seats),
        ranks=ranks,
        shares=seat_shares(ranks),
        forfeited=(False,) * NUM_SEATS,
        attempts=tuple(attempts),
        stopped=False,
        wall_s=0.5,
        digest=f"{rng.getrandbits(256):064x}",
    )


def lineup(index: int) -> tuple[int, ...]:
    """Who sits where in a made-up episode."""
    return tuple((index + seat) % len(NAMES) for seat in range(NUM_SEATS))


def add(writer: ShardWriter, index: int, *, usage: bool = False) -> None:
    """Adds one made-up episode."""
    writer.add(
        index=index,
        episode_id=f"{index:032x}",
        block=index // 4,
        lineup=lineup(index),
        episode=made_episode(index, usage=usage),
    )


def new_writer(run: RunDir, shard_id: str = "w0-0000") -> ShardWriter:
    """A writer of a run's shard."""
    return ShardWriter(run.path, shard_id, agent_names=NAMES, worker=shard_id.rpartition("-")[0])


def new_run(root: Path, run_id: str = "run-1") -> RunDir:
    """A run without shards."""
    return RunDir.create(root, run_id, {"config_digest": "c0ffee"}, "game: made_up\n")


def write_shard(
    run: RunDir, shard_id: str, indexes: range, *, usage: bool = False, commit: bool = True
) -> None:
    """Writes and, by default, commits one shard of made-up episodes."""
    writer = new_writer(run, shard_id)
    for index in indexes:
        add(writer, index, usage=usage)
        if index % 3 == 2:
            writer.flush()
    sealed = writer.seal()
    if commit:
        run.commit(sealed, sealed.indexes)
