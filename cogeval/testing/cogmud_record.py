"""One Cogmud episode in the recorded trace format.

Invariant: one builder serves replay and writing, so that a trace of ours and a recorded one have the
same fields by construction. Must not know files, or what other words mean; the script tells it that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from cogeval.core.game import Json, Seat, Step
from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.lines import render
from cogeval.games.cogmud.market import cheapest
from cogeval.games.cogmud.prose import outcome_text
from cogeval.games.cogmud.state import (
    Act,
    Action,
    Event,
    Intent,
    Line,
    Offer,
    Parameters,
    State,
    event_kind,
)
from cogeval.games.cogmud.turn import stored, understood
from cogeval.games.cogmud.world import COMMISSION_UNITS, KEEPERS, ROOMS, SEATS, SENTENCE_CAP
from cogeval.testing.cogmud_lines import read_saying, saying_of
from cogeval.testing.cogmud_patch import Patch, patch_inputs, patched
from cogeval.testing.compare import Given, Worded
from cogeval.testing.trace_cogmud_parse import intent_record

Decide = Callable[[int, Seat, State], Action]
"""(turn, seat, open state) -> what the seat does."""

SameOutcome = Callable[[str, int, str], bool]
"""(outcome word, room where it happened, another text) -> whether the text tells that outcome."""


def _own_words_only(outcome: str, room: int, text: str) -> bool:  # noqa: ARG001 - a `SameOutcome`
    return False


class Script(msgspec.Struct, frozen=True):
    """The inputs of one episode."""

    seed: int
    parameters: Parameters
    policies: tuple[str, ...]  # per seat; the names of baselines are binding where nothing was patched
    deadline_after_turns: int  # -1: the clock never ran out
    decide: Decide
    patch: Callable[[int, State], Patch | None] | None = None  # None: steps have no such field
    same_outcome: SameOutcome = _own_words_only


def build_episode(script: Script) -> dict[str, Json]:
    """Plays an episode and gives it in the trace format, inputs marked.

    Args:
        script: the inputs; `decide` is asked for every seat, those of baselines too.
    """
    game = Cogmud(**msgspec.structs.asdict(script.parameters))
    opening = state = game.initial_state(script.seed)
    rooms = opening.room  # where the cogs stood when they last acted
    events: list[Event] = list(game.opening_events(opening))
    steps: list[Json] = []
    while game.decisions(state):
        if len(steps) == script.deadline_after_turns:
            last = game.stop(state)
        else:
            patch = script.patch(len(steps), state) if script.patch else None
            state = patched(state, patch) if patch else state
            rooms = state.room
            record, last = _step(game, script, state, patch)
            steps.append(record)
        events += last.events
        state = last.next
    config = msgspec.structs.asdict(script.parameters)
    return {
        "game": "cogmud",
        "seed": Given(script.seed),
        "config": {key: Given(value) for key, value in config.items()},
        "deadlineAfterTurns": Given(script.deadline_after_turns),
        "policies": Given(list(script.policies)),
        "names": list(opening.names),
        "setup": {
            "startRooms": list(opening.room),
            "commissions": [[[good, COMMISSION_UNITS] for good in goods] for goods in opening.commissions],
            "floors": _lists(opening.floor),
            "state": _state(opening, opening.room, script),
        },
        "steps": steps,
        "eventKinds": [event_kind(event) for event in events],
        "end": {"turn": state.turns_played, "text": state.reason},
        "final": _state(state, rooms, script),
        "results": _results(game, state),
    }


def _step(
    game: Cogmud, script: Script, state: State, patch: Patch | None
) -> tuple[dict[str, Json], Step[State]]:
    """One turn: what was decided on the open state, what it meant, and what came of it."""
    played = [script.decide(state.turn, seat, state) for seat in range(SEATS)]
    step = game.step(state, dict(enumerate(played)))
    # A driver's sentence may stand in for a baseline's in a turn that it has patched.
    decided = [_decision(game, script, state, seat, played[seat], bool(patch)) for seat in range(SEATS)]
    sentences, says, notes = zip(*decided, strict=True)
    record: dict[str, Json] = {"patch": patch_inputs(patch)} if script.patch else {}
    record |= {
        "turn": state.turn,
        "initiative": list(state.initiative),
        "sentences": list(sentences),
        "says": list(says),
        "notes": list(notes),
        "intents": [
            intent_record(_understood(state, seat, action.sentence), state.room[seat])
            for seat, action in enumerate(played)
        ],
        "events": [_event(act, script) for act in step.events if isinstance(act, Act)],
        "after": _state(step.next, state.room, script),
    }
    return record, step


def _understood(state: State, seat: Seat, sentence: str) -> Intent:
    return understood(state, seat, stored(sentence, SENTENCE_CAP))


def _decision(
    game: Cogmud, script: Script, state: State, seat: Seat, played: Action, patched: bool
) -> tuple[Json, Json, Json]:
    """Sentence, say and notes: inputs, or for a baseline's seat what our baseline decides."""
    if patched or script.policies[seat] not in game.spec.baselines:
        return Given(played.sentence), Given(played.say), Given(played.notes)
    own = game.baseline(script.policies[seat], state, seat, script.seed)
    meant = _understood(state, seat, own.sentence)

    def means_it(sentence: str) -> bool:
        return _understood(state, seat, sentence) == meant

    return Worded(own.sentence, means_it), own.say, own.notes


def _event(act: Act, script: Script) -> dict[str, Json]:
    return {
        "seat": act.seat,
        "order": act.order,
        "intent": act.intent,
        "room": act.room,
        "toRoom": act.to_room,
        "item": act.item,
        "qty": act.qty,
        "npc": act.npc,
        "other": act.other,
        "coin": act.coin,
        "reason": act.reason,
        "salience": act.salience,
        "sentence": act.sentence,
        "say": act.say,
        "notes": act.notes,
        "scripted": script.policies[act.seat] in Cogmud.spec.baselines,
    }


def _state(state: State, rooms: Sequence[int], script: Script) -> dict[str, Json]:
    """A full state object; `rooms` are where the cogs stood when their last outcomes came about."""
    return {
        "turn": state.turn,
        "turnsPlayed": state.turns_played,
        "phase": "done" if state.reason else "turn",
        "done": bool(state.reason),
        "cogs": [_cog(state, seat) for seat in range(SEATS)],
        "shops": [{"stock": list(state.stock[k]), "coin": state.till[k]} for k in range(len(KEEPERS))],
        "floors": _lists(state.floor),
        "offers": [_offer(offer) for offer in state.offers],
        "heard": _said(state.heard, state.names),
        "roomLog": _said(state.room_log, state.names),
        "lastOutcome": [
            _outcome(word, room, script) for word, room in zip(state.outcome, rooms, strict=True)
        ],
        "lastSentence": list(state.sentence),
        "hint": list(state.hint),
        "cheapest": [_lists(cheapest(state, seat)) if state.hint[seat] else [] for seat in range(SEATS)],
        "notes": list(state.notes),
        "wealth": list(state.wealth),
        "questPoints": list(state.points),
        "scores": list(state.scores),
    }


def _cog(state: State, seat: Seat) -> dict[str, Json]:
    return {
        "room": state.room[seat],
        "prevRoom": state.prev_room[seat],
        "coin": state.coin[seat],
        "items": list(state.pack[seat]),
        "delivered": list(state.delivered[seat]),
        "retainerOf": state.employer[seat],
        "retainerTurns": state.bond[seat],
        "robberies": state.robberies[seat],
        "robbed": state.robbed[seat],
    }


def _offer(offer: Offer) -> dict[str, Json]:
    return {
        "kind": offer.kind,
        "from": offer.sender,
        "to": offer.to,
        "item": offer.item,
        "qty": offer.qty,
        "coin": offer.coin,
        "postedTurn": offer.posted,
    }


def _said(rooms: Sequence[Sequence[Line]], names: Sequence[str]) -> list[list[Json]]:
    """The lines of each room, to be compared by what they say."""
    return [[Worded(render(line), functools.partial(_says, line, names)) for line in log] for log in rooms]


def _says(line: Line, names: Sequence[str], text: str) -> bool:
    return read_saying(text, names) == saying_of(line)


def _outcome(word: str, room: int, script: Script) -> Json:
    if not word:
        return ""
    return Worded(outcome_text(word, ROOMS[room].name), functools.partial(script.same_outcome, word, room))


def _results(game: Cogmud, state: State) -> dict[str, Json]:
    """The platform's result object; it names policies by their place, P1 to P6."""
    results = game.results(state)

    def column(name: str) -> list[int]:
        return [int(seat.statistics[name]) for seat in results.seats]

    return {
        "names": [f"P{seat + 1}" for seat in range(SEATS)],
        "scores": [seat.score for seat in results.seats],
        "coin": column("coin"),
        "wealth": column("wealth"),
        "questPoints": column("quest_points"),
        "delivered": column("delivered"),
        "robberies": column("robberies"),
        "robbed": column("robbed"),
        "turns": results.phases,
        "maxTurns": game.parameters["turns"],
        "reason": results.reason,
    }


def _lists(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(row) for row in rows]
