"""A model's reply, read as an action (R10).

Invariant: whatever the reply holds, the outcome is an action or an `ActionError` whose hint says what to
write instead. Legality is not looked at: a readable action may still be illegal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from cogeval.core.game import Json
from cogeval.errors import ActionError
from cogeval.games.cogchemists.board import ONE_LINE
from cogeval.games.cogchemists.constants import (
    ARTIFACT_PRICES,
    INGREDIENTS,
    LAB,
    NOTES_CAP,
    SAY_CAP,
    SIGNATURES,
    VERBS,
)
from cogeval.games.cogchemists.state import Action
from cogeval.games.league import reply_field

VERB_CAP: Final = 24
INGREDIENT_CAP: Final = 24
SIGNATURE_CAP: Final = 12
ARTIFACT_CAP: Final = 12

_PREFIX_MIN: Final = 3
_NOT_LETTERS: Final = re.compile(r"[^a-z]")
_DIGITS: Final = re.compile(r"[0-9]+")
_SEPARATORS: Final = re.compile(r"[ \-_]+")
_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_LETTERS: Final = tuple(_NOT_LETTERS.sub("", name.lower()) for name in INGREDIENTS)
_MINUSES: Final = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"

_TAKES_A: Final = frozenset(
    ("test_student", "test_self", "transmute", "sell", "publish", "endorse", "debunk")
)
_TAKES_B: Final = frozenset(("test_student", "test_self", "sell", "debunk"))


def parse_reply(phase: str, reply: Mapping[str, object]) -> Action:
    """Reads a reply object as an action of the phase; the first field that fails is the reason.

    Raises:
        ActionError: when it cannot be read.
    """
    verb = _SEPARATORS.sub("_", reply_field(reply, "action", VERB_CAP).translate(_LOWER))
    if not verb:
        raise ActionError(f'no action in the reply: write "action" as one of {_listed(VERBS[phase])}')
    if verb not in VERBS[phase]:
        raise ActionError(f"{verb!r} is no {phase} action: write one of {_listed(VERBS[phase])}")
    a = _ingredient(reply, "a") if verb in _TAKES_A else -1
    b = _ingredient(reply, "b") if verb in _TAKES_B else -1
    signature = _signature(reply) if verb == "publish" else -1
    artifact = _artifact(reply) if verb == "buy" else ""
    say = reply_field(reply, "say", SAY_CAP).translate(ONE_LINE)
    return Action(verb, a, b, signature, artifact, say, reply_field(reply, "notes", NOTES_CAP))


def _ingredient(reply: Mapping[str, object], name: str) -> int:
    """An ingredient by index, full name or a prefix of three letters (R10.3)."""
    text = reply_field(reply, name, INGREDIENT_CAP)
    if _DIGITS.fullmatch(text):
        index = int(text)
        if index < len(INGREDIENTS):
            return index
    letters = _NOT_LETTERS.sub("", text.translate(_LOWER))
    if len(letters) >= _PREFIX_MIN:  # the eight names differ within their first three letters
        for index, full in enumerate(_LETTERS):
            if full.startswith(letters):
                return index
    raise ActionError(
        f"{name}: {text!r} is none of the eight ingredients: write one of {_listed(INGREDIENTS)}"
    )


def _signature(reply: Mapping[str, object]) -> int:
    """A signature: exactly three signs, for red, green and blue (R10.4)."""
    text = reply_field(reply, "signature", SIGNATURE_CAP)
    signs = ["-" if sign in _MINUSES else "+" for sign in text if sign == "+" or sign in _MINUSES]
    if len(signs) != 3:
        raise ActionError(f"signature: {text!r} has not three signs: write red, green and blue, like R+G-B+")
    return sum((sign == "+") << place for sign, place in zip(signs, (2, 1, 0), strict=True))


def _artifact(reply: Mapping[str, object]) -> str:
    """An artifact by its exact name, case-blind (R10.5)."""
    text = reply_field(reply, "artifact", ARTIFACT_CAP).translate(_LOWER)
    if text not in ARTIFACT_PRICES:
        raise ActionError(f"artifact: {text!r} is not for sale: write one of {_listed(ARTIFACT_PRICES)}")
    return text


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def reply_schema(phase: str, legal: Iterable[Action]) -> dict[str, Json]:
    """JSON schema of a reply; verbs without a legal move are left out."""
    possible = {action.action for action in legal}
    verbs = [verb for verb in VERBS[phase] if verb in possible]
    ingredient = {"type": "string", "enum": ["", *INGREDIENTS]}
    properties: dict[str, Json] = {
        "action": {"type": "string", "enum": verbs},
        "a": {**ingredient, "description": "ingredient, or empty when the action takes none"},
        "b": {**ingredient, "description": "second ingredient, or empty when the action takes none"},
    }
    if phase != LAB:
        properties["signature"] = {
            "type": "string",
            "enum": ["", *SIGNATURES],
            "description": "publish only, else empty",
        }
        properties["artifact"] = {
            "type": "string",
            "enum": ["", *ARTIFACT_PRICES],
            "description": "buy only, else empty",
        }
    properties["say"] = {"type": "string", "description": f"heard by all, at most {SAY_CAP} characters"}
    properties["notes"] = {
        "type": "string",
        "description": f"your own memory, at most {NOTES_CAP} characters; empty keeps the old notes",
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
