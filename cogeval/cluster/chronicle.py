"""What a driver tells those who watch a cluster: a log line and a count for each thing that went wrong.

Invariant: it only listens: nothing of a run depends on it. Imports no ray.
"""

from __future__ import annotations

from pathlib import Path

from cogeval.cluster.logs import FOLDER, RunLog
from cogeval.cluster.meters import Sink
from cogeval.cluster.progress import Progress
from cogeval.schedule.messages import Command, Event, Failed, Void
from cogeval.store.places import Place, PlaceLike, place_at
from cogeval.store.spool import spool_of


class Chronicle:
    """The driver's log and counters.

    Args:
        run: the run's place.
        sink: where the numbers go.
    """

    def __init__(self, run: Place, sink: Sink) -> None:
        self._log = RunLog(log_path(run, spool_of(run), "driver"), run.name, "driver")
        self._sink = sink

    def note(self, message: Event | Command) -> None:
        """Hears what the ledger hears and says."""
        match message:
            case Failed(worker, index, reason):
                self._log.event("episode_failed", worker=worker, episode=index, reason=reason)
                self._sink.add("cogeval_retries", 1, {})
            case Void(index, reason):
                self._log.event("void", episode=index, reason=reason)
                self._sink.add("cogeval_void", 1, {})

    def lost(self, worker: str, num_out: int, why: str) -> None:
        """A worker died or was given up.

        Args:
            worker: its id.
            num_out: episodes that it held; they are played again.
            why: what was seen of it.
        """
        self._log.event("worker_lost", lost=worker, episodes=num_out, reason=why)
        self._sink.add("cogeval_lost_workers", 1, {})
        self._sink.add("cogeval_retries", num_out, {})

    def __call__(self, progress: Progress) -> None:
        """Hears how far the run is."""
        self._sink.set("cogeval_recorded", progress.recorded, {})
        self._sink.set("cogeval_spent_usd", progress.spent_usd, {})

    def close(self) -> None:
        """Closes the log."""
        self._log.close()


def log_path(run: PlaceLike, spool: Path, worker: str) -> Path:
    """Where a process of a run writes its log: with the run; of one in an object store, on its own host.

    Args:
        run: the run's place.
        spool: where its streams lie on this host.
        worker: a worker's id, or ``driver``.
    """
    return (place_at(run).path or spool) / FOLDER / f"{worker}.jsonl"
