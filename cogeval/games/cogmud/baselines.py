"""The two scripted baselines of the league: `factor` runs errands, `magpie` robs and haggles (R10).

Invariant: a pure function of the state and the seat. Both read more than their seat sees; RULES.md says
what. They decide by intent and speak from tables of sentences, each an `Action` made once.
"""

from __future__ import annotations

from typing import Final

from cogeval.games.cogmud.market import SELLERS
from cogeval.games.cogmud.shops import DEALS, affordable
from cogeval.games.cogmud.state import WAIT, Action, Parameters, State
from cogeval.games.cogmud.world import (
    ASK,
    BID,
    CARRY_CAP,
    COMMISSION_UNITS,
    DISTANCE,
    GOODS,
    GUILDHALL,
    KEEPER_IN,
    KEEPERS,
    MARKET,
    ROOMS,
    STEP_TO,
    VALUES,
    VELL,
)

BASELINES: Final = ("factor", "magpie")

_ALL_GOODS: Final = range(len(GOODS))
_WORTH_A_STOOP: Final = 8  # base value from which a factor picks up what nobody ordered
_OFFER_EVERY: Final = 3  # turns between a magpie's offers
_MARKUP: Final = 2  # coin over base value that a magpie asks for


def _units(units: int, good: int) -> str:
    return f"{units} {GOODS[good].name if units == 1 else GOODS[good].plural}"


_UNITS: Final = range(CARRY_CAP + 1)
_GO: Final = tuple([Action(f"I walk to {room.name}.") for room in ROOMS])
_TAKE: Final = tuple([Action(f"I pick up one {good.name}.") for good in GOODS])
_HAND_IN: Final = tuple(
    [
        tuple([Action(f"I hand {_units(n, good)} to {KEEPERS[VELL].name}.") for n in _UNITS])
        for good in _ALL_GOODS
    ]
)
_BUY: Final = tuple(
    [
        tuple(
            [
                tuple([Action(f"I buy {_units(n, good)} from {keeper.name}.") for n in _UNITS])
                for good in _ALL_GOODS
            ]
        )
        for keeper in KEEPERS
    ]
)
_SELL: Final = tuple(
    [
        tuple(
            [
                tuple([Action(f"I sell {_units(n, good)} to {keeper.name}.") for n in _UNITS])
                for good in _ALL_GOODS
            ]
        )
        for keeper in KEEPERS
    ]
)


def factor(state: State, seat: int) -> Action:
    """Fills its commissions, sells what it does not need, picks up what is worth it."""
    room, pack = state.room[seat], state.pack[seat]
    needed, missing = [], []  # goods of open commissions; what is missing of them, held ones counted
    for good, done in zip(state.commissions[seat], state.delivered[seat], strict=True):
        if done < COMMISSION_UNITS:
            needed.append(good)
            if done + pack[good] < COMMISSION_UNITS:
                missing.append((good, COMMISSION_UNITS - done - pack[good]))
    keeper = KEEPER_IN[room]
    if keeper >= 0:
        if keeper == VELL:
            for good, done in zip(state.commissions[seat], state.delivered[seat], strict=True):
                if done < COMMISSION_UNITS and pack[good]:
                    return _HAND_IN[good][min(COMMISSION_UNITS - done, pack[good])]
        deal = _purchase(state, seat, keeper, missing) or _sale(state, seat, keeper, needed)
        if deal is not None:
            return deal
    floor = state.floor[room]
    if any(floor) and sum(pack) < CARRY_CAP:
        for good in _ALL_GOODS:
            if floor[good] and (VALUES[good] >= _WORTH_A_STOOP or good in needed):
                return _TAKE[good]
    goal = _goal(state, room, missing, needed)
    return WAIT if goal == room else _GO[STEP_TO[room][goal]]


def _purchase(state: State, seat: int, keeper: int, missing: list[tuple[int, int]]) -> Action | None:
    """As many of a missing good as stock, slots and coin allow."""
    for good, units in missing:
        if good not in DEALS[keeper]:
            continue
        stock = state.stock[keeper][good]
        most = min(units, stock, CARRY_CAP - sum(state.pack[seat]))
        bought, _ = affordable(good, stock, state.coin[seat], most)
        if bought > 0:
            return _BUY[keeper][good][bought]
    return None


def _sale(state: State, seat: int, keeper: int, needed: list[int]) -> Action | None:
    """All of the first good that no commission needs and that fetches its base value."""
    pack, stock, till = state.pack[seat], state.stock[keeper], state.till[keeper]
    if not any(pack):
        return None
    for good in _ALL_GOODS:
        if pack[good] and good in DEALS[keeper] and good not in needed:
            bid = BID[good][stock[good]]
            if VALUES[good] <= bid <= till:
                return _SELL[keeper][good][pack[good]]
    return None


def _goal(state: State, room: int, missing: list[tuple[int, int]], needed: list[int]) -> int:
    """The room that a factor is on its way to."""
    if missing:
        good = missing[0][0]
        stock = state.stock
        shops = [KEEPERS[k].room for k in SELLERS[good] if stock[k][good]]
        if shops:
            return min(shops, key=DISTANCE[room].__getitem__)  # the first of equals
    return GUILDHALL if needed else MARKET


def magpie(parameters: Parameters, state: State, seat: int) -> Action:
    """Robs in the dark, haggles in the light."""
    room, pack = state.room[seat], state.pack[seat]
    here = [cog for cog, where in enumerate(state.room) if where == room and cog != seat]
    if ROOMS[room].dark and parameters.thievery:
        for cog in here:
            if any(state.pack[cog]) and cog != state.employer[seat]:
                return Action(f"I rob {state.names[cog]}.")
    carried = next((good for good in _ALL_GOODS if pack[good]), -1)
    if carried >= 0 and here and state.turn % _OFFER_EVERY == 0:
        price = VALUES[carried] + _MARKUP
        return Action(f"I offer {state.names[here[0]]} {_units(1, carried)} for {price} coins.")
    keeper = KEEPER_IN[room]
    if keeper >= 0:
        deal = _bargain(state, seat, keeper)
        if deal is not None:
            return deal
    return _GO[_way(state, seat, empty_handed=carried < 0)]


def _bargain(state: State, seat: int, keeper: int) -> Action | None:
    """Sells above base value, else buys below it; the first good by id."""
    pack, stock = state.pack[seat], state.stock[keeper]
    deals = sorted(DEALS[keeper])
    for good in deals:
        if pack[good] and VALUES[good] < BID[good][stock[good]] <= state.till[keeper]:
            return _SELL[keeper][good][pack[good]]
    if sum(pack) < CARRY_CAP:
        for good in deals:
            if (
                stock[good]
                and ASK[good][stock[good]] < VALUES[good]
                and state.coin[seat] >= ASK[good][stock[good]]
            ):
                return _BUY[keeper][good][1]
    return None


def _way(state: State, seat: int, *, empty_handed: bool) -> int:
    """The exit that a magpie takes: into the dark to find somebody, and not back where it came from."""
    exits, came_from = ROOMS[state.room[seat]].exits, state.prev_room[seat]
    onward = [room for room in exits if room != came_from]
    if empty_handed:
        for room in onward:
            if ROOMS[room].dark:
                return room
    return onward[0] if onward else exits[0]
