"""The ledger against workers that crash, come back from the dead, fail, and a driver that dies too."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cogeval.schedule.ledger import SUSPECTS, Ledger
from cogeval.schedule.log import attempts_from_log, log_entry
from cogeval.schedule.messages import (
    Command,
    Commit,
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


class Worker:
    """A simulated worker: what it was sent, and what lies in its streams."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue: list[int] = []
        self.streams: list[int] = []
        self.alone = False  # as the driver sees it
        self.is_lost = False  # as the driver sees it; it may play on all the same


class LedgerMachine(RuleBasedStateMachine):
    @initialize(
        num=st.integers(1, 60),
        max_attempts=st.integers(1, 4),
        killers=st.sets(st.integers(0, 59), max_size=3),
        failers=st.sets(st.integers(0, 59), max_size=3),
    )
    def begin(self, num: int, max_attempts: int, killers: set[int], failers: set[int]) -> None:
        self.num, self.max_attempts = num, max_attempts
        self.killers = {k for k in killers if k < num}
        self.failers = {f for f in failers if f < num} - self.killers
        self.accepted: Counter[int] = Counter()
        self.void: set[int] = set()
        self.sent: Counter[int] = Counter()
        self.sent_for_nothing: Counter[int] = Counter()  # given back unplayed, or the driver died
        self.log: list[dict[str, object]] = []
        self.num_names = 0
        self.workers: list[Worker] = []
        self.dead: list[Worker] = []  # thought dead and recovered: late seals may still come
        self.new_driver(Ledger(num, max_attempts=max_attempts))

    def new_driver(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.stopped = False
        self.done: list[bool] = []
        self.workers = [self.new_worker() for _ in range(3)]

    def new_worker(self) -> Worker:
        self.num_names += 1
        return Worker(f"w{self.num_names}")

    def tell(self, event: Event) -> None:
        self.note(event)
        for command in self.ledger.handle(event):
            self.note(command)
            self.obey(command)
        self.ledger.validate()

    def note(self, message: Event | Command) -> None:
        if (entry := log_entry(message)) is not None:
            self.log.append(entry)

    def obey(self, command: Command) -> None:
        match command:
            case Dispatch(name, indexes, alone):
                assert not self.stopped, "sent after stop"
                (worker,) = [w for w in self.workers if w.name == name]
                assert not worker.is_lost, "sent to a lost worker"
                assert not worker.alone, "sent beside an index that is alone"
                assert not alone or (len(indexes) == 1 and not worker.queue), "alone is not alone"
                for i in indexes:
                    assert not self.accepted[i], f"{i} is recorded"
                    assert i not in self.void, f"{i} is void"
                    assert not any(i in w.queue for w in self.workers if not w.is_lost), f"{i} is out"
                    self.sent[i] += 1
                worker.queue += indexes
                worker.alone = alone
                suspects = [i for i in worker.queue if self.ledger.attempts(i) and i not in self.failers]
                assert len(suspects) <= SUSPECTS
            case Commit(_, _, accepted, superseded):
                self.accepted.update(accepted)
                assert all(self.accepted[i] or i in self.void for i in superseded)
            case Void(index, _):
                assert index not in self.void
                self.void.add(index)
            case Recover(name):
                assert any(w.name == name and w.is_lost for w in self.workers)
            case Done(complete):
                assert complete or not self.ledger.counts().out, "done while something is out"
                self.done.append(complete)

    # --- what may happen ------------------------------------------------------------------------------

    @rule(w=st.integers(0, 2), num=st.integers(0, 25))
    def room(self, w: int, num: int) -> None:
        self.tell(Room(self.workers[w].name, num))

    @rule(w=st.integers(0, 2), num=st.integers(1, 20))
    def play(self, w: int, num: int) -> None:
        """Plays the first of its queue; a killer among them ends the worker."""
        worker = self.workers[w]
        played, finished = worker.queue[:num], []
        for i in played:
            if i in self.killers:
                self.finish(worker, finished)
                if not worker.is_lost:
                    self.lose(worker)
                worker.queue.clear()  # now it is dead indeed
                return
            worker.queue.remove(i)
            if i in self.failers:
                worker.alone = False
                self.tell(Failed(worker.name, i, "our own failure"))
            else:
                finished.append(i)
        self.finish(worker, finished)

    def finish(self, worker: Worker, finished: list[int]) -> None:
        worker.streams += finished
        if finished:
            worker.alone = False
            self.tell(Finished(worker.name, finished))

    @rule(w=st.integers(0, 2))
    def seal(self, w: int) -> None:
        worker = self.workers[w]
        shard, worker.streams = worker.streams, []
        if shard:
            self.tell(Sealed(worker.name, f"{worker.name}-{len(self.log)}", tuple(shard)))

    @rule(w=st.integers(0, 2), num=st.integers(1, 20))
    def give_back(self, w: int, num: int) -> None:
        worker = self.workers[w]
        if worker.is_lost or worker.alone:
            return
        worker.queue, returned = worker.queue[:-num], worker.queue[-num:]
        self.sent_for_nothing.update(returned)
        self.tell(Returned(worker.name, returned))

    @rule(w=st.integers(0, 2), really=st.booleans(), is_mishap=st.booleans())
    def lose_contact(self, w: int, really: bool, is_mishap: bool) -> None:
        """A node is lost, or thought to be; not while an index is alone there: that would be proof."""
        worker = self.workers[w]
        if not worker.is_lost and not worker.alone:
            if is_mishap:
                self.sent_for_nothing.update(worker.queue)
            self.lose(worker, is_mishap=is_mishap)
            if really:
                worker.queue.clear()

    def lose(self, worker: Worker, *, is_mishap: bool = False) -> None:
        worker.is_lost = True
        self.tell(WorkerLost(worker.name, is_mishap))

    @rule(w=st.integers(0, 2), share=st.floats(0, 1))
    def recover(self, w: int, share: float) -> None:
        """Its streams are read, in part; one that lives on may seal a copy of all of it later."""
        worker = self.workers[w]
        if not worker.is_lost:
            return
        read = worker.streams[: round(share * len(worker.streams))]
        if read:
            self.tell(Sealed(worker.name, f"{worker.name}-recovered", read))
        self.dead.append(worker)
        self.workers[w] = self.new_worker()
        self.tell(Recovered(worker.name))

    @precondition(lambda self: self.dead)
    @rule(which=st.integers(0, 5))
    def seal_late(self, which: int) -> None:
        worker = self.dead.pop(which % len(self.dead))
        shard = [i for i in [*worker.streams, *worker.queue] if i not in self.killers | self.failers]
        if shard:
            self.tell(Sealed(worker.name, f"{worker.name}-late", shard))

    @precondition(lambda self: not self.stopped)
    @rule(sometimes=st.integers(0, 9))
    def stop(self, sometimes: int) -> None:
        if sometimes == 0:
            self.stopped = True
            self.tell(Stop())

    @rule(sometimes=st.integers(0, 4), share=st.floats(0, 1))
    def driver_dies(self, sometimes: int, share: float) -> None:
        if sometimes == 0:
            self.resume(share)

    def resume(self, share: float) -> None:
        """A new driver rebuilds the ledger from records and log, and recovers the old streams first."""
        old = self.workers
        for worker in old:
            self.sent_for_nothing.update(worker.queue)
        recorded = +self.accepted
        history = attempts_from_log(self.log, recorded=recorded)
        assert history.void.keys() == self.void
        self.new_driver(
            Ledger(self.num, max_attempts=self.max_attempts, recorded=recorded, attempts=history.attempts,
                   mishaps=history.mishaps, void=history.void)
        )  # fmt: skip
        for worker in old:
            read = worker.streams[: round(share * len(worker.streams))]
            if read:
                self.tell(Sealed(worker.name, f"{worker.name}-recovered", read))

    # --- what must hold -------------------------------------------------------------------------------

    @invariant()
    def every_index_is_settled_at_most_once(self) -> None:
        assert max(self.accepted.values(), default=0) <= 1
        assert not self.void & (+self.accepted).keys()
        counts = self.ledger.counts()
        assert counts.recorded == self.accepted.total()
        assert counts.void == len(self.void)
        assert counts.todo + counts.out + counts.finished + counts.recorded + counts.void == self.num

    @invariant()
    def innocents_are_never_void(self) -> None:
        assert self.void <= self.killers | self.failers

    @invariant()
    def blame_takes_finitely_many_dispatches(self) -> None:
        for i in self.killers | self.failers:
            assert self.sent[i] <= self.max_attempts + 1 + self.sent_for_nothing[i]

    @invariant()
    def done_comes_once(self) -> None:
        assert len(self.done) <= 1
        if self.done == [True] or (self.done and not self.stopped):
            assert self.ledger.is_complete

    def teardown(self) -> None:
        """From wherever it stands, the run comes to its end with every index settled exactly once."""
        if not hasattr(self, "ledger"):
            return
        if self.stopped:
            self.work_off()
            assert len(self.done) == 1
            assert self.ledger.counts().out == 0
            self.resume(share=1.0)
        self.work_off()
        assert self.ledger.is_complete or self.num == 0
        if not self.done:  # everything was settled before this driver's first event
            self.tell(Room("w-last", 1))
        assert self.done == [True]
        assert {i for i in range(self.num) if not self.accepted[i]} == self.void
        assert (self.killers | self.failers) >= self.void
        self.every_index_is_settled_at_most_once()
        self.blame_takes_finitely_many_dispatches()

    def work_off(self) -> None:
        for _ in range(20 * self.num + 100):
            if self.ledger.is_complete:
                return
            for w in range(3):
                self.recover(w, 1.0)
                self.room(w, 7)
                self.play(w, 7)
                self.seal(w)


LedgerMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestLedger = LedgerMachine.TestCase
