"""The kinds of Cogmud trace records with rules in them: whole episodes, and replies.

Invariant: a record is rebuilt from its own inputs only (seed, configuration, policies, sentences,
patches) through the public game API; what is compared is everything else. The wording of lines and
outcomes is each writer's own, and compared by what it says.
"""

from __future__ import annotations

import itertools
from typing import Final

import msgspec

from cogeval.core.game import Json, Seat
from cogeval.errors import ActionError
from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.prose import outcome_text
from cogeval.games.cogmud.state import Action, Parameters, State
from cogeval.games.cogmud.turn import OUTCOMES, stored
from cogeval.games.cogmud.world import ROOMS, SAY_CAP, SEATS
from cogeval.testing.cogmud_patch import Patch, read_patch
from cogeval.testing.cogmud_record import SameOutcome, Script, build_episode
from cogeval.testing.compare import Given, Path, Text
from cogeval.testing.trace_inputs import BadInput, take

_PER_SEAT: Final = frozenset(
    (
        *("names", "policies", "startRooms", "commissions", "sentences", "says", "notes", "intents", "cogs"),
        *("lastOutcome", "lastSentence", "hint", "cheapest", "wealth", "questPoints", "scores"),
        *("coin", "delivered", "robberies", "robbed"),
    )
)


def is_episode(record: Json) -> bool:
    """True for a whole episode of this game."""
    return isinstance(record, dict) and (
        record.get("game") == "cogmud" or ("game" not in record and "deadlineAfterTurns" in record)
    )


def rebuild_episode(record: Json) -> Json:
    """The record as our rules make it from its inputs.

    Raises:
        BadInput: when an input is missing or of the wrong type.
    """
    steps = take(record, ("steps",), list)

    def decide(turn: int, seat: Seat, _: State) -> Action:
        sentence, say, notes = (
            take(record, ("steps", turn, key, seat), str) for key in ("sentences", "says", "notes")
        )
        return Action(sentence, say, notes)

    def patch(turn: int, _: State) -> Patch | None:
        path = ("steps", turn, "patch")
        step = take(record, path[:-1], dict)
        return None if step.get("patch", path) is None else read_patch(record, path)

    ours = build_episode(
        Script(
            seed=take(record, ("seed",), int),
            parameters=Parameters(
                turns=take(record, ("config", "turns"), int),
                speech=take(record, ("config", "speech"), bool),
                thievery=take(record, ("config", "thievery"), bool),
            ),
            policies=tuple(take(record, ("policies", seat), str) for seat in range(SEATS)),
            deadline_after_turns=take(record, ("deadlineAfterTurns",), int),
            decide=decide,
            patch=patch if any(isinstance(step, dict) and "patch" in step for step in steps) else None,
            same_outcome=_learned_outcomes(record),
        )
    )
    _allow_spoken_as_say(record, ours)
    return ours


def _learned_outcomes(record: Json) -> SameOutcome:
    """Learns from a record's own events how it tells each outcome.

    A text tells an outcome when the record first told it with that text, and no other before with it;
    rooms apart. A record in our own words, golden traces for one, is held to them.
    """
    texts: dict[str, str] = {}
    words: dict[str, str] = {}
    ours = False
    for word, room, text in _told_outcomes(record):
        ours = ours or text == outcome_text(word, ROOMS[room].name)
        text = _without_room(text, room)
        texts.setdefault(word, text)
        words.setdefault(text, word)

    def same(word: str, room: int, text: str) -> bool:
        text = _without_room(text, room)
        return not ours and texts.get(word) == text and words.get(text) == word

    return same


def _told_outcomes(record: Json) -> list[tuple[str, int, str]]:
    """(outcome word, room, text) of every act of a record; what is ill-typed is found by comparing."""
    told = []
    for step in record["steps"]:
        try:
            for event in step["events"]:
                text, room = step["after"]["lastOutcome"][event["seat"]], event["room"]
                if isinstance(text, str) and room in range(len(ROOMS)) and event["reason"] in OUTCOMES:
                    told.append((event["reason"], int(room), text))
        except (KeyError, IndexError, TypeError):
            continue
    return told


def _without_room(text: str, room: int) -> str:
    return text.replace(ROOMS[room].name, "{room}")


def _allow_spoken_as_say(record: Json, ours: dict[str, Json]) -> None:
    """Takes over a recorded version gap: a later reference has what a speech act speaks as its event's say.

    Either pair of say and salience is right, and nothing else may differ.
    """
    for theirs, step in zip(record["steps"], ours["steps"], strict=False):
        acts = theirs.get("events")
        for act, event in zip(acts if isinstance(acts, list) else (), step["events"], strict=False):
            if event["intent"] != "say" or not isinstance(act, dict):
                continue
            spoken = stored(step["intents"][event["seat"]]["spoken"], SAY_CAP)
            later = {"say": spoken, "salience": 30 if len(spoken) > 40 else 20}
            if {key: act.get(key) for key in later} == later:
                event |= later


def is_reply(record: Json) -> bool:
    """True for a model's reply to this game: it has no phase, unlike the other game's."""
    return isinstance(record, dict) and "payload" in record and not {"game", "phase"} & set(record)


def rebuild_reply(record: Json) -> Json:
    """The record as our reading of the reply makes it."""
    payload = record["payload"]
    ours: dict[str, Json] = {"payload": Given(payload)}
    if not isinstance(payload, dict):  # a game is asked about objects only; a seat refuses the rest
        return ours | {"ok": False, "error": Text("expected a JSON object as the reply")}
    try:
        action = Cogmud().parse_reply(Cogmud().initial_state(0), 0, payload)
    except ActionError as error:
        return ours | {"ok": False, "error": Text(error.hint)}
    return ours | {"ok": True, "decision": msgspec.structs.asdict(action)}


def seat_of(path: Path, record: Json) -> int | None:
    """The seat that a place in a record belongs to, None when it concerns the whole town."""
    for place in (("events",), ("patch", "cogs")):  # their entries name the seat
        if path[2 : 2 + len(place)] == place:
            return _named_seat(record, path[: 3 + len(place)])
    if "shops" in path:
        return None
    for name, index in itertools.pairwise(path):
        if isinstance(index, int) and name in _PER_SEAT:
            return index
    return None


def _named_seat(record: Json, path: Path) -> int | None:
    try:
        return take(record, (*path, "seat"), int)
    except BadInput:
        return None
