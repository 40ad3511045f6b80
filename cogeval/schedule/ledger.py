"""The ledger of a run: which episode goes where next, as a pure state machine.

Events go in, commands come out; the driver obeys. Invariant: every scheduled index ends in exactly one
accepted commit or is void, whatever workers do; `validate` checks all that must hold in between. Holds
indexes and worker names only: it must not know episodes, files, clocks or clusters.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cogeval.schedule.messages import (
    Command,
    Commit,
    Counts,
    Dispatch,
    Done,
    Event,
    Failed,
    Finished,
    Recover,
    Recovered,
    Returned,
    Room,
    Sealed,
    Stop,
    Void,
    WorkerLost,
)

__all__ = ["MISHAPS", "SUSPECTS", "Ledger"]

MISHAPS: Final = 3
"""Losses with a node or a driver, which have many other causes, that count as much as one with a worker."""

SUSPECTS: Final = 16
"""How many episodes that were lost with a worker another worker holds at once, at most."""


# Status of an index. FRESH was never sent in this session; RETRY waits in one of the retry heaps;
# LIMBO was held by a lost worker that is not yet recovered.
_FRESH, _RETRY, _OUT, _LIMBO, _FINISHED, _RECORDED, _VOID = range(7)
_NOBODY = -1

_Indexes: TypeAlias = NDArray[np.int64]


class _Worker:
    """What a live worker holds."""

    __slots__ = ("alone", "draining", "name", "number", "playing", "room", "suspects")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.room = 0
        self.playing = 0  # sent to it and not yet back, copies of recorded ones included
        self.suspects: set[int] = set()  # of those, the ones that a worker was lost with
        self.alone = False  # plays one index that nothing may be sent beside
        self.draining = False  # gets nothing until it is empty, then an index to play alone


class Ledger:
    """The state machine of a run.

    Args:
        num_episodes: length of the schedule.
        max_attempts: attempts after which an episode that keeps failing is void, at least 1.
        recorded: indexes that committed shards hold already.
        attempts: per index, attempts of earlier sessions that failed or were lost with their worker.
        mishaps: per index, those that were lost with a node or the driver.
        void: indexes given up in earlier sessions; a recorded one counts as recorded.

    Raises:
        ValueError: when an argument is out of range.
    """

    def __init__(
        self,
        num_episodes: int,
        *,
        max_attempts: int = 3,
        recorded: Iterable[int] = (),
        attempts: Mapping[int, int] | None = None,
        mishaps: Mapping[int, int] | None = None,
        void: Iterable[int] = (),
    ) -> None:
        if max_attempts < 1:
            raise ValueError(f"expected max_attempts of at least 1, got {max_attempts!r}")
        self.num_episodes = num_episodes
        self.max_attempts = max_attempts
        self._status: NDArray[np.uint8] = np.zeros(num_episodes, dtype=np.uint8)
        self._attempts: NDArray[np.uint8] = np.zeros(num_episodes, dtype=np.uint8)
        self._mishaps: NDArray[np.uint8] = np.zeros(num_episodes, dtype=np.uint8)
        self._owner: NDArray[np.int32] = np.full(num_episodes, _NOBODY, dtype=np.int32)
        self._tally = np.zeros(7, dtype=np.int64)
        self._tally[_FRESH] = num_episodes
        self._next = 0  # nothing before it is fresh
        # Retries in schedule order: to be isolated, lost with a worker, and of no suspicion.
        self._isolate: list[int] = []
        self._suspect: list[int] = []
        self._retry: list[int] = []
        self._workers: dict[str, _Worker] = {}
        self._lost: dict[str, int | None] = {}  # lost worker: the index that it was lost alone with
        self._missed: set[str] = set()  # of those, the ones that a mishap took
        self._numbers: dict[str, int] = {}
        self._stopped = False
        self._done = False
        self._move(self._read(void), _VOID)
        self._move(self._read(recorded), _RECORDED)
        for counts, given in ((self._attempts, attempts), (self._mishaps, mishaps)):
            for index, count in (given or {}).items():
                self._read((index,))
                counts[index] = min(count, 255)
        for index in sorted({*(attempts or ()), *(mishaps or ())}):
            if self.attempts(index) and self._status[index] == _FRESH:
                self._queue_lost(index)

    @property
    def is_complete(self) -> bool:
        """True when every index is recorded or void."""
        return int(self._tally[_RECORDED] + self._tally[_VOID]) == self.num_episodes

    def counts(self) -> Counts:
        """How many episodes stand where."""
        t = self._tally.tolist()
        return Counts(t[_FRESH] + t[_RETRY], t[_OUT] + t[_LIMBO], t[_FINISHED], t[_RECORDED], t[_VOID])

    def attempts(self, index: int) -> int:
        """Attempts at this index that came to nothing so far; `MISHAPS` mishaps count as one."""
        return int(self._attempts[index]) + int(self._mishaps[index]) // MISHAPS

    def handle(self, event: Event) -> list[Command]:
        """Takes one event.

        Events of a worker that was lost, or about an index that it no longer holds, change nothing,
        except `Sealed`: data on disk is always taken.

        Args:
            event: what happened.

        Returns:
            What to do now, in this order.

        Raises:
            ValueError: when the event names an index outside the schedule.
        """
        commands: list[Command] = []
        match event:
            case Room(name, num):
                if (worker := self._worker(name)) is not None:
                    worker.room = num
                    self._offer(worker, commands)
            case Finished(name, indexes):
                self._finish(name, self._read(indexes), commands)
            case Sealed():
                self._seal(event, commands)
            case Failed(name, index, reason):
                self._fail(name, self._read((index,)), reason, commands)
            case Returned(name, indexes):
                self._give_back(name, self._read(indexes), commands)
            case WorkerLost(name, is_mishap):
                self._lose(name, commands, is_mishap=is_mishap)
            case Recovered(name):
                self._recover(name, commands)
            case Stop():
                self._stopped = True
        self._conclude(commands)
        return commands

    # --- what events do -------------------------------------------------------------------------------

    def _finish(self, name: str, indexes: _Indexes, commands: list[Command]) -> None:
        worker = self._workers.get(name)
        if worker is None:
            return
        held = self._release(worker, indexes)
        finished = held[self._status[held] == _OUT]
        self._move(finished, _FINISHED)
        self._owner[finished] = worker.number  # in its streams: lost with it unless sealed
        self._offer(worker, commands)

    def _seal(self, event: Sealed, commands: list[Command]) -> None:
        indexes = self._read(event.indexes)
        worker = self._workers.get(event.worker)
        if worker is not None:
            self._release(worker, indexes)  # sealed before its `Finished` was heard
        status = self._status[indexes]
        settled = status >= _RECORDED
        accepted = indexes[~settled]
        was_waiting = bool((status == _RETRY).any())
        # Another worker may still be playing a copy: it stays the owner until that one is back.
        self._owner[indexes[(status == _FINISHED) | (status == _LIMBO)]] = _NOBODY
        self._move(accepted, _RECORDED)
        if was_waiting:
            for heap in (self._isolate, self._suspect, self._retry):
                heap[:] = [i for i in heap if self._status[i] == _RETRY]
                heapq.heapify(heap)
        commands.append(
            Commit(event.worker, event.shard_id, tuple(accepted.tolist()), tuple(indexes[settled].tolist()))
        )
        if worker is not None:
            self._offer(worker, commands)

    def _fail(self, name: str, index: _Indexes, reason: str, commands: list[Command]) -> None:
        worker = self._workers.get(name)
        if worker is None:
            return
        held = self._release(worker, index)
        for i in held[self._status[held] == _OUT].tolist():
            self._count(self._attempts, i)
            if self.attempts(i) >= self.max_attempts:
                self._give_up(i, reason, commands)
            else:  # the worker lived through it: no danger to others
                self._queue(self._retry, i)
        self._offer_all(commands)

    def _give_back(self, name: str, indexes: _Indexes, commands: list[Command]) -> None:
        worker = self._workers.get(name)
        if worker is None:
            return
        held = self._release(worker, indexes)
        for i in held[self._status[held] == _OUT].tolist():
            self._queue_lost(i)  # not begun: as suspect as it was
        self._offer_all(commands)

    def _lose(self, name: str, commands: list[Command], *, is_mishap: bool) -> None:
        if name in self._lost:
            return
        worker = self._workers.pop(name, None)
        self._lost[name] = None
        self._missed |= {name} if is_mishap else set()
        if worker is not None:
            held = np.flatnonzero(self._owner == worker.number)
            status = self._status[held]
            limbo = held[(status == _OUT) | (status == _FINISHED)]
            if worker.alone:
                (self._lost[name],) = worker.suspects
            self._owner[held[status >= _RECORDED]] = _NOBODY
            self._move(limbo, _LIMBO)
        commands.append(Recover(name))

    def _recover(self, name: str, commands: list[Command]) -> None:
        if name not in self._lost or name not in self._numbers:
            return
        lost = np.flatnonzero((self._owner == self._numbers[name]) & (self._status == _LIMBO))
        self._owner[lost] = _NOBODY
        for i in lost.tolist():
            self._count(self._mishaps if name in self._missed else self._attempts, i)
            if self.attempts(i) >= self.max_attempts and i == self._lost[name]:
                self._give_up(i, self._why_void(i), commands)
            else:
                self._queue_lost(i)
        self._offer_all(commands)

    def _conclude(self, commands: list[Command]) -> None:
        if self._done:
            return
        counts = self.counts()
        if self.is_complete:
            self._done = True
        elif self._stopped and not counts.out and counts.todo:
            self._done = True  # finished ones are in streams: sealing them may still follow
        if self._done:
            commands.append(Done(self.is_complete))

    # --- who gets what --------------------------------------------------------------------------------

    def _offer_all(self, commands: list[Command]) -> None:
        for worker in self._workers.values():
            self._offer(worker, commands)

    def _offer(self, worker: _Worker, commands: list[Command]) -> None:
        """Fills the worker's room: isolated retries first, then suspects, then all others."""
        if self._stopped or worker.room <= 0 or worker.alone:
            return
        if self._isolate and self._isolates(worker, commands):
            return
        worker.draining = False
        num = min(SUSPECTS - len(worker.suspects), worker.room, len(self._suspect))
        if num > 0:
            indexes = [heapq.heappop(self._suspect) for _ in range(num)]
            worker.suspects.update(indexes)
            self._send(worker, indexes, commands)
        if worker.suspects:
            return  # what a suspect can take down with it stays small
        num = min(worker.room, len(self._retry))
        indexes = [heapq.heappop(self._retry) for _ in range(num)]
        indexes += self._take_fresh(worker.room - num)
        if indexes:
            self._send(worker, indexes, commands)

    def _isolates(self, worker: _Worker, commands: list[Command]) -> bool:
        """Keeps the worker for an index to play alone, as many workers as there are such indexes."""
        if worker.playing:
            num_draining = sum(w.draining for w in self._workers.values())
            worker.draining = worker.draining or num_draining < len(self._isolate)
            return worker.draining
        worker.draining = False
        worker.alone = True
        index = heapq.heappop(self._isolate)
        worker.suspects.add(index)
        self._send(worker, [index], commands)
        return True

    def _take_fresh(self, num: int) -> list[int]:
        taken: list[int] = []
        while num > len(taken) and self._next < self.num_episodes:
            window = self._status[self._next : self._next + max(num, 64)]
            hits = np.flatnonzero(window == _FRESH)[: num - len(taken)] + self._next
            taken += hits.tolist()
            self._next = taken[-1] + 1 if len(taken) == num else self._next + len(window)
        return taken

    def _send(self, worker: _Worker, indexes: list[int], commands: list[Command]) -> None:
        chosen = np.array(indexes, dtype=np.int64)
        worker.room -= len(indexes)
        worker.playing += len(indexes)
        self._owner[chosen] = worker.number
        self._move(chosen, _OUT)
        commands.append(Dispatch(worker.name, tuple(indexes), worker.alone))

    def _queue(self, heap: list[int], index: int) -> None:
        self._move(np.array([index]), _RETRY)
        heapq.heappush(heap, index)

    def _queue_lost(self, index: int) -> None:
        """Queues an index that may have killed its worker: in small company first, at last alone."""
        attempts = self.attempts(index)
        alone = attempts >= max(1, self.max_attempts - 1)
        self._queue(self._isolate if alone else self._suspect if attempts else self._retry, index)

    # --- bookkeeping ----------------------------------------------------------------------------------

    def _worker(self, name: str) -> _Worker | None:
        """The live worker of this name, made at its first word; None when it was lost."""
        worker = self._workers.get(name)
        if worker is None and name not in self._lost:
            number = self._numbers[name] = len(self._numbers)
            worker = self._workers[name] = _Worker(name, number)
        return worker

    def _read(self, indexes: Iterable[int]) -> _Indexes:
        """The indexes, ascending, each once."""
        values = np.unique(np.fromiter(indexes, dtype=np.int64))
        if values.size and not 0 <= values[0] <= values[-1] < self.num_episodes:
            outside = values[(values < 0) | (values >= self.num_episodes)]
            raise ValueError(f"expected indexes below {self.num_episodes}, got {outside[:5].tolist()}")
        return values

    def _move(self, indexes: _Indexes, status: int) -> None:
        self._tally -= np.bincount(self._status[indexes], minlength=7)
        self._tally[status] += len(indexes)
        self._status[indexes] = status

    def _release(self, worker: _Worker, indexes: _Indexes) -> _Indexes:
        """Takes back from the worker those that it was playing, and gives them."""
        playing = (self._owner[indexes] == worker.number) & (self._status[indexes] != _FINISHED)
        held: _Indexes = indexes[playing]
        self._owner[held] = _NOBODY
        worker.playing -= len(held)
        if worker.suspects:
            worker.suspects.difference_update(held.tolist())
            worker.alone = worker.alone and bool(worker.suspects)
        return held

    def _count(self, counts: NDArray[np.uint8], index: int) -> None:
        counts[index] = min(int(counts[index]) + 1, 255)

    def _why_void(self, index: int) -> str:
        causes = (("its worker", self._attempts[index]), ("a node or the driver", self._mishaps[index]))
        return f"lost {' and '.join(f'with {w} {n} times' for w, n in causes if n)}, at last alone"

    def _give_up(self, index: int, reason: str, commands: list[Command]) -> None:
        self._move(np.array([index]), _VOID)
        commands.append(Void(index, reason))

    def validate(self) -> None:
        """Asserts everything that must hold between two events; costs a pass over the schedule."""
        status, owner = self._status, self._owner
        assert np.array_equal(self._tally, np.bincount(status, minlength=7)), "tally disagrees with status"
        assert not (status[: self._next] == _FRESH).any(), "a fresh index was passed over"
        assert not (owner[(status == _FRESH) | (status == _RETRY)] != _NOBODY).any(), "todo, but held"
        assert (owner[(status == _OUT) | (status == _FINISHED)] != _NOBODY).all(), "out, but held by nobody"
        heaps = self._isolate + self._suspect + self._retry
        assert sorted(heaps) == np.flatnonzero(status == _RETRY).tolist(), "retry heaps disagree with status"
        lost = [self._numbers[name] for name in self._lost if name in self._numbers]
        assert np.isin(owner[status == _LIMBO], lost).all(), "in limbo, but its worker lives"
        assert not np.isin(owner[status != _LIMBO], lost).any(), "held by a lost worker"
        for worker in self._workers.values():
            playing = np.flatnonzero((owner == worker.number) & (status != _FINISHED))
            assert worker.playing == len(playing), f"{worker.name} plays {len(playing)}"
            assert worker.suspects <= set(playing.tolist()), f"{worker.name} lost sight of a suspect"
            assert len(worker.suspects) <= SUSPECTS, f"{worker.name} holds {len(worker.suspects)} suspects"
            assert not worker.alone or worker.playing == 1, f"{worker.name}: alone is not alone"
