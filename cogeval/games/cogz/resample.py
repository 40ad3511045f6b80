"""Another world that one seat cannot tell apart: the tiles hidden from it, drawn anew.

Invariant: the seat's observation stays equal, and every tile is somewhere: on the board, in a hand or in
the box. Must not know how an observation is shown.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.rules import single_copies
from cogeval.games.cogz.state import Hand, Parameters, State
from cogeval.games.cogz.tiles import HAND, TILE_OF, TILES


def resample_hidden(parameters: Parameters, state: State, seat: int, rng: np.random.Generator) -> State:
    """Draws anew what a state hides from the seat (R7).

    Args:
        parameters: of the game.
        state: any.
        seat: whose observation stays equal.
        rng: where the draws come from.

    Returns:
        The state with the unseen tiles of the others drawn from those and the box, every way equally
        likely, and their slots in another order. Whoever's turn it is has a legal swap, as it must.
    """
    while True:
        other = _drawn(parameters, state, seat, rng)
        turn = state.seat
        if turn in (-1, seat) or len(Swaps(other.layout, other.hands[turn])):
            return other  # R5.4; the hand that it really has is one of the draws


def _drawn(parameters: Parameters, state: State, seat: int, rng: np.random.Generator) -> State:
    pool = iter(rng.permutation(_hidden(parameters, state, seat)).tolist())
    hands, seen = list(state.hands), list(state.seen)
    for other in range(len(hands)):
        if other == seat:
            continue
        order = rng.permutation(HAND).tolist()
        keeps = [parameters.open_hands or shown for shown in state.seen[other]]
        tiles = [tile if kept else next(pool) for tile, kept in zip(state.hands[other], keeps, strict=True)]
        hands[other] = tuple([tiles[slot] for slot in order])
        seen[other] = tuple([state.seen[other][slot] for slot in order])
    return replace(state, hands=tuple(hands), seen=tuple(seen))


def _hidden(parameters: Parameters, state: State, seat: int) -> list[int]:
    """The tiles that the seat cannot see: those unseen in other hands, and the box."""
    unseen = [
        tile
        for other, (hand, seen) in enumerate(zip(state.hands, state.seen, strict=True))
        if other != seat and not parameters.open_hands
        for tile, shown in zip(hand, seen, strict=True)
        if not shown
    ]
    return unseen + boxed(parameters, state)


def boxed(parameters: Parameters, state: State) -> list[int]:
    """The tiles in the box: all that are neither on the board nor in a hand."""
    singles = single_copies(parameters.pair_copies)
    left = [singles if a == b else parameters.pair_copies for a, b in TILES]
    in_play: list[Hand | list[int]] = [*state.hands, [TILE_OF[code] for code in state.layout.board]]
    for tiles in in_play:
        for tile in tiles:
            left[tile] -= 1
    return [tile for tile, copies in enumerate(left) for _ in range(copies)]
