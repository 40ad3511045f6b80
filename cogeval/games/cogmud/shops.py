"""What can be done with a shopkeeper: buy, sell, hand over, ask (R4, R6).

Invariant: an effect changes the town it is given and answers with an outcome; a refusal changes nothing.
"""

from __future__ import annotations

from typing import Final

from cogeval.games.cogmud.state import POINTS, Intent, Line
from cogeval.games.cogmud.town import Town, with_units
from cogeval.games.cogmud.world import ASK, BID, COMMISSION_UNITS, KEEPERS, STOCK_CAP, VELL

DEALS: Final = tuple([frozenset(keeper.deals) for keeper in KEEPERS])
"""Goods on each keeper's fixed list (R4.1)."""


def affordable(good: int, stock: int, coin: int, most: int) -> tuple[int, int]:
    """How many units a purse buys at the rising ask, and what they cost (R4.3).

    Args:
        good: index.
        stock: units of it in the shop.
        coin: in the purse.
        most: units that are wanted, at most `stock`.
    """
    asks, units, cost = ASK[good], 0, 0
    while units < most and cost + asks[stock - units] <= coin:
        cost += asks[stock - units]
        units += 1
    return units, cost


def _keeper_is_here(town: Town, seat: int, intent: Intent) -> bool:
    return KEEPERS[intent.npc].room == town.room[seat]


def buy(town: Town, seat: int, intent: Intent) -> str:  # R4.3
    """Buys unit by unit at the rising ask."""
    good, keeper = intent.item, intent.npc
    if not _keeper_is_here(town, seat, intent):
        return "no_npc_here"
    if good not in DEALS[keeper]:
        return "out_of_stock"
    free = town.free(seat)
    if free <= 0:
        return "carry_limit"
    stock = town.stock[keeper][good]
    if stock == 0:
        return "out_of_stock"
    bought, paid = affordable(good, stock, town.coin[seat], min(intent.qty, free, stock))
    if bought == 0:
        return "cannot_afford"
    town.coin[seat] -= paid
    town.till[keeper] += paid
    town.stock[keeper] = with_units(town.stock[keeper], good, -bought)
    town.move_units(seat, good, bought)
    town.qty, town.paid = bought, paid
    town.write(seat, Line("bought", town.state.names[seat], "", keeper, -1, good, bought, paid))
    return "ok"


def sell(town: Town, seat: int, intent: Intent) -> str:  # R4.4
    """Sells unit by unit at the falling bid."""
    good, keeper = intent.item, intent.npc
    if not _keeper_is_here(town, seat, intent):
        return "no_npc_here"
    if good not in DEALS[keeper]:
        return "not_wanted"
    held = town.pack[seat][good]
    if held == 0:
        return "not_carrying"
    bids, stock, till, sold = BID[good], town.stock[keeper][good], town.till[keeper], 0
    most = min(intent.qty, held)
    while sold < most and bids[stock] <= till:
        till -= bids[stock]
        stock = min(stock + 1, STOCK_CAP)
        sold += 1
    if sold == 0:
        return "npc_broke"
    paid = town.till[keeper] - till
    town.till[keeper] = till
    town.coin[seat] += paid
    town.stock[keeper] = with_units(town.stock[keeper], good, stock - town.stock[keeper][good])
    town.move_units(seat, good, -sold)
    town.qty, town.paid = sold, paid
    town.write(seat, Line("sold", town.state.names[seat], "", keeper, -1, good, sold, paid))
    return "ok"


def hand_over(town: Town, seat: int, intent: Intent) -> str:  # R6.2, R6.3
    """Hands goods to a keeper, who gives nothing for them but commission points."""
    good, keeper = intent.item, intent.npc
    if not _keeper_is_here(town, seat, intent):
        return "no_npc_here"
    if good < 0:
        return "no_target"
    held = town.pack[seat][good]
    if held == 0:
        return "not_carrying"
    units = min(intent.qty, held)
    room_left = STOCK_CAP - town.stock[keeper][good]
    town.stock[keeper] = with_units(town.stock[keeper], good, min(units, room_left))
    town.move_units(seat, good, -units)
    name = town.state.names[seat]
    credited = _credit(town, seat, good, units) if keeper == VELL else 0
    if credited == 0:
        town.qty = units
        kind = "unwanted" if keeper == VELL else "surrendered"
        town.write(seat, Line(kind, name, "", keeper, -1, good, units))
        return "no_matching_commission"
    town.qty = credited
    town.write(seat, Line("delivered", name, "", keeper, -1, good, credited, town.paid))
    return "ok"


def _credit(town: Town, seat: int, good: int, units: int) -> int:
    """Counts units toward the seat's open commission for the good; sets the points (R6.1)."""
    commissions = town.state.commissions[seat]
    if good not in commissions:
        return 0
    index, before = commissions.index(good), town.delivered[seat]
    credited = min(units, COMMISSION_UNITS - before[index])
    after = with_units(before, index, credited)
    town.delivered = (*town.delivered[:seat], after, *town.delivered[seat + 1 :])
    town.paid = POINTS[after[index]] - POINTS[before[index]]
    return credited


def ask(town: Town, seat: int, intent: Intent) -> str:  # R6.4
    """Asks a keeper where the commissioned goods are cheapest."""
    if not _keeper_is_here(town, seat, intent):
        return "no_npc_here"
    town.hint[seat] = True
    town.write(seat, Line("asked", town.state.names[seat], "", intent.npc))
    return "ok"
