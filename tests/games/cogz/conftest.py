"""States to test on: set up by hand, and along seeded random episodes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec.structs import replace

from cogeval.core.game import Step
from cogeval.core.rng import stream
from cogeval.games.cogz import rules
from cogeval.games.cogz.chains import Layout, layout_of
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.state import Action, Colours, Hand, Parameters, State
from cogeval.games.cogz.tiles import COLOURS, PLACED, TILE_TEXTS, parse_placed, placed_text


def load_slow() -> ModuleType:
    """The module beside this one; tests are not a package, so it has no name to import it by."""
    name = "tests_games_cogz_slow"
    found = importlib.util.spec_from_file_location(name, Path(__file__).parent / "slow.py")
    assert found is not None
    assert found.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def locked_segments(layout: Layout) -> set[tuple[tuple[int, int], int]]:
    """The locked arcs, as the slow engine names them: (cell, corner)."""
    return {
        (divmod(cell, layout.columns), (layout.board[cell] >> 4) + 2 * arc)
        for cell, bits in enumerate(layout.locked)
        for arc in (0, 1)
        if bits >> arc & 1
    }


def colour_counts(**numbers: int) -> Colours:
    """Numbers of each colour by letter: counts(R=2, B=1)."""
    return tuple(numbers.get(letter, 0) for letter in COLOURS)


def hand_of(text: str) -> Hand:
    """Three tiles in letters: "RG BB RY"."""
    return tuple(TILE_TEXTS.index(tile) for tile in text.split())


def set_up(
    lines: Sequence[str], hands: Sequence[str] = (), parameters: Parameters | None = None, **columns: Any
) -> State:
    """A state before the first swap on a board in letters; `points={0: ...}` sets one seat's entry."""
    chosen = parameters or Parameters()
    given = [hand_of(text) for text in hands]
    dealt = tuple(given + [hand_of("RG RG RG")] * (chosen.seats - len(given)))
    state = rules.arranged(chosen, layout_of(lines), dealt)
    for name, value in columns.items():
        if isinstance(value, dict):
            column = list(getattr(state, name))
            for seat, entry in value.items():
                column[seat] = entry
            columns[name] = tuple(column)
    return replace(state, **columns)


def swap_by_hand(
    state: State, placed: str, row: int, column: int, parameters: Parameters | None = None
) -> Step[State]:
    """The deciding seat lays the tile that looks like `placed`, which must be in its hand."""
    code, hand = parse_placed(placed), state.hands[state.seat]
    slot, rotation = next(
        (slot, rotation) for slot, tile in enumerate(hand) for rotation in range(4)
        if PLACED[tile][rotation] == code
    )  # fmt: skip
    action = Action(slot, rotation, row, column)
    assert action in Swaps(state.layout, hand)
    return rules.swap(parameters or Parameters(), state, action)


def walk_swaps(parameters: Parameters, seed: int) -> Iterator[tuple[State, Action, Step[State]]]:
    """Every open state of an episode of random swaps, the swap made there and the step from it."""
    rng, state = stream(seed, "test walk"), rules.opening_state(parameters, seed)
    while not state.reason:
        action = Swaps(state.layout, state.hands[state.seat]).sample(rng)
        step = rules.swap(parameters, state, action)
        yield state, action, step
        state = step.next


@pytest.fixture(scope="session")
def slow() -> ModuleType:
    """The slow second engine."""
    return load_slow()


@pytest.fixture(scope="session")
def as_slow(slow: ModuleType) -> Callable[[Layout], Any]:
    """The board of a layout as the slow engine has it."""

    def board_of(layout: Layout) -> Any:
        rows = range(0, len(layout.board), layout.columns)
        return slow.read_board(
            [" ".join(map(placed_text, layout.board[start : start + layout.columns])) for start in rows]
        )

    return board_of


@pytest.fixture(scope="session")
def locked() -> Callable[[Layout], set[tuple[tuple[int, int], int]]]:
    return locked_segments


@pytest.fixture(scope="session")
def counts() -> Callable[..., Colours]:
    return colour_counts


@pytest.fixture(scope="session")
def arrange() -> Callable[..., State]:
    return set_up


@pytest.fixture(scope="session")
def play() -> Callable[..., Step[State]]:
    return swap_by_hand


@pytest.fixture(scope="session")
def walk() -> Callable[[Parameters, int], Iterator[tuple[State, Action, Step[State]]]]:
    return walk_swaps
