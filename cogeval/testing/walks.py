"""Positions to check things at: states along seeded random episodes of any game.

Invariant: a walk is a function of game and seed. Must not know agents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from cogeval.core.game import AnyGame, Decision, Legal, Seat
from cogeval.core.rng import Stream, stream

MAX_PHASES = 100_000  # a walk longer than this counts as endless
SAMPLED = 20  # legal actions drawn where they cannot be counted
SECRET_SEED = 5_083_614_927_310_864_257  # long enough to be met by accident nowhere


class Position(msgspec.Struct, frozen=True):
    """An open phase of an episode."""

    seed: int
    phase: int  # 0-based
    state: Any
    decisions: tuple[Decision[Any], ...]

    @property
    def place(self) -> str:
        """Where this is, for messages."""
        return f"seed {self.seed}, phase {self.phase}"


class Walk(msgspec.Struct, frozen=True):
    """A whole random episode."""

    seed: int
    positions: tuple[Position, ...]  # every open phase, in order
    actions: tuple[Mapping[Seat, Any], ...]  # what was played there
    final: Any  # the finished state


def walk(game: AnyGame, seed: int, salt: str = "walk") -> Walk:
    """Plays an episode of uniformly drawn legal actions.

    Args:
        game: rules and parameters.
        seed: of the world; the actions are drawn from a stream of seed and salt.
        salt: another salt, other actions.

    Raises:
        AssertionError: when the episode does not end.
    """
    rng = stream(seed, "testing", salt)
    positions: list[Position] = []
    played: list[Mapping[Seat, Any]] = []
    state = game.initial_state(seed)
    while decisions := game.decisions(state):
        positions.append(Position(seed, len(positions), state, decisions))
        actions = {d.seat: d.legal.sample(rng) for d in decisions}
        played.append(actions)
        state = game.step(state, actions).next
        assert len(positions) < MAX_PHASES, f"seed {seed}: expected an end, got {MAX_PHASES} phases"
    return Walk(seed, tuple(positions), tuple(played), state)


def legal_actions(legal: Legal[Any], rng: Stream) -> list[Any]:
    """All legal actions in the game's order, or a sample where they cannot be counted."""
    try:
        return list(legal)
    except TypeError:
        return [legal.sample(rng) for _ in range(SAMPLED)]


def places(walks: Sequence[Walk]) -> Iterator[tuple[Position, Decision[Any]]]:
    """Every decision of every walk."""
    for each in walks:
        for position in each.positions:
            for decision in position.decisions:
                yield position, decision
