"""Where an episode that was played again differs from its rows: the first column, and both values.

Invariant: pure; every column is compared that can come out again, and no time, price or host. What a
record says twice and not the same way is its own fault, whatever the rules are now. Reads no store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

import msgspec

from cogeval.core.agent import Usage
from cogeval.core.record import Attempt, Episode, seat_shares
from cogeval.core.replies import too_late
from cogeval.core.seat import Deadlines
from cogeval.store.attempts import RecordedEpisode, RecordedSeat
from cogeval.store.columns import MAX_COUNT

_SHOWN_CHARS: Final = 300  # of an action, a fault's description or a reply
_BEFORE_CHARS: Final = 40  # of a text, shown before the first character that differs
_ACTED: Final = {  # fields of an attempt that say who did what; and their columns
    "phase": "phase", "seat": "seat", "attempt": "attempt", "kind": "kind", "source": "source",
    "fault": "fault", "action_text": "action", "accepted": "accepted",
}  # fmt: skip
_BESIDE: Final = {"detail": "detail", "model": "model", "finish_reason": "finish_reason", "text": "reply"}
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{6,}")  # of an object in an error's words: never twice the same

Trusted = Callable[[Attempt], bool]
"""True for an attempt whose fault stands as recorded, because nothing is there to judge it again."""


class Mismatch(msgspec.Struct, frozen=True):
    """The first column that comes out otherwise."""

    column: str  # table.column, or the table alone when a row is missing or one too many
    recorded: str  # what was recorded there, for people
    now: str  # what it is now
    where: Attempt | None = None  # the decision; None: no decision differs, only what came of them
    seat: int | None = None  # of a row of the seats
    contradiction: str | None = None  # what else in the record says otherwise; None: nothing


def first_mismatch(
    recorded: RecordedEpisode, now: Episode, deadlines: Deadlines, trusted: Trusted
) -> Mismatch | None:
    """Compares an episode with its record, decision by decision and then by what came of them.

    Args:
        recorded: its rows.
        now: as it came out now.
        deadlines: as recorded.
        trusted: tells attempts whose faults stand as recorded.
    """
    for then, again in zip_longest(recorded.attempts, now.attempts):
        if then is None or again is None or _place(then) != _place(again):
            return _one_only(then, again)
        found = _attempt(then, again, deadlines, trusted)
        if found is not None:
            return found
    return _digest(recorded, now) or next(_episode(recorded, now), None) or next(_seats(recorded, now), None)


def _one_only(then: Attempt | None, again: Attempt | None) -> Mismatch:
    """A row that the other side does not have, at the earlier of two places."""
    where = min((a for a in (then, again) if a is not None), key=_place)
    return Mismatch("decisions", _words_at(where, then), _words_at(where, again), where)


def _place(attempt: Attempt) -> tuple[int, int, int]:
    return attempt.phase, attempt.seat, attempt.attempt


def _attempt(then: Attempt, again: Attempt, deadlines: Deadlines, trusted: Trusted) -> Mismatch | None:
    for field, column in _ACTED.items():
        if getattr(then, field) != getattr(again, field):
            return Mismatch(f"decisions.{column}", words(then), words(again), then)
    if then.fault is not None and (found := _fault(then, deadlines)) is not None:
        return found
    if then.source == "agent" and trusted(then):
        return None
    for field, column in _BESIDE.items():
        was, is_now = getattr(then, field), getattr(again, field)
        if was != is_now and (field != "detail" or _masked(was) != _masked(is_now)):
            return Mismatch(
                f"decisions.{column}", *_apart(was, is_now), then, contradiction=_stray(then, was)
            )
    if then.usage is not again.usage and (found := _usage(then, again)) is not None:
        return found
    if then.stderr is not None and then.fault is None:
        return Mismatch("decisions.stderr", *_apart(then.stderr, None), then, contradiction="it has no fault")
    return None


def _fault(then: Attempt, deadlines: Deadlines) -> Mismatch | None:
    """A fault and its description must fit each other, whoever describes it."""
    if then.detail is None:
        return Mismatch("decisions.detail", "none", "a description", then, contradiction="it has a fault")
    limits_s = (deadlines.decision_s, deadlines.retry_s)[: then.attempt + 1]
    late = (too_late(limits_s[-1]), too_late(deadlines.episode_timeout_s, with_waits=True))
    if then.fault == "timeout" and then.detail not in late:
        against = "the fault is a timeout, and these were the deadlines"
        return Mismatch("decisions.detail", repr(then.detail), repr(late[0]), then, contradiction=against)
    if then.fault != "timeout" and then.detail in late:
        against = f"its detail is that of a timeout: {then.detail}"
        return Mismatch("decisions.fault", then.fault or "", "timeout", then, contradiction=against)
    return None


def _usage(then: Attempt, again: Attempt) -> Mismatch | None:
    was = {} if then.usage is None else msgspec.structs.asdict(then.usage)
    is_now = _stored(again.usage)
    for column in Usage.__struct_fields__:
        before, after = was.get(column), is_now.get(column)
        if before != after:
            found = _stray(then, before)
            return Mismatch(f"decisions.{column}", str(before), str(after), then, contradiction=found)
    return None


def _stored(usage: Usage | None) -> dict[str, float]:
    """What the store makes of a usage."""
    if usage is None:
        return {}
    fields = msgspec.structs.asdict(usage).items()
    return {name: n if isinstance(n, float) else min(max(n, 0), MAX_COUNT) for name, n in fields}


def _stray(then: Attempt, value: object) -> str | None:
    """Why a value cannot be beside an attempt; None: it can."""
    if value is None:
        return None
    if then.source != "agent":
        return "a fallback decided, who says nothing"
    return f"the fault is a {then.fault}, so that no reply came" if then.fault == "timeout" else None


def _digest(recorded: RecordedEpisode, now: Episode) -> Mismatch | None:
    if now.digest == recorded.digest:
        return None
    scores = tuple(seat.score for seat in now.results.seats)
    column = "episodes.digest"
    if recorded.scores != scores:
        column = "seats.score"
    if recorded.reason != now.results.reason:
        column = "episodes.reason"
    was = outcome(recorded.reason, recorded.scores, recorded.digest)
    return Mismatch(column, was, outcome(now.results.reason, scores, now.digest))


def _episode(recorded: RecordedEpisode, now: Episode) -> Iterator[Mismatch]:
    clock = clock_contradiction(recorded)
    for column, was, is_now in (
        ("reason", recorded.reason, now.results.reason),
        ("phases", recorded.phases, now.results.phases),
        ("stopped", recorded.stopped, now.stopped),
    ):
        if was != is_now:
            yield Mismatch(f"episodes.{column}", repr(was), repr(is_now))
    if clock is not None:
        was, is_now = repr(recorded.clock_events), repr(now.has_clock_events)
        yield Mismatch("episodes.clock_events", was, is_now, contradiction=clock)


def clock_contradiction(recorded: RecordedEpisode) -> str | None:
    """Where a record says of its clock two things that cannot both be; None: nowhere."""
    is_late = recorded.stopped or any(attempt.fault == "timeout" for attempt in recorded.attempts)
    if recorded.clock_events == is_late:
        return None
    return f"clock_events is {recorded.clock_events}, stopped and the timeouts of its decisions say {is_late}"


def _seats(recorded: RecordedEpisode, now: Episode) -> Iterator[Mismatch]:
    unlike = None
    if tuple(seat.share for seat in recorded.seats) != seat_shares([seat.rank for seat in recorded.seats]):
        unlike = "recorded ranks and shares do not belong together"
    gone = {a.seat for a in recorded.attempts if a.source == "forfeit"}
    rows = zip(recorded.seats, now.results.seats, now.ranks, now.shares, now.forfeited, strict=True)
    for then, result, rank, share, forfeited in rows:
        against = None if (then.seat in gone) == then.forfeited else "its decisions say otherwise"
        for column, was, is_now, contradiction in (
            ("score", then.score, result.score, None),
            ("forfeited", then.forfeited, forfeited, against),
            ("rank", then.rank, rank, unlike),
            ("share", then.share, share, unlike),
        ):
            if not _same(was, is_now):
                yield Mismatch(f"seats.{column}", f"{was!r}", f"{is_now!r}", None, then.seat, contradiction)
        yield from _statistics(then, {name: float(v) for name, v in result.statistics.items()})


def _statistics(then: RecordedSeat, now: dict[str, float]) -> Iterator[Mismatch]:
    for name in sorted(then.statistics.keys() | now.keys()):
        was, is_now = then.statistics.get(name), now.get(name)
        if was is None or is_now is None or not _same(was, is_now):
            yield Mismatch("seats.statistics", f"{name} {was}", f"{name} {is_now}", None, then.seat)


def _same(was: float, is_now: float) -> bool:
    return was == is_now or (was != was and is_now != is_now)  # what is no number is not itself


def _masked(detail: str | None) -> str | None:
    return detail if detail is None else _ADDRESS.sub("0x", detail)


def _apart(was: str | None, is_now: str | None) -> tuple[str, str]:
    """Two texts for people, from a little before the first character that differs."""
    if was is None or is_now is None:
        return _quoted(was), _quoted(is_now)
    pairs = enumerate(zip(was, is_now, strict=False))
    first = next((i for i, (a, b) in pairs if a != b), min(len(was), len(is_now)))
    start = max(0, first - _BEFORE_CHARS)
    return _quoted(was[start:]), _quoted(is_now[start:])


def _quoted(text: str | None) -> str:
    return "none" if text is None else repr(text[:_SHOWN_CHARS])


def _words_at(where: Attempt, attempt: Attempt | None) -> str:
    """An attempt for people; one at another decision, or none, is nothing."""
    if attempt is None or (attempt.phase, attempt.seat) != (where.phase, where.seat):
        return "nothing"
    return words(attempt)


def words(attempt: Attempt) -> str:
    """An attempt for people."""
    who = attempt.source if attempt.source == "agent" else f"fallback {attempt.source}"
    said = "no action" if attempt.action_text is None else attempt.action_text[:_SHOWN_CHARS]
    if attempt.fault is None:
        return f"{who}: {said}"
    detail = f" ({attempt.detail[:_SHOWN_CHARS]})" if attempt.detail else ""
    return f"{who}: {said}, {attempt.fault}{detail}"


def outcome(reason: str, scores: Sequence[float], digest: str) -> str:
    """What came of an episode, for people."""
    return f"{reason}, scores {', '.join(f'{score:g}' for score in scores)}, digest {digest}"
