"""How each game's actions are written as replies, for the checks of schemas and parsers.

Invariant: a reply written here is what a careful model would send: every field of the schema, nothing
else. A third party's game passes its own writer to `check_game`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from cogeval.core.game import Decision, Json
from cogeval.games.cogchemists.constants import INGREDIENTS, SIGNATURES
from cogeval.games.cogchemists.state import Action
from cogeval.games.cogmud.state import Action as MudAction
from cogeval.games.cogz import reply as cogz_reply
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.state import Action as CogzAction

WriteReply: TypeAlias = Callable[[Decision[Any], Any], Mapping[str, Json]]
"""(decision, legal action) -> the reply object that says it."""


def write_cogchemists_reply(decision: Decision[Action], action: Action) -> Mapping[str, Json]:
    """The action in words: names for indexes, empty text where nothing is named."""
    reply = {
        "action": action.action,
        "a": INGREDIENTS[action.a] if action.a >= 0 else "",
        "b": INGREDIENTS[action.b] if action.b >= 0 else "",
        "say": action.say,
        "notes": action.notes,
    }
    if decision.kind == "market":
        reply["signature"] = SIGNATURES[action.signature] if action.signature >= 0 else ""
        reply["artifact"] = action.artifact
    return reply


def write_cogmud_reply(decision: Decision[MudAction], action: MudAction) -> Mapping[str, Json]:  # noqa: ARG001 - every decision is of one kind
    """The sentence as it is."""
    return {"action": action.sentence, "say": action.say, "notes": action.notes}


def write_cogz_reply(decision: Decision[CogzAction], action: CogzAction) -> Mapping[str, Json]:
    """The tile by its letters, the corner of the first, and the cell."""
    assert isinstance(decision.legal, Swaps), f"expected swaps, got {decision.legal!r}"
    return cogz_reply.write_reply(decision.legal, action)


WRITE_REPLY: Final[Mapping[str, WriteReply]] = {
    "cogchemists": write_cogchemists_reply,
    "cogmud": write_cogmud_reply,
    "cogz": write_cogz_reply,
}
"""Game name -> writer; every game of the table has one."""
