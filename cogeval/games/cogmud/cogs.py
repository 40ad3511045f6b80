"""What cogs do to each other: give, trade, hire, accept, rob (R5).

Invariant: an effect changes the town it is given and answers with an outcome; a refusal changes nothing.
"""

from __future__ import annotations

from typing import Final

from cogeval.games.cogmud.state import Intent, Line, Offer
from cogeval.games.cogmud.town import Town, with_entry
from cogeval.games.cogmud.world import FINE, RETAINER_TURNS, ROBBED_COIN, ROOMS, VALUES

_BY_VALUE: Final = tuple(sorted(range(len(VALUES)), key=lambda good: (-VALUES[good], good)))


def give(town: Town, seat: int, intent: Intent) -> str:  # R5.3
    """Gives goods and coin to a cog, who need not agree."""
    other, good = intent.other, intent.item
    if town.room[other] != town.room[seat]:
        return "not_in_room"
    held = town.pack[seat][good] if good >= 0 else 0
    units = min(intent.qty, held, max(0, town.free(other))) if held else 0
    coin = min(intent.coin, town.coin[seat])
    if units == coin == 0:
        return "no_target" if good < 0 else "carry_limit" if held else "not_carrying"
    if units:
        town.move_units(seat, good, -units)
        town.move_units(other, good, units)
    town.coin[seat] -= coin
    town.coin[other] += coin
    town.qty, town.paid = units, coin
    names = town.state.names
    town.write(seat, Line("gave", names[seat], names[other], -1, -1, good if units else -1, units, coin))
    return "ok"


def trade(town: Town, seat: int, intent: Intent) -> str:  # R5.4
    """Offers goods for coin."""
    other, good = intent.other, intent.item
    if town.room[other] != town.room[seat]:
        return "not_in_room"
    held = town.pack[seat][good]
    if held == 0:
        return "not_carrying"
    town.qty, town.paid = units, price = min(max(1, intent.qty), held), intent.coin
    town.offers += (Offer("trade", seat, other, good, units, price, town.state.turn),)
    names = town.state.names
    town.write(seat, Line("offered", names[seat], names[other], -1, -1, good, units, price))
    return "ok"


def hire(town: Town, seat: int, intent: Intent) -> str:  # R5.5
    """Offers a fee for a cog's protection."""
    other = intent.other
    if town.room[other] != town.room[seat]:
        return "not_in_room"
    if town.coin[seat] == 0:
        return "cannot_afford"
    town.item = -1
    town.paid = fee = min(max(1, intent.coin), town.coin[seat])
    town.offers += (Offer("hire", seat, other, -1, 0, fee, town.state.turn),)
    names = town.state.names
    town.write(seat, Line("hiring", names[seat], names[other], coin=fee))
    return "ok"


def accept(town: Town, seat: int, intent: Intent) -> str:  # R5.6
    """Takes up an offer of the turn before; it is consumed even when it fails."""
    before = town.state.turn - 1
    for offer in town.offers:
        if offer.to == seat and offer.posted == before and offer.sender == intent.other:
            break
    else:
        return "no_such_offer"
    town.offers = tuple([each for each in town.offers if each is not offer])
    sender = offer.sender
    if town.room[sender] != town.room[seat]:
        return "offer_expired"
    return _settle_hire(town, seat, offer) if offer.kind == "hire" else _settle_trade(town, seat, offer)


def _settle_hire(town: Town, seat: int, offer: Offer) -> str:
    fee, sender = offer.coin, offer.sender
    if town.coin[sender] < fee:
        return "offer_expired"
    town.coin[sender] -= fee
    town.coin[seat] += fee
    town.employer = with_entry(town.employer, seat, sender)
    town.bond = with_entry(town.bond, seat, RETAINER_TURNS)
    town.paid = fee
    names = town.state.names
    town.write(seat, Line("hired", names[seat], names[sender], coin=RETAINER_TURNS))
    return "ok"


def _settle_trade(town: Town, seat: int, offer: Offer) -> str:
    good, units, price, sender = offer.item, offer.qty, offer.coin, offer.sender
    if town.pack[sender][good] < units or town.coin[seat] < price or town.free(seat) < units:
        return "offer_expired"
    town.move_units(sender, good, -units)
    town.move_units(seat, good, units)
    town.coin[seat] -= price
    town.coin[sender] += price
    town.item, town.qty, town.paid = good, units, price
    names = town.state.names
    town.write(seat, Line("accepted", names[seat], names[sender], -1, -1, good, units, price))
    return "ok"


def rob(town: Town, seat: int, intent: Intent) -> str:  # R5.7
    """Robs a cog, if those who are with the robber outnumber those who are not."""
    victim, room = intent.other, town.room[seat]
    if town.room[victim] != room:
        return "not_in_room"
    if not town.parameters.thievery:
        return "thievery_forbidden"
    if town.employer[seat] == victim:
        return "bound_by_contract"
    dark = ROOMS[room].dark
    attack = 1 + town.retainers_here(seat) + (1 if dark else 0)
    defence = 1 + town.retainers_here(victim) + (0 if dark else 2)
    names = town.state.names
    if attack <= defence:
        town.paid = fine = min(town.coin[seat], FINE)
        town.coin[seat] -= fine
        town.coin[victim] += fine
        where = "dark" if dark else "lit"
        town.write(seat, Line("failed", names[seat], names[victim], coin=fine, text=where))
        return "robbery_failed"
    return _loot(town, seat, victim)


def _loot(town: Town, seat: int, victim: int) -> str:
    pack, names = town.pack[victim], town.state.names
    good = next((each for each in _BY_VALUE if pack[each]), -1) if town.free(seat) > 0 else -1
    if good >= 0:
        town.move_units(victim, good, -1)
        town.move_units(seat, good, 1)
        town.item, town.qty = good, 1
        line = Line("robbed", names[seat], names[victim], -1, -1, good, 1)
    elif coin := min(town.coin[victim], ROBBED_COIN):
        town.coin[victim] -= coin
        town.coin[seat] += coin
        town.paid = coin
        line = Line("robbed", names[seat], names[victim], coin=coin)
    else:
        town.write(seat, Line("nothing", names[seat], names[victim]))
        return "nothing_to_take"
    town.robberies = with_entry(town.robberies, seat, town.robberies[seat] + 1)
    town.robbed = with_entry(town.robbed, victim, town.robbed[victim] + 1)
    town.write(seat, line)
    return "ok"
