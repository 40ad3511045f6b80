"""What a driver tells those who watch a cluster: when it started, what went wrong, and how it ended.

Invariant: it only listens: nothing of a run depends on it. Imports no ray.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cogeval import __version__
from cogeval.cluster.logs import FOLDER, RunLog, brief
from cogeval.cluster.meters import Sink
from cogeval.cluster.progress import Outcome, Progress
from cogeval.cluster.seat_pool import Loss
from cogeval.errors import InputError, RunError
from cogeval.schedule.messages import Command, Event, Failed, Void
from cogeval.store.places import Place, PlaceLike, place_at
from cogeval.store.spool import make_spool, spool_of

_REASON_CHARS = 500


class Chronicle:
    """The driver's log and counters.

    Args:
        run: the run's place.
        sink: where the numbers go.
    """

    def __init__(self, run: Place, sink: Sink) -> None:
        self._run = run
        self._spool = spool_of(run)
        self._log = RunLog(log_path(run, self._spool, "driver"), run.name, "driver")
        self._sink = sink
        self._began = time.monotonic()
        self._has_started = False

    def started(self, progress: Progress, num_workers: int) -> None:
        """A driver starts, of a new run or of one that goes on.

        Args:
            progress: what it found.
            num_workers: that it starts; 0: there was nothing to play, or nowhere.
        """
        self._has_started = True
        self._make_place()
        self._log.event(
            "driver_started",
            host=socket.gethostname(),
            pid=os.getpid(),
            cogeval=__version__,
            missing=progress.total - progress.done,
            workers=num_workers,
        )

    @contextmanager
    def until_the_end(self, outcome: Callable[[], Outcome]) -> Iterator[None]:
        """A context whose end is the driver's: writes the last line, whatever ended it, and closes the log.

        Of a driver that the user's input kept from starting there is nothing to tell.

        Args:
            outcome: how it stands, asked at the end.
        """
        failure: BaseException | None = None
        try:
            yield
        except BaseException as error:
            failure = error
            raise
        finally:
            if self._has_started or not isinstance(failure, InputError):
                self._end(outcome(), failure)
            self.close()

    def _make_place(self) -> None:
        """A log beside open shards lies in a directory as private as theirs, or nowhere."""
        if self._run.path is not None:
            return
        try:
            make_spool(self._spool)
        except RunError:  # whoever has to write a shard there says so
            self._log.close()
            self._log = RunLog(None, self._run.name, "driver")

    def _end(self, end: Outcome, failure: BaseException | None) -> None:
        if not self._has_started:
            self.started(end.progress, 0)
        seconds = round(time.monotonic() - self._began, 3)
        progress = end.progress
        self._log.end(
            "driver_ended",
            **_how(end, failure),
            recorded=progress.recorded,
            finished=progress.finished,
            seconds=seconds,
        )

    def close(self) -> None:
        """Closes the log."""
        self._log.close()

    def note(self, message: Event | Command) -> None:
        """Hears what the ledger hears and says."""
        match message:
            case Failed(worker, index, reason):
                self._log.event("episode_failed", worker=worker, episode=index, reason=reason)
                self._sink.add("cogeval_retries", 1, {})
            case Void(index, reason):
                self._log.event("void", episode=index, reason=reason)
                self._sink.add("cogeval_void", 1, {})

    def welcomed(self, worker: str, host: str, node_id: str) -> None:
        """A worker is ready to play, at the start, after a loss, or on a node that joined."""
        self._log.event("worker_started", started=worker, host=host, node=node_id)

    def lost(self, worker: str, num_out: int, why: str) -> None:
        """A worker died or was given up.

        Args:
            worker: its id.
            num_out: episodes that it held; they are played again.
            why: what was seen of it.
        """
        self._log.event("worker_lost", lost=worker, episodes=num_out, reason=brief(why))
        self._sink.add("cogeval_lost_workers", 1, {})
        self._sink.add("cogeval_retries", num_out, {})

    def lost_seat_actor(self, loss: Loss) -> None:
        """A seat actor died or was ended; another takes its place."""
        known = {"detail": brief(loss.detail)} if loss.detail else {}
        self._log.event("seat_actor_lost", agent=loss.agent, replica=loss.replica, why=loss.why, **known)
        self._sink.add("cogeval_lost_seat_actors", 1, {"agent": loss.agent})

    def refused_node(self, node_id: str, why: str) -> None:
        """A node that joined gets no workers."""
        self._log.event("node_refused", node=node_id, why=why)

    def __call__(self, progress: Progress) -> None:
        """Hears how far the run is."""
        self._sink.set("cogeval_recorded", progress.recorded, {})
        self._sink.set("cogeval_spent_usd", progress.spent_usd, {})


def _how(end: Outcome, failure: BaseException | None) -> dict[str, str]:
    """How a driver ended, as its last line says it."""
    if isinstance(failure, KeyboardInterrupt | SystemExit):  # a signal that nobody waited for
        return {"how": "interrupted"}
    if failure is not None:
        text = brief(str(failure), _REASON_CHARS)
        reason = text if isinstance(failure, RunError) else f"{type(failure).__name__}: {text}"
        return {"how": "failed", "reason": reason}
    for how in ("complete", "interrupted", "paused"):
        if getattr(end, how):
            return {"how": how}
    return {"how": "failed", "reason": "it stopped before the run was complete"}


def log_path(run: PlaceLike, spool: Path, worker: str) -> Path:
    """Where a process of a run writes its log: with the run; of one in an object store, on its own host.

    Args:
        run: the run's place.
        spool: where its streams lie on this host.
        worker: a worker's id, or ``driver``.
    """
    return (place_at(run).path or spool) / FOLDER / f"{worker}.jsonl"
