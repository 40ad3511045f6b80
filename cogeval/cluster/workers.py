"""The driver's view of its workers: what they hold, how fast they are, how much more they can take.

Invariant: a worker always has exactly one call that the driver waits for; all other calls are
one-way, and their failures surface in that one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

import ray
from ray.actor import ActorHandle

from cogeval import __version__
from cogeval.cluster.episode_actor import start_actor
from cogeval.cluster.plan import Receipt
from cogeval.store.places import Place
from cogeval.store.probe import is_proved

_START_S = 300.0  # longest time without any worker: the cluster has no room and gets none
_REPORT_S = 0.5  # between two receipts of a busy worker
_CHUNK_S = 0.5  # least work in a chunk: a call costs about a millisecond
_AHEAD_S = 1.5  # work that a worker holds beyond what it has in flight
_FIRST_CHUNK = 32  # episodes sent before a worker's speed is known
_RECENT_S = 10.0  # over which the shown pace is measured


class Worker:
    """One episode actor.

    Args:
        worker_id: unique in the run for ever.
        import_paths: directories to import agents from.
        plan: reference to the pickled plan.
        in_flight: episodes that it plays at once.
        books: the run's `QuotaActor`; None: nobody limits its agents.
        pool: the run's `SeatPool`; None: no agent has seat actors.
        label_selector: of the nodes that it may be on, as Ray wants it said.
    """

    def __init__(
        self,
        worker_id: str,
        import_paths: tuple[str, ...],
        plan: ray.ObjectRef,
        in_flight: int,
        books: ActorHandle | None = None,
        pool: ActorHandle | None = None,
        label_selector: Mapping[str, str] | None = None,
    ) -> None:
        self.id = worker_id
        self.actor = start_actor(import_paths, plan, worker_id, books, pool, label_selector)
        self.ready = False  # hello has been answered
        self.pending: ray.ObjectRef = self.actor.hello.remote()
        self.asked_at = time.monotonic()
        self._in_flight = in_flight
        self._outstanding = 0  # episodes sent and not yet back
        self._num_unsealed = 0  # finished since the last seal was asked for
        self._rate = 0.0  # episodes/s, smoothed
        self._reported_at = time.monotonic()

    @property
    def num_out(self) -> int:
        """Episodes that it holds."""
        return self._outstanding

    def ask(self) -> ray.ObjectRef:
        """Asks for the next receipt, and gives the call to wait for."""
        self.pending = self.actor.report.remote(_REPORT_S)
        self.asked_at = time.monotonic()
        return self.pending

    def give(self, indexes: tuple[int, ...]) -> None:
        """Sends episodes."""
        self._outstanding += len(indexes)
        self.actor.give.remote(indexes)

    def note(self, receipt: Receipt) -> None:
        """Learns from a receipt how much is left and how fast the worker is."""
        num_finished = len(receipt.finished)
        self._outstanding -= num_finished + len(receipt.failed) + len(receipt.returned)
        self._num_unsealed += num_finished
        now = time.monotonic()
        if num_finished:
            rate = num_finished / max(now - self._reported_at, 1e-3)
            self._rate = rate if self._rate == 0 else (self._rate + rate) / 2
        self._reported_at = now

    def room(self, todo: int, num_workers: int) -> int:
        """How many episodes to send now; 0 when what it holds lasts a while.

        Args:
            todo: episodes that nobody has yet.
            num_workers: workers that share them.
        """
        ahead = max(1 if self._rate else _FIRST_CHUNK, math.ceil(self._rate * _AHEAD_S))
        least = max(1, math.ceil(self._rate * _CHUNK_S))
        room = self._in_flight + ahead - self._outstanding
        if room < least and self._outstanding > 0:
            return 0
        # Chunks shrink towards the end, so that workers finish together.
        fair = math.ceil(todo / (2 * num_workers))
        return max(0, min(room, max(fair, least)))

    def seal_when_idle(self) -> None:
        """Asks for the open shard to be sealed, once, when nothing is left to play."""
        if self._outstanding == 0 and self._num_unsealed > 0:
            self._num_unsealed = 0
            self.actor.seal.remote()


class Pace:
    """How fast episodes finish, now and over the whole window of receipts."""

    def __init__(self) -> None:
        self.total = 0
        self._first: tuple[float, int] | None = None  # (time, total) at the first receipt
        self._last = (0.0, 0)
        self._recent: list[tuple[float, int]] = []

    def note(self, num_finished: int) -> None:
        """Counts the finished episodes of one receipt."""
        self.total += num_finished
        self._last = (time.monotonic(), self.total)
        self._first = self._first or self._last

    def recent(self, now: float) -> float:
        """Episodes/s over the last seconds; 0 when unknown."""
        self._recent = [*[r for r in self._recent if now - r[0] < _RECENT_S], (now, self.total)]
        then, before = self._recent[0]
        return (self.total - before) / (now - then) if now > then else 0.0

    @property
    def window_s(self) -> float:
        """Seconds from the first receipt with finished episodes to the last."""
        return self._last[0] - self._first[0] if self._first else 0.0

    @property
    def window_episodes(self) -> int:
        """Episodes that finished in that window."""
        return self._last[1] - self._first[1] if self._first else 0


class Patience:
    """How long a run waits without any worker: Ray would wait for room for ever, without a word."""

    def __init__(self) -> None:
        self._ready_at = time.monotonic()

    def trouble(self, workers: Iterable[Worker]) -> str | None:
        """Why the run cannot go on; None while some worker is ready, or may soon be."""
        now = time.monotonic()
        if any(worker.ready for worker in workers):
            self._ready_at = now
        if now - self._ready_at < _START_S:
            return None
        return (
            f"no worker could start for {_START_S:g} s: each needs one CPU of the Ray cluster, and none is "
            "free; stop what else runs there, or add a node"
        )


def complaint(hello: Mapping[str, Any], place: Place, token: str | None) -> str | None:
    """What is wrong with the node of a worker that has just started; None: nothing.

    Args:
        hello: what the worker says of itself.
        place: the run's.
        token: a file there that the worker must have seen; None: none was left for it.
    """
    if hello["cogeval"] != __version__:  # it might play by other rules
        return (
            f"{hello['host']} runs cogeval {hello['cogeval']}, the driver {__version__}; install one version "
            "on every node"
        )
    if token is not None and not is_proved(place, hello["seen"]):
        return (
            f"{hello['host']} does not share {place.where()}, or cannot write there; give a shared directory "
            "or an object store with run.root=DIR_OR_URI"
        )
    return None
