"""States to test on: set up by hand, and along seeded random episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from cogeval.core.game import Step
from cogeval.core.rng import stream
from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.state import WAIT, Act, Action, State

NAMES = ("Sprocket", "Gizmo", "Ratchet", "Widget", "Bolt", "Piston")


def set_up(state: State, **columns: Any) -> State:
    """A state with some columns set by hand: seat -> value for some seats, or a whole column."""
    for name, value in columns.items():
        if isinstance(value, dict):
            column = list(getattr(state, name))
            for index, entry in value.items():
                column[index] = entry
            columns[name] = tuple(column)
    return replace(state, **columns)


def goods(**units: int) -> tuple[int, ...]:
    """Goods by name: goods(rope=2)."""
    names = ("hide", "nails", "rope", "salt", "lamp", "relic")
    return tuple(units.get(name, 0) for name in names)


class Turn:
    """One turn played by hand: sentences by seat, everybody else waits."""

    def __init__(self, game: Cogmud, state: State, sentences: dict[int, str | Action]) -> None:
        actions = dict.fromkeys(range(6), WAIT)
        for seat, said in sentences.items():
            actions[seat] = said if isinstance(said, Action) else Action(said)
        self.step: Step[State] = game.step(state, actions)
        self.acts = {event.seat: event for event in self.step.events if isinstance(event, Act)}
        self.resolved = self.step.resolved
        self.next = self.step.next

    def reason(self, seat: int = 0) -> str:
        return self.acts[seat].reason


def walk_turns(seed: int, **parameters: Any) -> Iterator[tuple[State, Step[State]]]:
    """Every open state of an episode of random phrases, and the step from it."""
    game = Cogmud(**parameters)
    rng = stream(seed, "test walk")
    state = game.initial_state(seed)
    while decisions := game.decisions(state):
        step = game.step(state, {d.seat: d.legal.sample(rng) for d in decisions})
        yield state, step
        state = step.next


@pytest.fixture
def game() -> Cogmud:
    return Cogmud()


@pytest.fixture
def square(game: Cogmud) -> State:
    """Turn 0 with all six cogs in Market Square, nothing in any pack."""
    state = game.initial_state(1)
    return set_up(state, names=NAMES, room=(0,) * 6, commissions=((0, 1),) * 6)


@pytest.fixture
def play(game: Cogmud) -> Callable[..., Turn]:
    """play(state, {seat: sentence}) on the game with its defaults."""
    return lambda state, sentences, **parameters: Turn(
        Cogmud(**parameters) if parameters else game, state, sentences
    )


@pytest.fixture
def arrange() -> Callable[..., State]:
    return set_up


@pytest.fixture
def pack() -> Callable[..., tuple[int, ...]]:
    return goods


@pytest.fixture
def turns() -> Callable[..., Iterator[tuple[State, Step[State]]]]:
    return walk_turns
