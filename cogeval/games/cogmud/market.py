"""What keepers show (R4.1), and what they tell a seat that asked about its commissions (R6.4).

Invariant: only keepers that deal in a good and have some count, and ties go to the lowest keeper.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from cogeval.games.cogmud.state import Goods, State
from cogeval.games.cogmud.world import ASK, COMMISSION_UNITS, GOODS, KEEPERS

Tip: TypeAlias = tuple[int, int, int]
"""Index of a commission, the keeper with the lowest ask for its good (-1: nobody has it), that ask."""

SELLERS: Final = tuple(
    [tuple([k for k, keeper in enumerate(KEEPERS) if good in keeper.deals]) for good in range(len(GOODS))]
)
"""SELLERS[good]: the keepers that deal in it, ascending."""


_LISTED: Final = tuple([tuple([good in keeper.deals for good in range(len(GOODS))]) for keeper in KEEPERS])


def listed(keeper: int, shelf: Goods) -> Goods:
    """What a keeper shows of its shelf: not the goods that it was handed and does not deal in (R4.1)."""
    return tuple([units if shown else 0 for units, shown in zip(shelf, _LISTED[keeper], strict=True)])


def cheapest(state: State, seat: int) -> tuple[Tip, ...]:
    """The cheapest ask in town for each open commission of the seat.

    Returns:
        One tip for each commission that still wants units, in the order of the commissions; the ask is
        0 where nobody has the good.
    """
    return tuple(
        [
            (index, *_seller(state, good))
            for index, (good, delivered) in enumerate(
                zip(state.commissions[seat], state.delivered[seat], strict=True)
            )
            if delivered < COMMISSION_UNITS
        ]
    )


def _seller(state: State, good: int) -> tuple[int, int]:
    best, lowest = -1, 0
    for keeper in SELLERS[good]:
        stock = state.stock[keeper][good]
        if stock and (best < 0 or ASK[good][stock] < lowest):
            best, lowest = keeper, ASK[good][stock]
    return best, lowest
