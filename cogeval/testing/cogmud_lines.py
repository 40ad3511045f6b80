"""What a line of a room's log says, apart from its words: one structure for our lines and recorded ones.

Invariant: a recorded line is read by one or two key words, and by the aliases, keepers, rooms, goods and
numbers in it; a line that cannot be read says nothing, and so agrees with nothing. Must not know rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from cogeval.games.cogmud.state import Line
from cogeval.games.cogmud.world import GOODS, KEEPERS, ROOMS


class Saying(msgspec.Struct, frozen=True):
    """What a line says."""

    kind: str  # as of `Line.kind`; "failed dark" and "failed lit" tell the two places of a failure apart
    cogs: tuple[str, ...]  # aliases, in order
    numbers: tuple[int, ...] = ()  # in order
    item: int = -1  # good
    npc: int = -1  # keeper
    room: int = -1
    text: str = ""  # what was said


# The first kind whose key words a line all holds is its kind, so that the more special ones come first.
_KEY_WORDS: Final = (
    ("waited", "waited"),
    ("bought", "bought"),
    ("sold", "sold"),
    ("took", "picked"),
    ("dropped", "dropped"),
    ("delivered", "delivered"),
    ("surrendered", "handed", "nothing"),
    ("unwanted", "handed", "commission"),
    ("hiring", "offered", "hire"),
    ("accepted", "accepted"),
    ("offered", "offered"),
    ("gave", "gave"),
    ("asked", "asked"),
    ("hired", "hired"),
    ("failed lit", "tried", "watch"),
    ("failed dark", "tried"),
    ("nothing", "found", "nothing"),
    ("robbed", "robbed"),
    ("left", "left"),
)

# Numbers that a kind of line names beside the good's, always; gifts and robberies name what moved.
_NAMES_COIN: Final = frozenset(
    ("bought", "sold", "delivered", "hiring", "offered", "accepted", "hired", "failed lit", "failed dark")
)

_SPOKEN: Final = re.compile(r'(\w+) says: "(.*)"', re.DOTALL)
_GOOD_WORDS: Final = {word: k for k, good in enumerate(GOODS) for word in (good.name, good.plural)}


def saying_of(line: Line) -> Saying:
    """What a line of ours says."""
    kind = f"{line.kind} {line.text}" if line.kind == "failed" else line.kind
    goods = line.item >= 0 and (line.qty > 0 or line.kind not in ("gave", "robbed"))
    numbers: tuple[int, ...] = (line.qty,) if goods else ()
    if kind in _NAMES_COIN or (kind == "gave" and line.coin > 0) or (kind == "robbed" and not goods):
        numbers += (line.coin,)
    return Saying(
        kind,
        (line.who, line.other) if line.other else (line.who,),
        numbers,
        line.item if goods else -1,
        line.npc,
        line.room,
        line.text if line.kind == "said" else "",
    )


def read_saying(text: str, names: Sequence[str]) -> Saying | None:
    """What a recorded line says; None when it cannot be read.

    Args:
        text: the line.
        names: the aliases at the table.
    """
    if spoken := _SPOKEN.fullmatch(text):  # before all else: what is said may hold any words
        who, said = spoken.groups()
        return Saying("said", (who,), text=said) if who in names else None
    npc, text = _place([keeper.name for keeper in KEEPERS], text)
    room, text = _place([room.name for room in ROOMS], text)
    words = re.findall(r"\w+", text)
    kind = next((kind for kind, *keys in _KEY_WORDS if all(key in words for key in keys)), None)
    if kind is None or not words or words[0] not in names:
        return None
    return Saying(
        kind,
        tuple([word for word in words if word in names]),
        tuple([int(word) for word in words if word.isdecimal()]),
        next((_GOOD_WORDS[word] for word in words if word in _GOOD_WORDS), -1),
        npc,
        room,
    )


def _place(known: Sequence[str], text: str) -> tuple[int, str]:
    """The first of some names that a text holds, -1 for none, and the text without it."""
    index = next((k for k, name in enumerate(known) if name in text), -1)
    return index, text if index < 0 else text.replace(known[index], "")
