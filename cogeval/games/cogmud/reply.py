"""A model's reply, read as an action (R9).

Invariant: whatever the reply holds, the outcome is an action or an `ActionError` whose hint says what to
write instead. Whether the town can read the sentence is not looked at: that costs a turn, not a fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogeval.core.game import Json
from cogeval.errors import ActionError
from cogeval.games.cogmud.state import Action
from cogeval.games.cogmud.world import NOTES_CAP, SAY_CAP, SENTENCE_CAP
from cogeval.games.league import reply_field

ONE_LINE: Final = str.maketrans("\r\n\t", "   ")
"""What becomes a space (R9.1)."""

_EXAMPLE: Final = 'one plain English sentence such as "I walk to the Guildhall."'


def parse_reply(reply: Mapping[str, object]) -> Action:
    """Reads a reply object as an action.

    Raises:
        ActionError: when it holds no sentence.
    """
    if not isinstance(reply.get("action"), str):
        raise ActionError(f'no action string in the reply: write "action" as {_EXAMPLE}')
    sentence = reply_field(reply, "action", SENTENCE_CAP).translate(ONE_LINE)
    if not sentence:
        raise ActionError(f'"action" is empty: write it as {_EXAMPLE}')
    say = reply_field(reply, "say", SAY_CAP).translate(ONE_LINE)
    return Action(sentence, say, reply_field(reply, "notes", NOTES_CAP).translate(ONE_LINE))


def reply_schema() -> dict[str, Json]:
    """JSON schema of a reply."""
    return {
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "description": f"what you do this turn: {_EXAMPLE}; at most {SENTENCE_CAP} characters",
            },
            "say": {
                "type": "string",
                "description": f"heard by the cogs in your room, at most {SAY_CAP} characters; may be empty",
            },
            "notes": {
                "type": "string",
                "description": f"your own memory, at most {NOTES_CAP} characters; empty keeps the old notes",
            },
        },
        "required": ["action"],
        "additionalProperties": False,
    }
