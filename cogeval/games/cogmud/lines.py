"""The lines of a room's log in words (R11.1).

Invariant: a line is rendered from its own fields alone, in one template a kind; `KINDS` are the kinds
that rules may write and RULES.md lists. Must not know states: who may hear a line is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cogeval.games.cogmud.state import Line
from cogeval.games.cogmud.words import QUOTES
from cogeval.games.cogmud.world import GOODS, KEEPERS, LOG_LINE_CAP, ROOMS

TEMPLATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "said": '{who} speaks up: "{text}"',
        "left": "{who} walks off towards {room}.",
        "waited": "{who} stands about.",
        "bought": "{who} pays {npc} {coin} coin and carries off {what}.",
        "sold": "{npc} counts out {coin} coin to {who} and shelves {what}.",
        "took": "{who} gathers {what} off the ground.",
        "dropped": "{who} sets down {what}.",
        "delivered": "{who} settles with {npc}: {what}, worth {coin} points.",
        "surrendered": "{who} leaves {what} with {npc}, who owes nothing for it.",
        "unwanted": "{who} presses {what} on {npc}, and no commission asked for it.",
        "gave": "{who} makes {other} a present of {what}.",
        "asked": "{who} has a quiet word with {npc}.",
        "offered": "{who} names {other} a price: {what} against {coin} coin.",
        "hiring": "{who} holds out {coin} coin to {other} for a spell of service.",
        "accepted": "{who} strikes the bargain with {other}: {what} against {coin} coin.",
        "hired": "{who} enters the service of {other} for {coin} turns.",
        "robbed": "{who} makes away with {what} of {other}'s.",
        "failed": "{who} is caught with a hand on {other}, {place}, and pays {coin} coin in amends.",
        "nothing": "{who} turns out the pockets of {other} and finds them bare.",
    }
)
"""The template of each kind of line."""

KINDS: Final = tuple(TEMPLATES)

PLACES: Final[Mapping[str, str]] = MappingProxyType({"dark": "dark as it is", "lit": "in plain view"})
"""Where a robbery failed, by the line's text."""


def units(good: int, qty: int) -> str:
    """A number of units of a good in words: "1 lamp", "2 lamps"."""
    return f"{qty} {GOODS[good].name if qty == 1 else GOODS[good].plural}"


_QUOTES: Final = str.maketrans(dict.fromkeys(QUOTES, "'"))


def quotable(text: str) -> str:
    """What a cog said, on one line and without the marks that could end its quotation."""
    return " ".join(text.splitlines()).translate(_QUOTES)


def render(line: Line) -> str:
    """The line in words, cut to the length that a log keeps."""
    parts = [units(line.item, line.qty)] if line.item >= 0 else []
    if line.coin and line.kind in ("gave", "robbed"):
        parts.append(f"{line.coin} coin")
    text = TEMPLATES[line.kind].format(
        who=line.who,
        other=line.other,
        npc=KEEPERS[line.npc].name if line.npc >= 0 else "",
        room=ROOMS[line.room].name if line.room >= 0 else "",
        what=" and ".join(parts) or "nothing",
        coin=line.coin,
        place=PLACES.get(line.text, ""),
        text=quotable(line.text),
    )
    return text[:LOG_LINE_CAP]
