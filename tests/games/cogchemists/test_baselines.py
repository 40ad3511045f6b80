"""R11: what the scripted baselines decide."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cogeval.core.rng import NimStream
from cogeval.errors import InputError
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.deduction import Fact, MixFull, NotSig
from cogeval.games.cogchemists.state import PASS, Action, Seal, State

Arrange = Callable[..., State]

# Facts of the chemistry 0..7 that leave only it: each ingredient's other signatures excluded.
SOLVED: tuple[Fact, ...] = tuple(NotSig(a, s) for a in range(8) for s in range(8) if a != s)


def assayer(game: Cogchemists, state: State) -> Action:
    return game.baseline("assayer", state, 0, seed=0)


def held(arrange: Arrange, state: State, *cards: int, **columns: object) -> State:
    return arrange(state, hands=(cards, (), (), ()), **columns)


def test_r11_1_assayer_forages_with_fewer_than_two_cards(
    lab: State, game: Cogchemists, arrange: Arrange
) -> None:
    assert assayer(game, held(arrange, lab)) == Action("forage")
    assert assayer(game, held(arrange, lab, 3)) == Action("forage")


def test_r11_1_assayer_tests_the_first_of_the_best_pairs(
    lab: State, game: Cogchemists, arrange: Arrange
) -> None:
    elsewhere: tuple[Fact, ...] = (MixFull(0, 1, "RED+"),)  # all pairs of 2, 4, 5 are alike
    assert assayer(game, held(arrange, lab, 5, 2, 4, public_facts=elsewhere)) == Action("test_student", 2, 4)
    known: tuple[Fact, ...] = (MixFull(2, 4, "RED+"),)
    # what 2 and 4 make is known: a pair with 5 can still tell something
    assert assayer(game, held(arrange, lab, 5, 2, 4, public_facts=known)) == Action("test_student", 2, 5)


def test_r11_1_assayer_drinks_only_what_cannot_be_negative(
    lab: State, game: Cogchemists, arrange: Arrange
) -> None:
    poor = {"coin": (1, 4, 4, 4)}
    solved = held(arrange, lab, 0, 1, public_facts=SOLVED, **poor)  # 0 with 1 makes BLUE+
    assert assayer(game, solved) == Action("test_self", 0, 1)
    solved = held(arrange, lab, 1, 3, public_facts=SOLVED, **poor)  # GREEN-, and nothing to learn
    assert assayer(game, solved) == Action("transmute", 1)
    assert assayer(game, held(arrange, lab, 0, 1, **poor)) == PASS  # a truncated sample proves nothing


def test_r11_1_assayer_transmutes_from_two_of_a_kind(lab: State, game: Cogchemists, arrange: Arrange) -> None:
    assert assayer(game, held(arrange, lab, 6, 6)) == Action("transmute", 6)


def test_r11_1_assayer_publishes_the_lowest_solved_ingredient(
    market: State, game: Cogchemists, arrange: Arrange
) -> None:
    state = arrange(market, public_facts=SOLVED, seals=(Seal(0, 0, 1, 0),))
    assert assayer(game, state) == Action("publish", 1, signature=1)


def test_r11_1_assayer_debunks_what_its_grid_excludes(
    market: State, game: Cogchemists, arrange: Arrange
) -> None:
    seals = tuple(Seal(a, 6 if a == 0 else a, 1, 0) for a in range(8))
    state = held(arrange, market, 5, 1, public_facts=SOLVED, seals=seals)
    assert assayer(game, state) == Action("debunk", 0, 1)  # 1 refutes: BLUE+ is not MUD
    broke = held(arrange, market, 5, 1, public_facts=SOLVED, seals=seals, coin=(0, 4, 4, 4))
    assert assayer(game, broke).action != "debunk"
    own = held(
        arrange,
        market,
        5,
        1,
        public_facts=SOLVED,
        seals=tuple(Seal(s.ingredient, s.claim, 0, 0) for s in seals),
    )
    assert assayer(game, own).action != "debunk"


def test_r11_1_assayer_sells_what_is_sure_to_be_the_demand(
    market: State, game: Cogchemists, arrange: Arrange
) -> None:
    facts: tuple[Fact, ...] = (MixFull(2, 5, "RED+"),)
    assert assayer(game, held(arrange, market, 5, 2, public_facts=facts)) == Action("sell", 2, 5)
    assert assayer(game, held(arrange, market, 5, 3, public_facts=facts)) == Action("buy", artifact="mortar")


def test_r11_1_assayer_buys_the_mortar_else_passes(
    market: State, game: Cogchemists, arrange: Arrange
) -> None:
    assert assayer(game, held(arrange, market)) == Action("buy", artifact="mortar")
    assert assayer(game, held(arrange, market, coin=(3, 4, 4, 4))) == PASS
    assert assayer(Cogchemists(artifacts=False), held(arrange, market)) == PASS


def test_r11_4_quack_drinks_two_cards_from_its_own_stream(
    lab: State, game: Cogchemists, arrange: Arrange
) -> None:
    hand = (7, 3, 5, 0)
    seen = set()
    for seed in range(40):
        own = NimStream(seed * 1000003 + 0 * 977 + 0 * 131 + 2 * 17 + 5)
        first, second = own.rand(3), own.rand(3)
        second = (first + 1) % 4 if first == second else second
        a, b = sorted((hand[first], hand[second]))
        state = arrange(lab, hands=((), (), hand, ()))
        assert game.baseline("quack", state, 2, seed) == Action("test_self", a, b)
        seen.add((a, b))
    assert len(seen) == 6


def test_r11_4_quack_forages_with_fewer_than_two_cards(
    lab: State, game: Cogchemists, arrange: Arrange
) -> None:
    assert game.baseline("quack", held(arrange, lab, 4), 0, 0) == Action("forage")


def test_r11_4_quack_publishes_anything_else_sells_else_passes(
    market: State, game: Cogchemists, arrange: Arrange
) -> None:
    def quack(state: State) -> Action:
        return game.baseline("quack", state, 0, 0)

    facts: tuple[Fact, ...] = (NotSig(1, 0),)
    assert quack(arrange(market, seals=(Seal(0, 0, 1, 0),), public_facts=facts)) == Action(
        "publish", 1, signature=1
    )
    full = tuple(Seal(a, 0, 1, 0) for a in range(8))
    assert quack(held(arrange, market, 5, 3, 1, seals=full)) == Action("sell", 3, 5)
    assert quack(held(arrange, market, 5, seals=full)) == PASS
    assert quack(held(arrange, market, 5, 3, coin=(0, 4, 4, 4))) == Action("sell", 3, 5)


def test_an_unknown_baseline_lists_the_known_ones(lab: State, game: Cogchemists) -> None:
    with pytest.raises(
        InputError, match="unknown baseline of cogchemists 'quac'; known, closest first: quack"
    ):
        game.baseline("quac", lab, 0, 0)
