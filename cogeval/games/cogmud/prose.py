"""The town in words: what its rooms look like, what became of a sentence, and sentences that it reads.

Invariant: wording only. Nothing here changes what the rules do; a change of wording changes what model
seats decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ROOM_TEXTS: Final = (
    "Stalls lean on a stone well whose rope has worn four grooves into the rim. Every road in town"
    " seems to have been laid by somebody on the way to here.",
    "Steam from a dented copper still beads on the rafters, and the lamps for sale hang lit over the bar.",
    "Frames of stretched hide line both sides like doors that lead nowhere. The brine pits are covered;"
    " the smell is not.",
    "Sparks skip across a floor of black sand towards kegs of nails and coils of fresh rope. The hammer"
    " never quite stops.",
    "Crates stand in rows as high as a crane, stencilled with the marks of firms long gone. Things slide"
    " off the top and are not missed.",
    "Tarred hulls knock against the piles somewhere below the fog. There is one lantern, on the"
    " dockmaster's desk, and it lights the ledger only.",
    "The walls come so close that two carts could not agree to pass, and no window opens on this side."
    " Footsteps stop when you do.",
    "Brass votive gears turn in the draught, each wound by a different hand. It is quiet enough to count"
    " coins by ear.",
    "Chalked commissions cover a slate wall from floor to gallery, struck through as they are settled."
    " A bell rings for every one completed.",
)
"""The look of each room."""

OUTCOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ok": "Done: the one thing that its first verb says, as far as coin, goods and free slots go.",
        "waited": "You let the turn go by.",
        "unparsed": "There was not a single word in it that the town could hear. The turn is lost.",
        "no_verb": "No word in it is an action that the town knows. The turn is lost: begin with a verb"
        " from the phrasebook.",
        "no_target": "It names an action, but not what or whom to do it to (or nothing that can be handed"
        " over). The turn is lost: name the good, room, keeper or cog.",
        "ambiguous_target": "It names two different things where one is needed, and the town would not"
        " guess. The turn is lost: name one.",
        "no_such_exit": "No way leads there directly from {room}. Take one exit at a time.",
        "no_such_item": "None of that is lying on the ground in {room}.",
        "not_carrying": "You carry none of that.",
        "carry_limit": "There is no room in the pack that would have to hold it: eight goods is the limit.",
        "no_npc_here": "That needs a shopkeeper who is here, in {room}, and the one you meant is not.",
        "not_wanted": "The shopkeeper here does not trade in that good, and buys none.",
        "out_of_stock": "The shopkeeper here has none of that to sell.",
        "cannot_afford": "Your coin does not stretch to even one (or to any fee at all).",
        "npc_broke": "The shopkeeper's till cannot pay for a single unit.",
        "no_matching_commission": "Handed over and gone: no open commission of yours was filled by it.",
        "no_such_cog": "It names no cog of this town (keepers are no cogs: buy from them, sell to them). The"
        " turn is lost.",
        "not_in_room": "The cog you named is not here in {room}.",
        "self_target": "You cannot do that with yourself.",
        "no_such_offer": "There is no one offer that this accepts: none is open to you (from that cog), or"
        " several are and you named nobody.",
        "offer_expired": "The bargain fell through: the two of you were not in one room, or one side could"
        " not pay or deliver. The offer is gone.",
        "bound_by_contract": "You are in that cog's service, and cannot rob the one who pays you.",
        "robbery_failed": "You were caught, and paid up to 8 coin of your own to the cog you went for.",
        "nothing_to_take": "You got the better of them, and they had nothing that you could take.",
        "thievery_forbidden": "The watch stands at every corner of this town: nobody can be robbed here.",
        "rejected": "The town would not take it.",
    }
)
"""What each outcome word means, told to the seat; `{room}` is where it stood."""


def outcome_text(outcome: str, room: str) -> str:
    """An outcome in plain English.

    Args:
        outcome: a word of `OUTCOMES`, or "" before the first sentence.
        room: name of the room where it happened.
    """
    return OUTCOMES[outcome].replace("{room}", room) if outcome else ""


PHRASEBOOK: Final = (
    ("move", "I walk to the Smithy."),
    ("pick up", "I grab 2 rope."),
    ("drop", "I drop 1 lamp."),
    ("buy", "I buy 2 salt from Tanner Oda."),
    ("sell", "I sell all my hides to Oda."),
    ("hand in for your commission", "I deliver 2 nails to Guildmaster Vell."),
    ("give to a cog", "I give NAME 1 rope.  /  I give NAME 5 coins."),
    ("offer goods for coin", "I offer NAME 2 salt for 20 coins."),
    ("offer to hire", "I hire NAME for 6 coins."),
    ("accept an offer", "I accept NAME's offer."),
    ("rob", "I rob NAME."),
    ("ask for the cheapest asks", "I ask Keeper Nesh about my commission."),
    ("speak", 'I say "Meet me at the docks."'),
    ("wait", "I wait."),
)
"""What may be done, and a sentence that does it."""
