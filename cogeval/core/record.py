"""What one episode leaves behind: every attempt at a decision, the outcome, and its digest.

Invariant: seed and actions are enough to play the episode again; states are not kept. The digest
covers what the agents did and what came of it, never how long it took or what it cost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from cogeval.core.agent import Usage
from cogeval.core.game import AnyGame, Json, Results, Seat

FAULTS: Final = ("timeout", "exception", "unreadable", "illegal")
"""Kinds of faults of a seat. A crashed process of a seat counts as an exception."""

SOURCES: Final = ("agent", "baseline", "pass", "forfeit")
"""Who supplied an attempt's action: the seat's own agent, or one of the three fallbacks."""

_CODEC_CAPACITY = 16_384  # distinct actions remembered per game; talk makes their number unbounded
_CODEC_CHARS = 1024  # longest action remembered, as JSON


def canonical_json(value: Json) -> str:
    """Encodes JSON one way only: sorted keys, no spaces, ASCII, floats by their shortest repr."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One try at one decision: a row of the decisions table."""

    phase: int  # 0-based
    seat: Seat
    attempt: int  # 0 first, 1 the retry; a fallback is numbered after the attempts it replaces
    kind: str  # the decision's kind
    source: str  # one of SOURCES
    accepted: bool  # this attempt's action is the one that was played
    action: Any  # the game's action; None when the attempt gave none that could be read
    fault: str | None  # one of FAULTS; None: fine
    detail: str | None  # what the fault was, for people
    think_s: float
    queue_s: float
    usage: Usage | None = None
    text: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    action_text: str | None = None  # the action as canonical JSON; None exactly where there is no action
    stderr: str | None = None  # what its process wrote to stderr before the fault, up to 64 kB an episode


class Episode(msgspec.Struct, frozen=True):
    """One finished episode."""

    seed: int
    replicate: int
    results: Results
    ranks: tuple[int, ...]  # per seat, 0 is best, equal numbers tie; forfeits last
    shares: tuple[float, ...]  # per seat, (seats beaten + half the ties) / (seats - 1)
    forfeited: tuple[bool, ...]  # per seat
    attempts: tuple[Attempt, ...]  # in the order phase, seat, attempt
    stopped: bool  # the episode clock ended it
    wall_s: float
    digest: str  # 64 hexadecimal digits

    @property
    def has_clock_events(self) -> bool:
        """True when time decided something, so that playing it again may come out differently."""
        return self.stopped or any(a.fault == "timeout" for a in self.attempts)

    def journal(self) -> list[dict[Seat, Any]]:
        """The actions played, one mapping a phase: what `replay` needs."""
        num_phases = self.attempts[-1].phase + 1 if self.attempts else 0
        phases: list[dict[Seat, Any]] = [{} for _ in range(num_phases)]
        for a in self.attempts:
            if a.accepted:
                phases[a.phase][a.seat] = a.action
        return phases


class ActionCodec:
    """Canonical actions of one game and their canonical JSON, each computed once.

    An agent's action object is replaced by the one that its JSON reads back as, so that nothing
    ill-typed reaches the rules.

    Args:
        game: whose actions these are.
    """

    __slots__ = ("_game", "_known", "_seen")

    def __init__(self, game: AnyGame) -> None:
        self._game = game
        self._known: dict[Any, tuple[str, tuple[Any, str]]] = {}  # action: its repr, what `canonical` gives
        # The same by identity, which is ten times faster: id of an object: the object, which stays
        # alive in here so that no other takes its id, and what `canonical` gives.
        self._seen: dict[int, tuple[Any, tuple[Any, str]]] = {}

    def canonical(self, action: Any) -> tuple[Any, str]:
        """The equal, well-typed action, and its canonical JSON.

        Args:
            action: an action, hashable.

        Raises:
            Exception: whatever the game's reader raises on something that is no action of its.
        """
        seen = self._seen.get(id(action))
        if seen is not None:
            return seen[1]
        known = self._known.get(action)
        # 1, 1.0 and True are equal and not the same: what was seen before must not decide which is read.
        entry = known[1] if known is not None and known[0] == repr(action) else self._read(action)
        if len(entry[1]) <= _CODEC_CHARS:
            if max(len(self._known), len(self._seen)) >= _CODEC_CAPACITY:
                self._known.clear()
                self._seen.clear()
            self._known[entry[0]] = (repr(entry[0]), entry)
            self._seen[id(action)] = (action, entry)
            self._seen[id(entry[0])] = (entry[0], entry)
        return entry

    def _read(self, action: Any) -> tuple[Any, str]:
        read = self._game.action_from_wire(json.loads(canonical_json(self._game.action_to_wire(action))))
        return read, canonical_json(self._game.action_to_wire(read))


def seat_ranks(rank_keys: Sequence[tuple[float, ...]], forfeited: Sequence[bool]) -> tuple[int, ...]:
    """Ranks seats by their keys, forfeits behind everybody and tied among themselves.

    Args:
        rank_keys: per seat, higher is better.
        forfeited: per seat.

    Returns:
        Per seat, the number of seats that did strictly better.
    """
    keys = [(0,) if gone else (1, *key) for key, gone in zip(rank_keys, forfeited, strict=True)]
    ordered = sorted(keys, reverse=True)
    first: dict[tuple[float, ...], int] = {}
    for i, key in enumerate(ordered):
        first.setdefault(key, i)
    return tuple(first[key] for key in keys)


def seat_shares(ranks: Sequence[int]) -> tuple[float, ...]:
    """Per seat, (seats beaten + half the ties) / (seats - 1); a lone seat has 0.5."""
    others = len(ranks) - 1
    if others == 0:
        return (0.5,)
    counts: dict[int, int] = {}
    for rank in ranks:
        counts[rank] = counts.get(rank, 0) + 1
    return tuple((others - r - (counts[r] - 1) + (counts[r] - 1) / 2) / others for r in ranks)


def episode_digest(
    game: AnyGame, seed: int, played: Iterable[tuple[int, Seat, str | None]], results: Results
) -> str:
    """Hashes what happened: sha256 of the canonical JSON of an object with these members.

    ``actions`` (list of [phase, seat, action]), ``game``, ``parameters``, ``reason``, ``scores``,
    ``seed`` and ``version``.

    Args:
        game: rules and parameters.
        seed: the episode's seed.
        played: (phase, seat, canonical JSON of the action), in the order phase, seat.
        results: the outcome.

    Returns:
        64 hexadecimal digits.
    """
    actions = ",".join([f"[{phase},{seat},{text}]" for phase, seat, text in played])
    # Assembled from parts that are encoded once; a test holds it equal to encoding the whole object.
    text = (
        f'{{"actions":[{actions}],"game":{json.dumps(game.spec.name)},'
        f'"parameters":{canonical_json(dict(game.parameters))},"reason":{json.dumps(results.reason)},'
        f'"scores":{canonical_json([s.score for s in results.seats])},"seed":{seed},'
        f'"version":{json.dumps(game.spec.version)}}}'
    )
    return hashlib.sha256(text.encode()).hexdigest()


def run_digest(episode_digests: Iterable[bytes]) -> str:
    """Hashes a set of episodes, whatever order they finished in.

    Args:
        episode_digests: one per recorded episode, 32 bytes each, as the episodes table keeps them.

    Returns:
        64 hexadecimal digits: sha256 of the sorted digests.
    """
    return hashlib.sha256(b"".join(sorted(episode_digests))).hexdigest()


def experiment_key(game: AnyGame, rules_of_play: Mapping[str, Json]) -> str:
    """What all episodes of one game under one set of deadlines have in common.

    Args:
        game: its name, version and parameters count.
        rules_of_play: deadlines and fallback.

    Returns:
        64 hexadecimal digits.
    """
    spec = game.spec
    whole = canonical_json([spec.name, spec.version, dict(game.parameters), dict(rules_of_play)])
    return hashlib.sha256(whole.encode()).hexdigest()


def episode_id(key: str, seed: int, agents: Sequence[str], replicate: int = 0) -> str:
    """The identity of a scheduled episode: equal ids are the same experiment.

    Args:
        key: from `experiment_key`.
        seed: the block's seed.
        agents: per seat, the agent's name and fingerprint.
        replicate: 0-based number of the repetition of the same lineup on the same seed.

    Returns:
        32 hexadecimal digits.
    """
    return hashlib.sha256(canonical_json([key, seed, list(agents), replicate]).encode()).hexdigest()[:32]
