"""Small episodes of our own making in the recorded trace format, so that a clone alone proves the rules.

Invariant: an episode is a function of its cast and seed. The casts are made to reach what honest play
seldom does: illegal proposals, burned and vindicated seals, remarks with every kind of blank.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from cogeval.core.game import Json, Seat
from cogeval.core.rng import Stream, stream
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.constants import LAB_VERBS, MARKET_VERBS
from cogeval.games.cogchemists.state import Action, Parameters, State
from cogeval.testing import golden_cogmud
from cogeval.testing.cogchemists_record import SEATS, Probe, Script, build_episode
from cogeval.testing.compare import plain

_VERBS: Final = (*LAB_VERBS, *MARKET_VERBS, "dance", "")
_ARTIFACTS: Final = ("", "mortar", "press", "telescope")
_REMARKS: Final = ("", "", "hello", "  two\r\nlines\u2003", "\u2212\u00e9\U0001f9ea", "long " * 40)
_NUM_PROBES: Final = 12  # in each phase


class Cast(msgspec.Struct, frozen=True):
    """One episode to write."""

    seed: int
    parameters: Parameters
    policies: tuple[str, ...]  # per seat, keys of _DECIDERS or baselines
    deadline_after_phases: int = -1


def _random(game: Cogchemists, state: State, seat: Seat, rng: Stream) -> Action:
    return next(d for d in game.decisions(state) if d.seat == seat).legal.sample(rng)


def _verb(game: Cogchemists, state: State, seat: Seat, rng: Stream) -> Action:
    """A uniform verb, then a uniform action of it: rare verbs come up."""
    legal = list(next(d for d in game.decisions(state) if d.seat == seat).legal)
    verbs = sorted({action.action for action in legal})
    verb = verbs[rng.below(len(verbs))]
    actions = [action for action in legal if action.action == verb]
    return actions[rng.below(len(actions))]


def _outlaw(game: Cogchemists, state: State, seat: Seat, rng: Stream) -> Action:
    """Half the time anything at all, legal or not."""
    return _verb(game, state, seat, rng) if rng.below(2) else _anything(rng)


def _anything(rng: Stream) -> Action:
    return Action(
        _VERBS[rng.below(len(_VERBS))],
        rng.below(10) - 1,
        rng.below(10) - 1,
        rng.below(10) - 1,
        _ARTIFACTS[rng.below(len(_ARTIFACTS))],
    )


_DECIDERS: Final[Mapping[str, Callable[[Cogchemists, State, Seat, Stream], Action]]] = {
    "random": _random,
    "verb": _verb,
    "outlaw": _outlaw,
}


def record_episode(cast: Cast) -> dict[str, Json]:
    """Plays a cast; gives the episode in the trace format."""
    game = Cogchemists(**msgspec.structs.asdict(cast.parameters))

    def decide(phase: int, seat: Seat, state: State) -> Action:
        name = cast.policies[seat]
        if name in game.spec.baselines:
            return game.baseline(name, state, seat, cast.seed)
        rng = stream(cast.seed, "golden", phase, seat)
        action = _DECIDERS[name](game, state, seat, rng)
        say, notes = (_REMARKS[rng.below(len(_REMARKS))] for _ in range(2))
        return msgspec.structs.replace(action, say=say, notes=notes)

    def probes(phase: int, state: State) -> list[Probe]:
        rng = stream(cast.seed, "golden probes", phase)
        return [
            (seat, _anything(rng) if i % 2 else _random(game, state, seat, rng))
            for i in range(_NUM_PROBES // len(SEATS))
            for seat in SEATS
        ]

    script = Script(
        seed=cast.seed,
        parameters=cast.parameters,
        policies=cast.policies,
        deadline_after_phases=cast.deadline_after_phases,
        decide=decide,
        probes=probes,
    )
    record: dict[str, Json] = plain(build_episode(script))
    return record


_SHORT: Final = Parameters(rounds=3)
_OUTLAWS: Final = ("outlaw", "outlaw", "verb", "outlaw")

# Seeds chosen so that every verb, outcome, reason and kind of fact comes up; a test holds them to it.
COGCHEMISTS_CASTS: Final = (
    Cast(193, _SHORT, ("assayer", "quack", "verb", "outlaw")),
    Cast(54, _SHORT, ("verb", "verb", "outlaw", "verb")),
    Cast(1, Parameters(rounds=3, talk=False, artifacts=False), ("quack", "verb", "random", "assayer")),
    Cast(9, Parameters(rounds=3, talk=False, artifacts=False), ("quack", "verb", "random", "assayer")),
    Cast(1, _SHORT, ("verb", "quack", "verb", "assayer"), deadline_after_phases=3),
    *(Cast(seed, Parameters(rounds=4), _OUTLAWS) for seed in (2289, 1689, 466, 356, 1126)),
)


def cogchemists_lines() -> Iterator[str]:
    """The file of Cogchemists traces."""
    yield from _lines(record_episode(cast) for cast in COGCHEMISTS_CASTS)


def cogmud_lines() -> Iterator[str]:
    """The file of Cogmud traces."""
    yield from _lines(golden_cogmud.records())


def _lines(records: Iterable[Json]) -> Iterator[str]:
    for record in records:
        yield json.dumps(record, separators=(",", ":"))


TRACES: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "cogchemists/traces.jsonl": cogchemists_lines,
    "cogmud/traces.jsonl": cogmud_lines,
}
"""File under the golden folder -> its lines."""
