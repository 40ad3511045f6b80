"""One episode: `play` asks the seats and applies the rules, `replay` applies a journal.

Invariants: every seat of a phase decides on the same state and nobody sees or waits in another's
decision; a seat's fault, whatever it is, costs that seat its decision and nothing else. Knows no
table, store or cluster: it runs in any asyncio loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from cogeval.core.agent import Seated
from cogeval.core.clock import Clock, MonotonicClock
from cogeval.core.game import AnyGame, Decision, Results, Seat, Step
from cogeval.core.record import ActionCodec, Attempt, Episode, episode_digest, seat_ranks, seat_shares
from cogeval.core.seat import Deadlines, SeatPlay
from cogeval.core.tabs import opened_tab
from cogeval.errors import EpisodeError, HostError, RunError

ON_FAULT: Final = ("baseline", "pass", "forfeit")


class Fallback(msgspec.Struct, frozen=True):
    """What decides for a seat whose own decision was a fault."""

    on_fault: str = "baseline"  # one of ON_FAULT
    baseline: str | None = None  # None: the game's first


class Watcher(Protocol):
    """Sees an episode while it is played; a RunError that it raises ends the episode."""

    def opened(self, phase: int, state: Any, decisions: Sequence[Decision[Any]]) -> None:
        """A phase is open, and nobody has been asked."""

    def attempted(self, attempt: Attempt) -> None:
        """A reply was judged, or a fallback decided; slow seats come in the order of their replies."""

    def resolved(self, phase: int, step: Step[Any]) -> None:
        """Every seat has decided and the rules were applied."""


async def play(
    game: AnyGame,
    seed: int,
    seats: Sequence[Seated],
    *,
    fallback: Fallback = Fallback(),  # noqa: B008 - frozen value
    deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen value
    clock: Clock | None = None,
    replicate: int = 0,
    codec: ActionCodec | None = None,
    watcher: Watcher | None = None,
    stop_after: int | None = None,
) -> Episode:
    """Plays one episode to its end.

    Args:
        game: rules and parameters.
        seed: the world; a signed 64-bit integer.
        seats: who sits where, exactly `game.seats` of them.
        fallback: what decides after a fault.
        deadlines: seconds per decision, retry and episode.
        clock: where time comes from; the host's monotonic clock by default.
        replicate: 0-based number of the repetition, an input of the agents' streams.
        codec: action codec of this game, to share between episodes.
        watcher: sees the episode while it is played.
        stop_after: phases after which an open episode ends as by its clock, where that is recorded.

    Returns:
        The finished episode.

    Raises:
        EpisodeError: when the lineup does not fit the game, the rules themselves fail, or the machine
            lacks what an agent needs.
    """
    if len(seats) != game.seats:
        raise EpisodeError(f"expected {game.seats} seats for {game.spec.name}, got {len(seats)}")
    clock = clock or MonotonicClock()
    table = _Table(game, seed, seats, fallback, deadlines, clock, replicate, codec, watcher)
    table.stop_after = stop_after
    with opened_tab():
        return await table.run()


class _Table:
    """The seats around one episode in progress."""

    def __init__(
        self,
        game: AnyGame,
        seed: int,
        seats: Sequence[Seated],
        fallback: Fallback,
        deadlines: Deadlines,
        clock: Clock,
        replicate: int,
        codec: ActionCodec | None,
        watcher: Watcher | None,
    ) -> None:
        self.game = game
        self.seed = seed
        self.deadlines = deadlines
        self.fallback = fallback
        self.clock = clock
        self.replicate = replicate
        self.codec = codec or ActionCodec(game)
        self.watcher = watcher
        heard = None if watcher is None else watcher.attempted
        self.seats = [
            SeatPlay(game, seed, i, seated, replicate, deadlines, clock, self.codec, heard)
            for i, seated in enumerate(seats)
        ]
        # With deterministic seats only, nothing may depend on time: the episode clock is off.
        self.timed = not all(seated.deterministic for seated in seats)
        self.forfeited = [False] * len(seats)
        self.attempts: list[Attempt] = []
        self.last_batch_at: float | None = None
        self.stop_after: int | None = None

    async def run(self) -> Episode:
        results: Results | None = None
        try:
            episode = await self._played()
            results = episode.results
            return episode
        finally:
            outcomes = [None] * len(self.seats) if results is None else results.seats
            closing = [s.close(o) for s, o in zip(self.seats, outcomes, strict=True) if s.wants_closing]
            if closing:
                await asyncio.gather(*closing)

    async def _played(self) -> Episode:
        started = self.clock.now()
        play_s = self.deadlines.play_fraction * self.deadlines.episode_timeout_s
        game, phase, stopped = self.game, 0, False
        try:
            state = game.initial_state(self.seed)
            while decisions := game.decisions(state):
                is_late = self.timed and self.clock.now() - started >= play_s
                if is_late or phase == self.stop_after:
                    state, stopped = game.stop(state).next, True
                    break
                if self.watcher is not None:
                    self.watcher.opened(phase, state, decisions)
                actions = await self._phase(state, decisions, phase)
                step = game.step(state, actions)
                if self.watcher is not None:
                    self.watcher.resolved(phase, step)
                state = step.next
                phase += 1
            results = game.results(state)
        except (RunError, HostError):
            raise
        except Exception as error:
            what = f"{game.spec.name} {game.spec.version} failed in phase {phase}"
            raise EpisodeError(f"{what}: {type(error).__name__}: {error}") from error
        played = [(a.phase, a.seat, a.action_text) for a in self.attempts if a.accepted]
        ranks = seat_ranks([s.rank_key for s in results.seats], self.forfeited)
        return Episode(
            seed=self.seed,
            replicate=self.replicate,
            results=results,
            ranks=ranks,
            shares=seat_shares(ranks),
            forfeited=tuple(self.forfeited),
            attempts=tuple(self.attempts),
            stopped=stopped,
            wall_s=self.clock.now() - started,
            digest=episode_digest(game, self.seed, played, results),
        )

    async def _phase(self, state: Any, decisions: Sequence[Decision[Any]], phase: int) -> dict[Seat, Any]:
        """Asks every deciding seat on the same state and gives their actions."""
        await self._space_batches(decisions)
        tried: dict[Seat, list[Attempt]] = {}
        waiting: dict[Seat, asyncio.Task[list[Attempt]]] = {}
        try:
            for decision in decisions:
                seat = decision.seat
                if self.forfeited[seat]:
                    tried[seat] = []
                    continue
                outcome = self.seats[seat].begin(state, decision, phase)
                if isinstance(outcome, list):
                    tried[seat] = outcome
                else:
                    waiting[seat] = asyncio.ensure_future(outcome)
            if waiting:  # what ends the episode is not held up by a seat that is still thinking
                done, _ = await asyncio.wait(waiting.values(), return_when=asyncio.FIRST_EXCEPTION)
                for task in done:
                    task.result()
                tried.update((seat, task.result()) for seat, task in waiting.items())
        finally:  # on cancellation no seat goes on deciding
            for task in waiting.values():
                task.cancel()
            if waiting:  # several may have met the end of the money: each is heard
                await asyncio.gather(*waiting.values(), return_exceptions=True)
        actions: dict[Seat, Any] = {}
        for decision in decisions:
            attempts = tried[decision.seat]
            if not attempts or not attempts[-1].accepted:
                attempts.append(self._fall_back(state, decision, phase, len(attempts)))
            self.attempts += attempts
            actions[decision.seat] = attempts[-1].action
        return actions

    async def _space_batches(self, decisions: Sequence[Decision[Any]]) -> None:
        """Keeps `min_batch_spacing_s` between two batches of model calls."""
        spacing_s = self.deadlines.min_batch_spacing_s
        if spacing_s <= 0 or not any(self.seats[d.seat].is_model for d in decisions):
            return
        if self.last_batch_at is not None:
            wait_s = self.last_batch_at + spacing_s - self.clock.now()
            if wait_s > 0:
                await self.clock.sleep(wait_s)
        self.last_batch_at = self.clock.now()

    def _fall_back(self, state: Any, decision: Decision[Any], phase: int, number: int) -> Attempt:
        """Decides for a seat that did not."""
        seat, source = decision.seat, self.fallback.on_fault
        if source == "baseline":
            name = self.fallback.baseline or self.game.spec.baselines[0]
            action = self.game.baseline(name, state, seat, self.seed)
        else:
            action = decision.default
            if source == "forfeit":
                self.forfeited[seat] = True
        action, text = self.codec.canonical(action)
        attempt = Attempt(
            phase, seat, number, decision.kind, source, True, action, None, None, 0.0, 0.0, action_text=text
        )
        if self.watcher is not None:
            self.watcher.attempted(attempt)
        return attempt


def replay(
    game: AnyGame, seed: int, journal: Sequence[Mapping[Seat, Any]], *, stopped: bool = False
) -> tuple[Any, str]:
    """Applies recorded actions to the rules.

    Args:
        game: rules and parameters, as recorded.
        seed: the world.
        journal: one mapping of seat to action a phase.
        stopped: the recorded episode was ended by its clock after the last phase of the journal.

    Returns:
        The final state and the episode's digest.

    Raises:
        EpisodeError: when the journal asks for other seats than the rules do, names a phase or a stop
            after the end, or ends before the episode does.
    """
    codec = ActionCodec(game)
    played: list[tuple[int, Seat, str]] = []
    state = game.initial_state(seed)
    for phase, actions in enumerate(journal):
        deciding = [d.seat for d in game.decisions(state)]
        if sorted(actions) != deciding:
            raise EpisodeError(f"phase {phase}: expected actions of seats {deciding}, got {sorted(actions)}")
        known = {seat: codec.canonical(actions[seat]) for seat in deciding}
        played += [(phase, seat, text) for seat, (_, text) in known.items()]
        state = game.step(state, {seat: action for seat, (action, _) in known.items()}).next
    if stopped:
        if not game.decisions(state):
            raise EpisodeError(f"expected an open episode to stop, got one over after {len(journal)} phases")
        state = game.stop(state).next
    if game.decisions(state):
        raise EpisodeError(f"the journal ends after {len(journal)} phases, before the episode does")
    return state, episode_digest(game, seed, played, game.results(state))
