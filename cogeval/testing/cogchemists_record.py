"""One Cogchemists episode in the recorded trace format.

Invariant: one builder serves replay and writing, so that a trace of ours and a recorded one have the
same fields by construction. Must not know files or what is compared with what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from cogeval.core.game import Json, Seat, Step
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.constants import SIGNATURES
from cogeval.games.cogchemists.deduction import Fact, MixFull, MixSign, knowledge_of
from cogeval.games.cogchemists.state import (
    Act,
    Action,
    Event,
    Exhibition,
    Parameters,
    RoundOpened,
    State,
    event_kind,
)
from cogeval.testing.compare import Given, Text

SEATS: Final = range(4)

Decide = Callable[[int, Seat, State], Action]
"""(phase number, seat, open state) -> what the seat does."""

Probe = tuple[Seat, Action]


class Script(msgspec.Struct, frozen=True):
    """The inputs of one episode."""

    seed: int
    parameters: Parameters
    policies: tuple[str, ...]  # per seat; the names of baselines are binding
    deadline_after_phases: int  # -1: the clock never ran out
    decide: Decide
    probes: Callable[[int, State], Sequence[Probe]]  # what to ask about legality in a phase


def build_episode(script: Script) -> dict[str, Json]:
    """Plays an episode and gives it in the trace format, inputs marked.

    Args:
        script: the inputs; `decide` is asked for every seat, those of baselines too.
    """
    game = Cogchemists(**msgspec.structs.asdict(script.parameters))
    opening = state = game.initial_state(script.seed)
    events: list[Event] = list(game.opening_events(opening))
    steps: list[Json] = []
    deadline: dict[str, Json] = {}
    royalties = _royalties(events)
    last: Step[State] | None = None
    while game.decisions(state):
        if len(steps) == script.deadline_after_phases:
            deadline = {"stateAtDeadline": _columns(state)}
            last = game.stop(state)
        else:
            record, last = _step(game, script, state, len(steps))
            steps.append(record | {"royalties": royalties})
        events += last.events
        royalties = _royalties(last.events)
        state = last.next
    assert last is not None  # an episode opens with a phase
    exhibition = next(e for e in last.events if isinstance(e, Exhibition))
    config = msgspec.structs.asdict(script.parameters)
    return {
        "game": "cogchemists",
        "seed": Given(script.seed),
        "config": {key: Given(value) for key, value in config.items()},
        "deadlineAfterPhases": Given(script.deadline_after_phases),
        "policies": Given(list(script.policies)),
        "names": list(opening.names),
        "setup": {
            "chemistry": list(opening.chemistry),
            "demands": list(opening.demands),
            "hands": _lists(opening.hands),
        },
        "steps": steps,
        **deadline,
        "exhibition": _exhibition(exhibition),
        "end": {"round": state.rounds_played, "text": state.reason},
        "eventKinds": [event_kind(event) for event in events],
        "final": _columns(state),
        "results": _results(game, state),
    }


def _royalties(events: Iterable[Event]) -> list[int] | None:
    """What the round paid that these events opened; None when they opened none."""
    return next((list(event.royalties) for event in events if isinstance(event, RoundOpened)), None)


def _step(game: Cogchemists, script: Script, state: State, phase: int) -> tuple[dict[str, Json], Step[State]]:
    """One phase: what was open, what was decided, and what came of it."""
    played = {seat: script.decide(phase, seat, state) for seat in SEATS}
    step = game.step(state, played)
    legal = [list(decision.legal) for decision in game.decisions(state)]
    record = {
        "k": phase,
        "round": state.round,
        "phase": state.phase,
        "demand": state.demand,
        "initiative": list(state.initiative),
        "open": _columns(state)
        | {
            "grids": [_lists(known.grid) for known in state.known],
            "chemistries": [known.count for known in state.known],
            "heard": list(state.heard),
        },
        "legal": [[_fields(action) for action in actions] for actions in legal],
        "legalText": [[Text(_as_text(action)) for action in actions] for actions in legal],
        "probes": [
            [seat, *_fields(action), game.why_illegal(state, seat, action) or ""]
            for seat, action in script.probes(phase, state)
        ],
        "decisions": [_decision(game, script, state, seat, played[seat]) for seat in SEATS],
        "results": [_result(act, script, step.resolved) for act in step.events if isinstance(act, Act)],
        "after": _after(state, step.resolved),
    }
    return record, step


def _decision(game: Cogchemists, script: Script, state: State, seat: Seat, played: Action) -> dict[str, Json]:
    """A decision: an input, or for a baseline's seat what our baseline decides."""
    values: dict[str, Json] = msgspec.structs.asdict(played)
    if script.policies[seat] in game.spec.baselines:
        own = game.baseline(script.policies[seat], state, seat, script.seed)
        decision: dict[str, Json] = msgspec.structs.asdict(own)
    else:
        decision = {key: Given(value) for key, value in values.items()}
    return decision | {"legalAtOpen": game.why_illegal(state, seat, played) is None}


def _result(act: Act, script: Script, resolved: State) -> dict[str, Json]:
    return {
        "seat": act.seat,
        "action": act.action,
        "a": act.a,
        "b": act.b,
        "signature": act.signature,
        "artifact": act.artifact,
        "outcome": act.outcome,
        "potion": act.potion,
        "secret": act.secret,
        "draws": list(act.draws),
        "discarded": list(act.discarded),
        "coinDelta": act.coin_delta,
        "repDelta": act.rep_delta,
        "target": act.target,
        "scripted": script.policies[act.seat] in Cogchemists.spec.baselines,
        "say": act.say,
        "notes": resolved.notes[act.seat],
    }


def _after(state: State, resolved: State) -> dict[str, Json]:
    """The resolved state; grids are recomputed from the facts known now, as the format wants."""
    known = [knowledge_of(resolved.public_facts, private) for private in resolved.private_facts]
    return _columns(resolved) | {
        "seals": [
            {
                "ingredient": seal.ingredient,
                "claim": seal.claim,
                "author": seal.author,
                "round": seal.round,
                "endorsers": list(seal.endorsers),
                "status": seal.status,
                "vindications": seal.vindications,
                "burnedBy": seal.burned_by,
                "roundBurned": seal.round_burned,
            }
            for seal in resolved.seals
        ],
        "say": list(resolved.say),
        "notes": list(resolved.notes),
        "newPublicFacts": [_fact(fact) for fact in resolved.public_facts[len(state.public_facts) :]],
        "newPrivateFacts": [
            [_fact(fact) for fact in now[len(before) :]]
            for before, now in zip(state.private_facts, resolved.private_facts, strict=True)
        ],
        "grids": [_lists(each.grid) for each in known],
        "chemistries": [each.count for each in known],
        "scores": list(resolved.scores),
        "published": [_done(resolved, seat, "publish") for seat in SEATS],
        "endorsed": [_done(resolved, seat, "endorse") for seat in SEATS],
        "roundsPlayed": resolved.rounds_played,
    }


def _done(state: State, seat: Seat, verb: str) -> list[int]:
    """The ingredients that a seat published or endorsed so far, in order."""
    return [a.a for a in state.record if a.seat == seat and a.action == verb and a.outcome == "ok"]


def _fact(fact: Fact) -> dict[str, Json]:
    if isinstance(fact, MixFull):
        return {"kind": "mixFull", "a": fact.a, "b": fact.b, "potion": fact.potion}
    if isinstance(fact, MixSign):
        return {"kind": "mixSign", "a": fact.a, "b": fact.b, "class": fact.sign}
    return {"kind": "notSig", "x": fact.a, "sig": fact.signature, "sigText": SIGNATURES[fact.signature]}


def _exhibition(event: Exhibition) -> dict[str, Json]:
    return {
        "round": event.round,
        "verdicts": [
            {
                "ingredient": verdict.ingredient,
                "claim": verdict.claim,
                "author": verdict.author,
                "endorsers": list(verdict.endorsers),
                "true": verdict.true,
            }
            for verdict in event.verdicts
        ],
        "repDeltas": list(event.rep_deltas),
        "chemistry": list(event.chemistry),
    }


def _results(game: Cogchemists, state: State) -> dict[str, Json]:
    """The platform's result object; it names policies by their place, P1 to P4."""
    results = game.results(state)

    def column(name: str) -> list[int]:
        return [int(seat.statistics[name]) for seat in results.seats]

    return {
        "names": [f"P{seat + 1}" for seat in SEATS],
        "scores": [seat.score for seat in results.seats],
        "reputation": column("reputation"),
        "coin": column("coin"),
        "published": column("published"),
        "trueTheories": column("true_theories"),
        "falseTheories": column("false_theories"),
        "burned": column("burned"),
        "debunks": column("debunks"),
        "rounds": state.rounds_played,
        "maxRounds": game.parameters["rounds"],
        "reason": results.reason,
    }


def _columns(state: State) -> dict[str, Json]:
    return {
        "coin": list(state.coin),
        "reputation": list(state.reputation),
        "hands": _lists(state.hands),
        "mortar": list(state.mortar),
        "press": list(state.press),
    }


def _lists(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(row) for row in rows]


def _fields(action: Action) -> list[Json]:
    return [action.action, action.a, action.b, action.signature, action.artifact]


def _as_text(action: Action) -> str:
    return " ".join(str(field) for field in _fields(action) if field not in (-1, ""))
