"""R7.2: another world that a seat cannot tell apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from cogeval.games.cogz import Cogz
from cogeval.games.cogz.chains import layout_of
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.resample import boxed, resample_hidden
from cogeval.games.cogz.rules import arranged
from cogeval.games.cogz.state import Parameters, State
from cogeval.games.cogz.tiles import TILE_OF, TILE_TEXTS
from cogeval.testing.snapshot import snapshot
from cogeval.testing.walks import walk

RR, GG, BB, YY, GY = (TILE_TEXTS.index(text) for text in ("RR", "GG", "BB", "YY", "GY"))
GAMES = [Cogz(), Cogz(seats=3, pair_copies=9), Cogz(seats=6), Cogz(seats=4, open_hands=True)]


def states(game: Cogz) -> Iterator[State]:
    walked = walk(game, 5)
    yield from (position.state for position in walked.positions[::3])
    yield walked.final


def others(game: Cogz, state: State, num: int = 2) -> Iterator[tuple[int, State]]:
    for seat in range(game.seats):
        for draw in range(num):
            rng = np.random.default_rng([state.swaps, seat, draw])
            yield seat, game.resample_hidden(state, seat, rng)


@pytest.mark.parametrize("game", GAMES)
def test_r7_2_an_observation_is_the_same_when_anything_hidden_changes(game: Cogz) -> None:
    changed: set[str] = set()
    for state in states(game):
        for seat, other in others(game, state):
            seen, also = game.observe(state, seat), game.observe(other, seat)
            assert snapshot(seen) == snapshot(also)
            assert game.observation_to_wire(seen) == game.observation_to_wire(also)
            assert game.prompt(seen) == game.prompt(also)
            changed |= {n for n in State.__struct_fields__ if getattr(state, n) != getattr(other, n)}
    assert changed == {"hands", "seen"}


@pytest.mark.parametrize("game", GAMES)
def test_r1_4_every_tile_is_still_somewhere(game: Cogz) -> None:
    pairs = int(game.parameters["pair_copies"])
    copies = {
        tile: pairs if len(set(text)) == 2 else (70 - 6 * pairs) // 4 for tile, text in enumerate(TILE_TEXTS)
    }
    for state in states(game):
        for _, other in others(game, state, num=1):
            placed = Counter(TILE_OF[code] for code in other.layout.board)
            placed.update(tile for hand in other.hands for tile in hand)
            placed.update(boxed(game._parameters, other))
            assert placed == copies


@pytest.mark.parametrize("game", GAMES)
def test_resampled_worlds_play_on(game: Cogz) -> None:
    for state in states(game):
        for _, other in others(game, state, num=1):
            for decision in game.decisions(other):
                assert len(decision.legal) > 0
                assert decision.default in decision.legal
                game.step(other, {decision.seat: decision.default})


def test_r7_2_unseen_tiles_come_evenly_from_hands_and_box() -> None:
    """With one unseen tile and a pool that the board and hands fix, each copy is as likely."""
    game = Cogz()
    state = game.initial_state(0)
    state = replace(state, seen=(state.seen[0], (True, True, False)))
    left = game.observe(state, 0).out_of_sight
    draws = 4000
    drawn: Counter[int] = Counter()
    known = Counter(tile for tile, seen in zip(state.hands[1], state.seen[1], strict=True) if seen)
    for draw in range(draws):
        other = resample_hidden(Parameters(), state, 0, np.random.default_rng(draw))
        (tile,) = (Counter(other.hands[1]) - known).elements()
        drawn[tile] += 1
    for tile, copies in enumerate(left):
        share = copies / sum(left)
        spread = (share * (1 - share) / draws) ** 0.5
        assert abs(drawn[tile] / draws - share) <= 4.5 * spread, TILE_TEXTS[tile]


def test_r7_3_every_order_of_the_slots_comes_up() -> None:
    state = replace(Cogz().initial_state(0), seen=((False,) * 3, (True,) * 3))
    hands = {resample_hidden(Parameters(), state, 0, np.random.default_rng(draw)).hands for draw in range(60)}
    assert {sorted(hand[1]) == sorted(state.hands[1]) for hand in hands} == {True}
    assert {hand[0] for hand in hands} == {state.hands[0]}
    assert len(hands) == len({*_orders(state.hands[1])})


def _orders(hand: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        yield tuple(hand[slot] for slot in order)


def test_r5_4_the_seat_whose_turn_it_is_can_swap_in_every_world() -> None:
    layout = layout_of(["0GB 1BR", "1BG 0RB"])  # U-turns and corners: few tiles fit once all is locked
    full = replace(layout, locked=bytes([3, 3, 3, 3]))
    fits = TILE_OF[full.board[0]]
    state = replace(arranged(Parameters(), full, ((fits, RR, YY), (RR, GG, BB))), seat=0)
    for draw in range(20):
        other = resample_hidden(Parameters(), state, 1, np.random.default_rng(draw))
        assert len(Swaps(other.layout, other.hands[0])) > 0
        assert other.hands[1] == state.hands[1]
