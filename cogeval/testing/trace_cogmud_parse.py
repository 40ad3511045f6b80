"""The kinds of trace records about how Cogmud reads: sentences with their meaning, and tables of characters.

Invariant: a case is rebuilt from its context and its raw sentence only, the tables from nothing.
"""

from __future__ import annotations

from cogeval.core.game import Json
from cogeval.games.cogmud.grammar import parse
from cogeval.games.cogmud.letters import letter_ranges, small_forms
from cogeval.games.cogmud.state import Intent
from cogeval.games.cogmud.words import lifted, words
from cogeval.games.cogmud.world import ROOMS, SEATS
from cogeval.games.league import BLANKS, trimmed
from cogeval.testing.compare import Given, Path
from cogeval.testing.trace_inputs import BadInput, take


def is_case(record: Json) -> bool:
    """True for a sentence with its meaning."""
    return isinstance(record, dict) and "sentence" in record and "context" in record


def rebuild_case(record: Json) -> Json:
    """The record as our grammar reads its sentence.

    Raises:
        BadInput: when an input is missing or of the wrong type.
    """
    context, sentence = take(record, ("context",), dict), take(record, ("sentence",), str)
    seat = _index(record, ("context", "seat"), SEATS)
    room = _index(record, ("context", "rooms", seat), len(ROOMS))
    names = [take(record, ("context", "names", i), str) for i in range(SEATS)]
    rest, _ = lifted(sentence)
    return {
        "context": Given(context),
        "sentence": Given(sentence),
        "rest": rest,
        "tokens": words(rest),
        "intent": intent_record(parse(sentence, tuple(names), seat, room, _senders(record, seat)), room),
    }


def intent_record(intent: Intent, room: int) -> dict[str, Json]:
    """An intent as traces have it.

    Args:
        intent: any.
        room: where the speaker stands.
    """
    return {
        "kind": intent.kind,
        "room": room,
        "item": intent.item,
        "qty": intent.qty,
        "npc": intent.npc,
        "other": intent.other,
        "coin": intent.coin,
        "toRoom": intent.to_room,
        "reason": intent.reason,
        "spoken": intent.spoken,
    }


def _senders(record: Json, seat: int) -> tuple[int, ...]:
    """The seats whose offers to the speaker were posted last turn."""
    last_turn = take(record, ("context", "turn"), int) - 1
    senders = []
    for i in range(len(take(record, ("context", "offers"), list))):
        path = ("context", "offers", i)
        if take(record, (*path, "to"), int) == seat and take(record, (*path, "postedTurn"), int) == last_turn:
            senders.append(_index(record, (*path, "from"), SEATS))
    return tuple(senders)


def _index(record: Json, path: Path, limit: int) -> int:
    value = take(record, path, int)
    if value not in range(limit):
        raise BadInput(path, f"0..{limit - 1}", str(value))
    return value


def seat_of(_: Path, record: Json) -> int | None:
    """The seat that speaks."""
    try:
        seat = record["context"]["seat"]
    except (KeyError, TypeError):
        return None
    return seat if isinstance(seat, int) else None


def is_table(record: Json) -> bool:
    """True for the tables of characters."""
    return isinstance(record, dict) and "isAlpha" in record


def rebuild_table(_: Json) -> Json:
    """The tables as our letters and our trimming have them."""
    plane = [chr(code) for code in range(0x1_0000)]
    return {
        "isAlpha": [[start, end - 1] for start, end in letter_ranges()],
        "toLower": [list(pair) for pair in small_forms()],
        "isWhiteSpace": sorted(map(ord, BLANKS)),
        "stripLeading": [ord(blank) for blank in plane if trimmed(f"{blank}x") == "x"],
        "stripTrailing": [ord(blank) for blank in plane if trimmed(f"x{blank}") == "x"],
    }
