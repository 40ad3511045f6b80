"""The table of games, and what bad parameters get."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from cogeval.errors import InputError
from cogeval.games import GAMES, PARAMETERS, make_game
from cogeval.games.cogchemists import Cogchemists


def test_game_is_made_with_its_defaults() -> None:
    game = make_game("cogchemists")
    assert isinstance(game, Cogchemists)
    assert game.parameters == {"rounds": 6, "talk": True, "artifacts": True}
    assert (game.seats, game.spec.version, game.spec.baselines) == (4, "1", ("assayer", "quack"))


def test_parameters_are_taken() -> None:
    game = make_game("cogchemists", rounds=3, talk=False, artifacts=False)
    assert game.parameters == {"rounds": 3, "talk": False, "artifacts": False}


def test_unknown_game_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="unknown game 'cogchemist'; known, closest first: cogchemists"):
        make_game("cogchemist")


def test_unknown_parameter_lists_the_known_ones_closest_first() -> None:
    with pytest.raises(InputError) as raised:
        make_game("cogchemists", roundz=6)
    assert str(raised.value) == (
        "unknown parameter of cogchemists 'roundz'; known, closest first: rounds, artifacts, talk"
    )


@pytest.mark.parametrize("rounds", [2, 11, 0, -6, True, 6.0, "6", None])
def test_rounds_out_of_range_or_not_whole_are_quoted(rounds: object) -> None:  # R1.2
    with pytest.raises(InputError) as raised:
        make_game("cogchemists", rounds=rounds)
    assert str(raised.value) == f"expected rounds of cogchemists as a whole number 3..10, got {rounds!r}"


@pytest.mark.parametrize("name", ["talk", "artifacts"])
@pytest.mark.parametrize("value", [1, 0, "true", None])
def test_switches_that_are_not_booleans_are_quoted(name: str, value: object) -> None:  # R1.2
    with pytest.raises(InputError) as raised:
        make_game("cogchemists", **{name: value})
    assert str(raised.value) == f"expected {name} of cogchemists as true or false, got {value!r}"


@pytest.mark.parametrize("name", sorted(GAMES))
def test_every_parameter_is_documented_with_its_default(name: str) -> None:
    listed = {parameter.name: parameter.default for parameter in PARAMETERS[name]}
    signature = inspect.signature(GAMES[name]).parameters
    assert listed == {key: value.default for key, value in signature.items()}
    assert listed == dict(make_game(name).parameters)
    assert all(parameter.doc and "\n" not in parameter.doc for parameter in PARAMETERS[name])


def test_import_computes_nothing_heavy() -> None:
    code = (
        "import cogeval.games, cogeval.games.cogchemists.masks as m, cogeval.core.rng as r;"
        "print(m.permutations.cache_info().currsize, m.mix_masks.cache_info().currsize,"
        "r._jump_tables.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0", "0"]
