"""A recorded episode played again: does the same come out, and if not, where and why not.

Invariant: nothing is called and nothing is timed: seats whose agents cannot be played anew answer from
the journal, reading their recorded replies again where those are text of models and programs, and the
clock ends an episode where it is recorded that it did. Reads no store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from cogeval.agents.recorded import Reader, is_taken_on_trust, recorded_seat
from cogeval.core.agent import Seated
from cogeval.core.episode import Fallback, play, replay
from cogeval.core.game import AnyGame, Results, SeatResult
from cogeval.core.record import ActionCodec, Attempt, episode_digest
from cogeval.core.seat import Deadlines
from cogeval.errors import EpisodeError
from cogeval.report.differing import Mismatch, clock_contradiction, first_mismatch, outcome
from cogeval.schedule.designs import Schedule, Slot
from cogeval.store.attempts import RecordedEpisode

_UNCOVERED: Final = "the digest covers what was played, its reason and scores, and nothing else"


class Difference(msgspec.Struct, frozen=True):
    """Where an episode comes out otherwise for the first time, and whose doing it is."""

    index: int  # of the episode, in the schedule
    block: int
    seed: int
    phase: int | None  # None: no decision differs, only what came of them
    seat: int | None
    column: str  # that differs, as table.column; the table alone for rows that are missing or too many
    agent: str | None  # who sits there
    recorded: str  # what was recorded there
    now: str  # what it is now
    cause: str  # "record", "rules" or "agent": what is not as it was
    why: str  # the same in a sentence


class PlayedAgain(msgspec.Struct, frozen=True):
    """One episode, played again."""

    recorded: RecordedEpisode
    digest: str | None  # of the episode as it came out now; None: it could not be played
    difference: Difference | None  # None: everything is as recorded


class Rehearsal:
    """Plays recorded episodes of one run again.

    Args:
        game: rules and parameters, as recorded.
        schedule: of the run.
        pool: names of all agents, in the order of the lineups' numbers.
        anew: by name, who is played anew; everybody else answers from the journal.
        readers: by name, who reads recorded replies again; everybody else's are as recorded.
        changed: by name, how an agent differs from the one that was recorded.
        fallback: what decides after a fault.
        deadlines: as recorded.
        episode_id: gives the identity of a scheduled episode.
    """

    def __init__(
        self,
        game: AnyGame,
        schedule: Schedule,
        pool: tuple[str, ...],
        anew: Mapping[str, Seated],
        readers: Mapping[str, Reader],
        changed: Mapping[str, str],
        fallback: Fallback,
        deadlines: Deadlines,
        episode_id: Callable[[Slot], str],
    ) -> None:
        self._game = game
        self._schedule = schedule
        self._pool = pool
        self._anew = anew
        self._readers = readers
        self._changed = changed
        self._fallback = fallback
        self._deadlines = deadlines
        self._episode_id = episode_id
        self._codec = ActionCodec(game)

    async def play(self, recorded: RecordedEpisode) -> PlayedAgain:
        """Plays one episode again and compares it with its record, decision by decision."""
        if (wrong := self._unusable(recorded)) is not None:
            return PlayedAgain(recorded, None, wrong)
        seats = [
            self._anew.get(name) or recorded_seat(name, recorded.attempts, self._readers.get(name))
            for name in recorded.agents
        ]
        try:
            episode = await play(
                self._game,
                recorded.seed,
                seats,
                fallback=self._fallback,
                deadlines=self._deadlines,
                replicate=recorded.replicate,
                codec=self._codec,
                stop_after=recorded.num_phases if recorded.stopped else None,
            )
        except EpisodeError as error:
            failed = Mismatch("episodes", "an episode", f"a failure: {error}")
            return PlayedAgain(recorded, None, _difference(recorded, failed, self._cause(recorded, failed)))
        found = first_mismatch(
            recorded,
            episode,
            self._deadlines,
            lambda said: self._is_trusted(recorded.agents[said.seat], said),
        )
        if found is None:
            return PlayedAgain(recorded, episode.digest, None)
        return PlayedAgain(
            recorded, episode.digest, _difference(recorded, found, self._cause(recorded, found))
        )

    def _is_trusted(self, name: str, said: Attempt) -> bool:
        return name not in self._anew and is_taken_on_trust(said, self._readers.get(name))

    def _unusable(self, recorded: RecordedEpisode) -> Difference | None:
        """Why an episode's rows cannot be played: damaged, or not those of their place in the schedule."""
        if recorded.damage is not None:
            return _difference(recorded, _not_played("decisions"), ("record", recorded.damage))
        if not 0 <= recorded.index < len(self._schedule):
            why = f"expected an index below {len(self._schedule)}, as scheduled, got {recorded.index}"
            return _difference(recorded, _not_played("episodes.index"), ("record", why))
        slot = self._schedule[recorded.index]
        places = (
            ("episodes.seed", slot.seed, recorded.seed),
            ("episodes.replicate", slot.replicate, recorded.replicate),
            ("seats.agent", tuple(self._pool[i] for i in slot.lineup), recorded.agents),
            ("episodes.block", slot.block, recorded.block),
            ("seats.block", {slot.block}, {seat.block for seat in recorded.seats}),
            ("episodes.episode_id", self._episode_id(slot), recorded.episode_id),
        )
        for column, planned, found in places:
            if planned != found:
                why = f"{column} is {found!r}, the schedule has {planned!r} there"
                return _difference(recorded, _not_played(column), ("record", why))
        return None

    def _cause(self, recorded: RecordedEpisode, found: Mismatch) -> tuple[str, str]:
        """What is not as it was: the record itself, the rules, or the agent that decided."""
        contradiction = found.contradiction or clock_contradiction(recorded)
        if contradiction is not None:
            return "record", f"the record contradicts itself: {contradiction}"
        if not self._is_whole(recorded):
            return "record", "the recorded actions and scores do not give the recorded digest: rows changed"
        rules = self._under_the_rules_of_now(recorded)
        if rules is not None:
            return "rules", f"the rules changed: {rules}"
        where = found.where
        if where is None:
            return "rules", f"the rules give another value now, or the row was changed: {_UNCOVERED}"
        name = recorded.agents[where.seat]
        if where.source != "agent" or name not in self._anew:
            if where.source == "agent" and name in self._readers:
                return "rules", f"the reply is read otherwise now, or its row was changed: {_UNCOVERED}"
            return "rules", (
                "the rules changed: recorded replies are judged or replaced otherwise; or the row was "
                f"changed: {_UNCOVERED}"
            )
        if name in self._changed:
            return "agent", f"agent {name} changed: {self._changed[name]}"
        return "agent", (
            "the recorded actions still lead to the recorded end, so the rules are as they were: agent "
            f"{name} decides otherwise though its fingerprint is the same; it is not deterministic, or "
            "depends on something that its fingerprint does not cover"
        )

    def _is_whole(self, recorded: RecordedEpisode) -> bool:
        """True when the recorded actions, reason and scores are those that the digest was made of."""
        played = [(a.phase, a.seat, a.action_text) for a in recorded.attempts if a.accepted]
        whole = [int(score) if score.is_integer() else score for score in recorded.scores]
        for scores in (recorded.scores, whole):  # a game may count in integers, the store keeps floats
            seats = tuple(SeatResult(score, (), {}) for score in scores)
            results = Results(recorded.reason, recorded.phases, seats)
            if episode_digest(self._game, recorded.seed, played, results) == recorded.digest:
                return True
        return False

    def _under_the_rules_of_now(self, recorded: RecordedEpisode) -> str | None:
        """Where the recorded actions lead to something else than they did; None: nowhere."""
        journal: list[dict[int, Any]] = [{} for _ in range(recorded.num_phases)]
        for attempt in recorded.attempts:
            if attempt.accepted:
                journal[attempt.phase][attempt.seat] = attempt.action
        try:
            state, digest = replay(self._game, recorded.seed, journal, stopped=recorded.stopped)
        except Exception as error:  # noqa: BLE001 - other rules may fail in any way on what was legal once
            return f"{type(error).__name__}: {error}"
        if digest == recorded.digest:
            return None
        results = self._game.results(state)
        scores = [seat.score for seat in results.seats]
        return f"the recorded actions lead to {outcome(results.reason, scores, digest)}"


def _not_played(column: str) -> Mismatch:
    return Mismatch(column, "rows that cannot be used", "not played")


def _difference(recorded: RecordedEpisode, found: Mismatch, cause: tuple[str, str]) -> Difference:
    seat = found.seat if found.where is None else found.where.seat
    return Difference(
        index=recorded.index,
        block=recorded.block,
        seed=recorded.seed,
        phase=None if found.where is None else found.where.phase,
        seat=seat,
        agent=None if seat is None else recorded.agents[seat],
        column=found.column,
        recorded=found.recorded,
        now=found.now,
        cause=cause[0],
        why=cause[1],
    )
