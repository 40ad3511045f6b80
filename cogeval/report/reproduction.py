"""A recorded episode played again: does the same come out, and if not, where and why not.

Invariant: nothing is called and nothing is timed: seats whose agents cannot be played anew answer from
the journal, and the clock ends an episode where it is recorded that it did. Reads no store.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import msgspec

from cogeval.agents.recorded import recorded_seat
from cogeval.core.agent import Seated
from cogeval.core.episode import Fallback, play, replay
from cogeval.core.game import AnyGame, Results, SeatResult
from cogeval.core.record import ActionCodec, Attempt, Episode, episode_digest
from cogeval.core.seat import Deadlines
from cogeval.errors import EpisodeError
from cogeval.schedule.designs import Schedule
from cogeval.store.attempts import RecordedEpisode

_SHOWN_CHARS = 300  # of an action or a fault's description


class Difference(msgspec.Struct, frozen=True):
    """Where an episode comes out otherwise for the first time, and whose doing it is."""

    index: int  # of the episode, in the schedule
    block: int
    seed: int
    phase: int | None  # None: no decision differs, only what came of them
    seat: int | None
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
        changed: by name, how an agent differs from the one that was recorded.
        fallback: what decides after a fault.
        deadlines: as recorded.
    """

    def __init__(
        self,
        game: AnyGame,
        schedule: Schedule,
        pool: tuple[str, ...],
        anew: Mapping[str, Seated],
        changed: Mapping[str, str],
        fallback: Fallback,
        deadlines: Deadlines,
    ) -> None:
        self._game = game
        self._schedule = schedule
        self._pool = pool
        self._anew = anew
        self._changed = changed
        self._fallback = fallback
        self._deadlines = deadlines
        self._codec = ActionCodec(game)

    async def play(self, recorded: RecordedEpisode) -> PlayedAgain:
        """Plays one episode again and compares it with its record, decision by decision."""
        if (wrong := recorded.damage or self._misplaced(recorded)) is not None:
            found = _difference(recorded, None, "rows that cannot be used", "not played", ("record", wrong))
            return PlayedAgain(recorded, None, found)
        seats = [self._anew.get(name) or recorded_seat(name, recorded.attempts) for name in recorded.agents]
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
            cause = self._cause(recorded, None)
            return PlayedAgain(
                recorded, None, _difference(recorded, None, "an episode", f"a failure: {error}", cause)
            )
        return PlayedAgain(recorded, episode.digest, self._compare(recorded, episode))

    def _misplaced(self, recorded: RecordedEpisode) -> str | None:
        """What the schedule says of an episode's place that its rows do not; None: they agree."""
        if not 0 <= recorded.index < len(self._schedule):
            return f"expected an index below {len(self._schedule)}, as scheduled, got {recorded.index}"
        slot = self._schedule[recorded.index]
        lineup = tuple(self._pool[i] for i in slot.lineup)
        for what, planned, found in (
            ("seed", slot.seed, recorded.seed),
            ("replicate", slot.replicate, recorded.replicate),
            ("lineup", lineup, recorded.agents),
        ):
            if planned != found:
                return f"its {what} is {found!r}, the schedule has {planned!r} there"
        return None

    def _compare(self, recorded: RecordedEpisode, now: Episode) -> Difference | None:
        for then, again in zip_longest(recorded.attempts, now.attempts):
            if then is None or again is None or _key(then) != _key(again):
                where = min((a for a in (then, again) if a is not None), key=lambda a: (a.phase, a.seat))
                was, is_now = (_words_at(where, a) for a in (then, again))
                return _difference(recorded, where, was, is_now, self._cause(recorded, where))
        if now.digest == recorded.digest:
            return None
        scores = [seat.score for seat in now.results.seats]
        return _difference(
            recorded,
            None,
            _outcome(recorded.reason, recorded.scores, recorded.digest),
            _outcome(now.results.reason, scores, now.digest),
            self._cause(recorded, None),
        )

    def _cause(self, recorded: RecordedEpisode, where: Attempt | None) -> tuple[str, str]:
        """What is not as it was: the record itself, the rules, or the agent that decided."""
        if not self._is_whole(recorded):
            return "record", "the recorded actions and scores do not give the recorded digest: rows changed"
        found = self._under_the_rules_of_now(recorded)
        if found is not None:
            return "rules", f"the rules changed: {found}"
        name = None if where is None else recorded.agents[where.seat]
        if where is None or name is None or name not in self._anew or where.source != "agent":
            return "rules", "the rules changed: recorded replies are judged or replaced otherwise"
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
        return f"the recorded actions lead to {_outcome(results.reason, scores, digest)}"


def _difference(
    recorded: RecordedEpisode, where: Attempt | None, then: str, now: str, cause: tuple[str, str]
) -> Difference:
    return Difference(
        index=recorded.index,
        block=recorded.block,
        seed=recorded.seed,
        phase=None if where is None else where.phase,
        seat=None if where is None else where.seat,
        agent=None if where is None else recorded.agents[where.seat],
        recorded=then,
        now=now,
        cause=cause[0],
        why=cause[1],
    )


def _key(attempt: Attempt) -> tuple[object, ...]:
    """What must come out the same: not how long it took, what it cost or how a fault is worded."""
    a = attempt
    return (a.phase, a.seat, a.attempt, a.kind, a.source, a.accepted, a.fault, a.action_text)


def _words_at(where: Attempt, attempt: Attempt | None) -> str:
    """An attempt for people; one at another decision, or none, is nothing."""
    if attempt is None or (attempt.phase, attempt.seat) != (where.phase, where.seat):
        return "nothing"
    return _words(attempt)


def _words(attempt: Attempt) -> str:
    """An attempt for people."""
    who = attempt.source if attempt.source == "agent" else f"fallback {attempt.source}"
    said = "no action" if attempt.action_text is None else attempt.action_text[:_SHOWN_CHARS]
    if attempt.fault is None:
        return f"{who}: {said}"
    detail = f" ({attempt.detail[:_SHOWN_CHARS]})" if attempt.detail else ""
    return f"{who}: {said}, {attempt.fault}{detail}"


def _outcome(reason: str, scores: list[float] | tuple[float, ...], digest: str) -> str:
    return f"{reason}, scores {', '.join(f'{score:g}' for score in scores)}, digest {digest}"
