"""The table of games: every game that a configuration may name, and its parameters.

Invariant: a game is one package and one line of `GAMES`; nothing heavy is computed on import. Must not
know agents, runs or configuration files.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from cogeval.core.game import AnyGame, Json
from cogeval.errors import unknown_name
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogmud import Cogmud
from cogeval.games.cogz import Cogz

__all__ = ["GAMES", "PARAMETERS", "Parameter", "make_game"]


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a game, as `cogeval games` lists it."""

    name: str
    default: Json
    doc: str  # one line: what it does and what it may be


GAMES: Final[Mapping[str, Callable[..., AnyGame]]] = MappingProxyType(
    {"cogchemists": Cogchemists, "cogmud": Cogmud, "cogz": Cogz}
)
"""Makes a game by name; keyword arguments are its parameters."""

PARAMETERS: Final[Mapping[str, tuple[Parameter, ...]]] = MappingProxyType(
    {
        "cogchemists": (
            Parameter("rounds", 6, "rounds of one episode, 3..10; a round is a lab and a market phase"),
            Parameter("talk", True, "whether remarks are heard; false: every remark is empty"),
            Parameter("artifacts", True, "whether mortar and press can be bought"),
        ),
        "cogmud": (
            Parameter("turns", 14, "turns of one episode, 6..40; in each every seat says one sentence"),
            Parameter("speech", True, "whether what is said is heard"),
            Parameter("thievery", True, "whether cogs can be robbed"),
        ),
        "cogz": (
            Parameter("seats", 2, "2..6; they decide the board (5x5 to 7x7) and the rounds (9 to 5)"),
            Parameter("lever", None, "space of the bonus lever, 1..99; null: 20 - seats"),
            Parameter(
                "pair_copies", 7, "copies of each two-coloured tile: 1, 3, 5, 7, 9 or 11; 70 tiles in all"
            ),
            Parameter("nuts_per_colour", 3, "cognition nuts of each colour, 0..12"),
            Parameter("setup_locks", True, "whether mechanisms that lie there at the start are locked"),
            Parameter("open_hands", False, "whether all hands are seen by all"),
        ),
    }
)
"""The parameters of every game in `GAMES`, with their defaults."""


def make_game(name: str, **parameters: Json) -> AnyGame:
    """Makes a game from the table.

    Args:
        name: of the game.
        parameters: what differs from the game's defaults.

    Returns:
        The game, its parameters checked.

    Raises:
        InputError: when the game or a parameter is unknown, or a value out of its range.
    """
    if name not in GAMES:
        raise unknown_name("game", name, GAMES)
    factory = GAMES[name]
    known = inspect.signature(factory).parameters
    for parameter in parameters:
        if parameter not in known:
            raise unknown_name(f"parameter of {name}", parameter, known)
    return factory(**parameters)
