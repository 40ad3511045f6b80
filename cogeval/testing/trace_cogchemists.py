"""The kinds of Cogchemists trace records: whole episodes, replies, and the order of chemistries.

Invariant: a record is rebuilt from its own inputs only (seed, configuration, policies, decisions,
probes) through the public game API; what is compared is everything else.
"""

from __future__ import annotations

import functools
import itertools
from typing import Final

import msgspec

from cogeval.core.game import Json, Seat
from cogeval.errors import ActionError
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.deduction import NUM_CHEMISTRIES, permutations
from cogeval.games.cogchemists.state import Action, Parameters, State
from cogeval.testing.cogchemists_record import SEATS, Probe, Script, build_episode
from cogeval.testing.compare import Given, Path, Text
from cogeval.testing.trace_inputs import take

_PER_SEAT: Final = frozenset(
    (
        *("coin", "reputation", "hands", "mortar", "press", "grids", "chemistries", "heard", "legal"),
        *("legalText", "decisions", "say", "notes", "newPrivateFacts", "scores", "published", "endorsed"),
        *("royalties", "names", "policies", "repDeltas", "trueTheories", "falseTheories", "burned"),
        "debunks",
    )
)


def is_episode(record: Json) -> bool:
    """True for a whole episode of this game."""
    return isinstance(record, dict) and (
        record.get("game") == "cogchemists" or ("game" not in record and "deadlineAfterPhases" in record)
    )


def rebuild_episode(record: Json) -> Json:
    """The record as our rules make it from its inputs.

    Raises:
        BadInput: when an input is missing or of the wrong type.
    """

    def decide(phase: int, seat: Seat, _: State) -> Action:
        path = ("steps", phase, "decisions", seat)
        action, artifact, say, notes = (
            take(record, (*path, key), str) for key in ("action", "artifact", "say", "notes")
        )
        a, b, signature = (take(record, (*path, key), int) for key in ("a", "b", "signature"))
        return Action(action, a, b, signature, artifact, say, notes)

    def probes(phase: int, _: State) -> list[Probe]:
        return [
            _probe(record, ("steps", phase, "probes", i))
            for i in range(len(take(record, ("steps", phase, "probes"), list)))
        ]

    return build_episode(
        Script(
            seed=take(record, ("seed",), int),
            parameters=Parameters(
                rounds=take(record, ("config", "rounds"), int),
                talk=take(record, ("config", "talk"), bool),
                artifacts=take(record, ("config", "artifacts"), bool),
            ),
            policies=tuple(take(record, ("policies", seat), str) for seat in SEATS),
            deadline_after_phases=take(record, ("deadlineAfterPhases",), int),
            decide=decide,
            probes=probes,
        )
    )


def _probe(record: Json, path: Path) -> Probe:
    seat, verb = take(record, (*path, 0), int), take(record, (*path, 1), str)
    a, b, signature = (take(record, (*path, i), int) for i in (2, 3, 4))
    return seat, Action(verb, a, b, signature, take(record, (*path, 5), str))


def is_reply(record: Json) -> bool:
    """True for a model's reply to this game: its phases tell it from the other games'."""
    return isinstance(record, dict) and "game" not in record and record.get("phase") in ("lab", "market")


def rebuild_reply(record: Json) -> Json:
    """The record as our reading of the reply makes it.

    Raises:
        BadInput: when the payload is no object.
    """
    phase, payload = take(record, ("phase",), str), take(record, ("payload",), dict)
    ours: dict[str, Json] = {"phase": Given(phase), "payload": Given(payload)}
    try:
        action = Cogchemists().parse_reply(_open_state(phase), 0, payload)
    except ActionError as error:
        return ours | {"ok": False, "error": Text(error.hint)}
    return ours | {"ok": True, "action": msgspec.structs.asdict(action)}


@functools.cache
def _open_state(phase: str) -> State:
    """A state in which the phase is open."""
    game = Cogchemists()
    state = game.initial_state(0)
    while state.phase != phase:
        state = game.step(state, {d.seat: d.default for d in game.decisions(state)}).next
    return state


def is_order(record: Json) -> bool:
    """True for the list of chemistries in their order."""
    return isinstance(record, dict) and ("first200" in record or "byIndex" in record)


def rebuild_order(_: Json) -> Json:
    """The order in which our deduction numbers the chemistries."""
    table = permutations()

    def digits(k: int) -> str:
        return "".join(str(signature) for signature in table[8 * k : 8 * k + 8])

    indexes = sorted({*range(0, NUM_CHEMISTRIES, 500), 2_999, NUM_CHEMISTRIES - 1})
    return {
        "total": len(table) // 8,
        "first200": [digits(k) for k in range(200)],
        "byIndex": {str(k): digits(k) for k in indexes},
    }


def seat_of(path: Path, record: Json) -> int | None:
    """The seat that a place in a record belongs to, None when it concerns the whole table."""
    for name, index in itertools.pairwise(path):
        if isinstance(index, int) and name in _PER_SEAT:
            return index
    if len(path) < 4 or path[2] not in ("results", "probes"):
        return None
    try:
        entry = record["steps"][path[1]][path[2]][path[3]]
        seat = entry["seat"] if path[2] == "results" else entry[0]
    except (KeyError, IndexError, TypeError):
        return None
    return seat if isinstance(seat, int) else None
