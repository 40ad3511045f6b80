"""The driver: keeps every worker busy, writes the records, and survives the workers.

Invariant: what happens next is the ledger's decision; the driver feeds it events and carries out its
commands. It holds indexes and sums only, never rows, so that its memory does not grow with the run.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterable, Sequence

import msgspec
import ray
from ray.exceptions import RayActorError, RayError

from cogeval.cluster.chronicle import Chronicle
from cogeval.cluster.connection import connected, lifeline
from cogeval.cluster.crew import Crew
from cogeval.cluster.deaths import is_mishap, last_line, node_of_actor
from cogeval.cluster.grounds import Grounds
from cogeval.cluster.lifeline import Lifeline
from cogeval.cluster.nodes import alive, check_nodes
from cogeval.cluster.plan import ClusterOptions, Receipt, RunPlan
from cogeval.cluster.progress import Observer, Outcome, Progress
from cogeval.cluster.purse import Purse
from cogeval.cluster.ray_meters import RaySink
from cogeval.cluster.remains import Remains
from cogeval.cluster.seat_pool import Loss
from cogeval.cluster.seat_pool_actor import RunSeats
from cogeval.cluster.signals import StopRequest
from cogeval.cluster.tally import Tally
from cogeval.cluster.workers import Pace, Patience, Worker
from cogeval.errors import RunError
from cogeval.schedule.ledger import Ledger
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
    WorkerLost,
)
from cogeval.store.probe import lasting_token
from cogeval.store.read import recorded_indexes
from cogeval.store.recover import recover
from cogeval.store.run import RunDir
from cogeval.store.shards import SealedShard

__all__ = ["Observer", "Outcome", "Progress", "drive"]

_OBSERVE_S = 0.5  # between two looks at the progress
_DRAIN_S = 30.0  # longest wait for workers to seal their shards after a stop
_CUT_OFF_S = 5.0  # the same when the cluster's head is lost
_FINISH_S = 20.0  # that episodes under way may take to end when the money is spent
_START_ATTEMPTS = 3  # workers that may die before they answer, one after the other


def drive(plan: RunPlan, run: RunDir, options: ClusterOptions, observers: Sequence[Observer] = ()) -> Outcome:
    """Plays what is missing of a run.

    Args:
        plan: the run.
        run: its directory; this driver takes its lock.
        options: where and how wide.
        observers: called with the progress about twice a second; they must not raise.

    Returns:
        How it ended; an interruption is an outcome, not an error.

    Raises:
        InputError: another driver holds the run, or the cluster does not fit.
        RunError: a full disk, workers that cannot start, or a cluster that is lost. What is committed
            stays intact.
    """
    with run.lock(), StopRequest() as stop:
        driver = _Driver(plan, run, options, observers, stop)
        driver.take_stock()
        with driver.chronicle.until_the_end(driver.outcome):
            if driver.complete or driver.paused:
                return driver.outcome()
            with connected(options, plan.seat_needs) as num_workers, contextlib.ExitStack() as stack:
                stop.take_over()  # Ray has installed its own handlers
                if options.address is not None:
                    check_nodes(run.place)
                    token = stack.enter_context(lasting_token(run.place))
                    driver.plan = msgspec.structs.replace(plan, token=token)
                grows = options.address is not None and options.workers is None
                driver.grounds = Grounds(num_workers, plan.seat_needs, alive(), grows=grows)
                stack.enter_context(driver.grounds)
                return driver.play(num_workers, stack.enter_context(lifeline()))


class _Driver:
    def __init__(
        self,
        plan: RunPlan,
        run: RunDir,
        options: ClusterOptions,
        observers: Sequence[Observer],
        stop: StopRequest,
    ) -> None:
        self.plan = plan
        self.run = run
        self.options = options
        self.stop = stop
        self.shards: dict[str, SealedShard] = {}  # sealed, awaiting their commands
        self.crew: Crew
        self.grounds: Grounds
        self.refused: list[str] = []  # nodes that joined and may not play, and why
        self.tally = Tally.empty(len(plan.agents))
        self.complete = self.ended = self.stopping = self.paused = False
        self.purse = Purse(plan, run)
        self.seats: RunSeats | None = None
        self.fatal: str | None = None  # why the run cannot go on
        self.generation = secrets.token_hex(3)  # worker ids never repeat, whoever drives
        self.num_lost = self.num_unready = self.num_lost_seat_actors = 0
        self.began = self.observed = time.monotonic()
        self.chronicle = Chronicle(run.place, RaySink(plan.run_id, plan.game.spec.name))
        self.observers: tuple[Observer, ...] = (*observers, self.chronicle)
        self.patience = Patience()
        self.start_s = 0.0
        self.pace = Pace()

    def take_stock(self) -> None:
        """Recovers what earlier drivers left and asks the ledger what is missing."""
        recovered = recover(self.run.place)
        recorded, damaged = recorded_indexes(self.run)
        for broken in damaged:  # its episodes are missing again
            self.run.set_aside(broken)
        history = attempts_from_log(self.run.log_lines(), recorded=recorded.tolist())
        self.ledger = Ledger(
            len(self.plan.schedule),
            max_attempts=self.options.max_attempts,
            recorded=recorded.tolist(),
            attempts=history.attempts,
            mishaps=history.mishaps,
            void=history.void,
        )
        for shard in recovered:
            self.take_shards(shard.shard_id, [shard])
        self.complete = self.ledger.is_complete
        if self.purse.is_empty_already() and not self.complete:
            self.pause()

    def play(self, num_workers: int, line: Lifeline) -> Outcome:
        """Feeds workers until nothing is missing or somebody asks to stop."""
        self.chronicle.started(self.outcome().progress, num_workers)
        self.line, self.remains = line, Remains(self.run, line)
        for shard in self.remains.on_other_nodes():
            self.take_shards(shard.shard_id, [shard])
        plan, name = self.plan, f"{self.plan.run_id}-{self.generation}"
        self.purse.open(name)
        if plan.seat_needs:
            self.seats = RunSeats(plan, name)
        pool = None if self.seats is None else self.seats.actor
        self.crew = Crew(plan, self.generation, self.grounds, self.purse.books, pool)
        try:
            if self.seats is not None:
                self.seats.wait(plan.seat_needs, lambda: self.stop.requested or bool(line.trouble))
            self.play_on()
        finally:
            self.close()
        if self.paused and not self.complete:
            self.pause()
        self.observe(last=True)
        if self.fatal:
            raise RunError(self.fatal)
        return self.outcome()

    def close(self) -> None:
        """Ends the run's own actors, while there is a Ray that could."""
        if self.line.is_local_lost:
            return
        with contextlib.suppress(RayError):  # gone with their cluster: what ended the run is said, not this
            if self.seats is not None:
                self.note_losses(self.seats.close())
        with contextlib.suppress(RayError):
            self.purse.close()

    def play_on(self) -> None:
        while not self.ended:
            if self.line.is_local_lost:  # Ray must not be touched any more
                raise RunError(self.line.trouble)
            self.fatal = self.fatal or self.line.trouble or self.patience.trouble(self.crew)
            if self.stop.requested or self.fatal or self.paused:
                self.drain()
                break
            self.crew.complete()
            for worker, call in self.crew.answers():
                self.answer(worker, call)
            for worker, silent_s in self.crew.hung():
                self.lose(worker, TimeoutError(f"no answer for {silent_s:g} s"))
            if self.seats is not None:
                self.note_losses(self.seats.losses())
                self.fatal = self.fatal or self.seats.trouble()
            self.observe()
            self.purse.book()

    def answer(self, worker: Worker, call: ray.ObjectRef) -> None:
        """Takes a worker's answer, or its death, and asks again."""
        try:
            answer = ray.get(call)
        except RayError as error:
            if worker.ready:
                self.lose(worker, error)
            else:
                self.lose_unready(worker, error)
            return
        if isinstance(answer, Receipt):
            self.take(worker, answer)
        elif (wrong := self.crew.welcome(worker, answer)) is not None:
            self.refuse(worker, answer["node"], wrong)
            return
        else:
            self.num_unready = 0
            self.chronicle.welcomed(worker.id, answer["host"], answer["node"])
            self.remains.note(worker.id, answer["node"])
            self.start_s = self.start_s or time.monotonic() - self.began
        self.feed(worker)
        self.crew.ask(worker)

    def take(self, worker: Worker, receipt: Receipt) -> None:
        """Turns a receipt into events."""
        worker.note(receipt)
        self.tally.add(receipt.tally)
        self.fatal = self.fatal or receipt.fatal
        self.paused = self.paused or receipt.paused
        if receipt.finished:
            self.pace.note(len(receipt.finished))
            self.tell(Finished(worker.id, receipt.finished))
        for index, what in receipt.failed:
            self.tell(Failed(worker.id, index, what))
        if receipt.returned:
            self.tell(Returned(worker.id, receipt.returned))
        self.take_shards(worker.id, receipt.sealed)

    def take_shards(self, worker_id: str, shards: Iterable[SealedShard]) -> None:
        for shard in shards:
            self.shards[shard.shard_id] = shard
            self.tell(Sealed(worker_id, shard.shard_id, shard.indexes))

    def feed(self, worker: Worker) -> None:
        """Offers the ledger the room that a worker has, or asks it to seal when nothing is left."""
        todo = self.ledger.counts().todo
        if todo == 0:
            worker.seal_when_idle()
        elif room := worker.room(todo, len(self.crew)):
            self.tell(Room(worker.id, room))

    def tell(self, event: Event) -> None:
        """Gives the ledger an event and obeys; what the ledger's log keeps is written first."""
        self.keep(event)
        for command in self.ledger.handle(event):
            self.keep(command)
            self.obey(command)

    def keep(self, message: Event | Command) -> None:
        self.chronicle.note(message)
        if (entry := log_entry(message)) is not None:
            self.run.append_log(entry)

    def obey(self, command: Command) -> None:
        match command:
            case Dispatch(worker_id, indexes, _):
                self.crew[worker_id].give(indexes)
            case Commit(_, shard_id, accepted, superseded):
                self.run.commit(self.shards.pop(shard_id), accepted, superseded)
            case Recover(worker_id):
                self.take_shards(worker_id, self.remains.of(worker_id))
                self.tell(Recovered(worker_id))
            case Done(complete):
                self.ended, self.complete = True, complete

    def lose(self, worker: Worker, error: Exception) -> None:
        """A worker died: keep its finished episodes, send the others again, start another worker."""
        self.num_lost += 1
        self.chronicle.lost(worker.id, worker.num_out, last_line(error))
        self.purse.forget(worker.id)
        if self.seats is not None:
            self.seats.forget(worker.id)
        self.crew.dismiss(worker)
        self.tell(WorkerLost(worker.id, is_mishap(error)))
        if not (self.ended or self.fatal):
            self.crew.start()

    def lose_unready(self, worker: Worker, error: RayError) -> None:
        """A worker died before it could play: the fault of its node, or of all."""
        why, is_own = last_line(error), not is_mishap(error)
        node_id = node_of_actor(worker.actor, self.line) if is_own else None
        if node_id is not None and self.grounds.is_doubtful(node_id):
            self.refuse(worker, node_id, f"node {node_id[:8]}: a worker died as it started: {why}")
            return
        # Where nobody can play, a mishap may be the driver's own node that the cluster takes for dead.
        self.num_unready += is_own or not any(other.ready for other in self.crew)
        if not isinstance(error, RayActorError):
            self.fatal = self.fatal or f"worker {worker.id} failed: {why}"
        elif self.num_unready >= _START_ATTEMPTS:
            self.fatal = self.fatal or f"workers die as they start: {why}"
        self.lose(worker, error)

    def refuse(self, worker: Worker, node_id: str, why: str) -> None:
        """A worker's node joined meanwhile and gets none; one that was checked before ends the run."""
        if not self.grounds.has_joined(node_id):
            self.fatal = self.fatal or f"worker {worker.id}: {why}"
            self.crew.dismiss(worker)
        elif self.crew.refuse(worker, node_id):
            self.refused.append(why)
            self.chronicle.refused_node(node_id, why)

    def note_losses(self, losses: Iterable[Loss]) -> None:
        """Seat actors were lost, and replaced by their pool."""
        for loss in losses:
            self.num_lost_seat_actors += 1
            self.chronicle.lost_seat_actor(loss)

    def pause(self) -> None:
        """Keeps in the log that the money, and nothing else, ended this driver."""
        self.paused = True
        self.purse.pause()

    def drain(self) -> None:
        """Stops: workers drop what is unfinished and seal the rest."""
        self.stopping = True
        self.observe(last=True)
        self.tell(Stop())
        ready, pending = [w for w in self.crew if w.ready], self.crew.pending()
        is_hasty = self.stop.requested or self.fatal is not None
        last = {w.actor.drain.remote(0.0 if is_hasty else _FINISH_S): w for w in ready}
        deadline = time.monotonic() + (_CUT_OFF_S if self.line.is_cut else _DRAIN_S)
        for calls in (pending, last):  # what the pending call reports comes before the last receipt
            left_s = max(0.0, deadline - time.monotonic())
            done, late = ray.wait(list(calls), num_returns=len(calls), timeout=left_s) if calls else ([], [])
            for call in done:
                self.take_last(calls[call], call)
            for call in late:
                ray.kill(calls[call].actor)
                self.take_shards(calls[call].id, self.remains.of(calls[call].id))

    def take_last(self, worker: Worker, call: ray.ObjectRef) -> None:
        try:
            answer = ray.get(call)
        except RayError:
            self.take_shards(worker.id, self.remains.of(worker.id))
            return
        if isinstance(answer, Receipt):
            self.take(worker, answer)

    def observe(self, *, last: bool = False) -> None:
        """Shows the progress to whoever watches, about twice a second."""
        now = time.monotonic()
        if not last and now - self.observed < _OBSERVE_S:
            return
        self.observed = now
        progress = self.progress(now)
        for observer in self.observers:
            observer(progress)

    def progress(self, now: float) -> Progress:
        counts = self.ledger.counts()
        return Progress(
            run_id=self.plan.run_id,
            total=len(self.plan.schedule),
            recorded=counts.recorded,
            finished=counts.finished,
            void=counts.void,
            episodes_per_s=self.pace.recent(now),
            num_lost_workers=self.num_lost,
            num_lost_seat_actors=self.num_lost_seat_actors,
            names=tuple(agent.name for agent in self.plan.agents),
            tally=self.tally,
            stopping=self.stopping,
            # Agents that no books are kept of say themselves what they cost.
            spent_usd=self.purse.shown_usd(self.tally.cost_usd),
        )

    def outcome(self) -> Outcome:
        return Outcome(
            complete=self.complete,
            interrupted=self.stop.requested and not self.complete,
            progress=self.progress(time.monotonic()),
            start_s=self.start_s,
            num_played=self.pace.total,
            window_s=self.pace.window_s,
            window_episodes=self.pace.window_episodes,
            paused=self.paused and not self.complete,
            spent_usd=self.purse.spent_usd,
            refused_nodes=tuple(self.refused),
        )
