"""States to test on: along seeded random episodes, and set up by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from cogeval.core.rng import stream
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.deduction import knowledge_of
from cogeval.games.cogchemists.state import Action, State


def walk_states(seed: int, **parameters: Any) -> Iterator[tuple[Cogchemists, State]]:
    """Every open state of an episode of random legal actions, with remarks and notes."""
    game = Cogchemists(**parameters)
    rng = stream(seed, "test walk")
    state = game.initial_state(seed)
    while decisions := game.decisions(state):
        yield game, state
        actions = {
            d.seat: replace(d.legal.sample(rng), say=f"say {rng.below(9)}", notes=f"note {rng.below(9)}")
            for d in decisions
        }
        state = game.step(state, actions).next


def set_up(state: State, **columns: Any) -> State:
    """A state with some columns set by hand, and knowledge to match its facts."""
    state = replace(state, **columns)
    known = tuple(knowledge_of(state.public_facts, own) for own in state.private_facts)
    return replace(state, known=known)


@pytest.fixture
def walk() -> Callable[..., Iterator[tuple[Cogchemists, State]]]:
    return walk_states


@pytest.fixture
def game() -> Cogchemists:
    return Cogchemists()


@pytest.fixture
def lab(game: Cogchemists) -> State:
    """A lab in which ingredient i has signature i and every seat holds 0, 1, 1."""
    state = game.initial_state(1)
    return set_up(state, chemistry=tuple(range(8)), hands=((0, 1, 1),) * 4, demands=("RED+",) * 6)


@pytest.fixture
def market(lab: State) -> State:
    """The same as a market."""
    return set_up(lab, phase="market")


@pytest.fixture
def play(game: Cogchemists) -> Callable[..., Any]:
    """Steps with some seats' actions, the others pass."""

    def step(state: State, **actions: Action) -> Any:
        return game.step(state, {seat: actions.get(f"seat{seat}", Action()) for seat in range(4)})

    return step


@pytest.fixture
def arrange() -> Callable[..., State]:
    return set_up
