"""The figures and spellings of Cogchemists, and the one table of its chemistry.

Invariant: everything here is fixed by the rules (RULES.md); nothing depends on an episode.
"""

from __future__ import annotations

from typing import Final

SEATS: Final = 4
ROUNDS_MIN: Final = 3
ROUNDS_MAX: Final = 10
NUM_INGREDIENTS: Final = 8

START_COIN: Final = 4
START_REPUTATION: Final = 10
START_CARDS: Final = 3
HAND_CAP: Final = 6
FORAGE_CARDS: Final = 2
COIN_WEIGHT: Final = 0.2  # of one coin in the score

SAY_CAP: Final = 140  # Unicode code points
NOTES_CAP: Final = 600

LAB: Final = "lab"
MARKET: Final = "market"

LAB_VERBS: Final = ("forage", "test_student", "test_self", "transmute", "pass")
MARKET_VERBS: Final = ("sell", "publish", "endorse", "debunk", "buy", "pass")
VERBS: Final = {LAB: LAB_VERBS, MARKET: MARKET_VERBS}
ARTIFACT_PRICES: Final = {"mortar": 4, "press": 5}  # coin

INGREDIENTS: Final = (
    "Nightcap",
    "Emberroot",
    "Fen Lily",
    "Widow's Salt",
    "Copper Fern",
    "Gravebloom",
    "Sunmoss",
    "Rime Thistle",
)
SIGNATURES: Final = tuple(
    "".join(colour + "-+"[index >> bit & 1] for colour, bit in (("R", 2), ("G", 1), ("B", 0)))
    for index in range(NUM_INGREDIENTS)
)

POTIONS: Final = ("RED+", "RED-", "GREEN+", "GREEN-", "BLUE+", "BLUE-", "MUD")
NUM_DEMANDS: Final = 6  # MUD is never in demand
SIGN_CLASSES: Final = ("positive", "negative", "mud")
SIGN_CLASS: Final = {
    potion: "mud" if potion == "MUD" else "positive" if potion[-1] == "+" else "negative"
    for potion in POTIONS
}


def _mix(x: int, y: int) -> str:
    """The potion of two signatures (R2.1, R2.2)."""
    differing = x ^ y
    if differing.bit_count() != 1:
        return "MUD"
    colour = {4: "RED", 2: "GREEN", 1: "BLUE"}[differing]
    shared = (x & ~differing & 7).bit_count()  # of the two aspects they share: how many point up
    return colour + ("-" if shared == 1 else "+")


MIX: Final = tuple(tuple(_mix(x, y) for y in range(NUM_INGREDIENTS)) for x in range(NUM_INGREDIENTS))
"""MIX[x][y]: the potion of signatures x and y, each 0..7."""
