"""The configuration files of the game, and the command that the README gives for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cogeval.cli.composing import Composer
from cogeval.config import build_experiment, conf_dir, read_config
from cogeval.games import make_game
from cogeval.games.cogz.tiles import SHAPES

ROOT = Path(__file__).parents[3]
POOL = ["balanced", "greedy_total", "greedy_lowest", "lookahead", "random"]


def test_r1_2_the_game_file_has_every_parameter_with_its_default() -> None:
    read = yaml.safe_load((ROOT / "conf" / "game" / "cogz.yaml").read_text())
    assert read == {"name": "cogz", **make_game("cogz").parameters}


def test_r9_the_pool_has_every_baseline_and_chance() -> None:
    agents = yaml.safe_load((ROOT / "conf" / "pool" / "cogz_baselines.yaml").read_text())["agents"]
    baselines = {name: {"kind": "baseline", "baseline": name} for name in make_game("cogz").spec.baselines}
    assert agents == {**baselines, "random": {"kind": "random"}}
    assert list(agents) == POOL


@pytest.mark.parametrize("seats", [3, 4, 5, 6])
def test_r1_1_every_size_has_an_option_that_changes_the_seats_alone(seats: int) -> None:
    def composed(option: str) -> Any:
        return read_config(Composer(conf_dir()).compose([f"game={option}"]))

    base, sized = composed("cogz"), composed(f"cogz_{seats}")
    assert sized.game == {**base.game, "seats": seats}
    assert sized.pool == base.pool
    assert build_experiment(sized).game.seats == seats


def test_r1_3_the_configuration_page_and_the_files_cover_all_sizes() -> None:
    options = [name for name in Composer(conf_dir()).options("game") if name.startswith("cogz_")]
    assert options == [f"cogz_{seats}" for seats in SHAPES if seats > 2]


def test_r1_3_the_table_of_the_rules_is_that_of_the_code() -> None:
    text = (ROOT / "cogeval" / "games" / "cogz" / "RULES.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| (\d) x (\d) \| (\d) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    assert len(rows) == len(SHAPES)
    for row in rows:
        seats, tall, wide, rounds, dealt, boxed, lever = map(int, row)
        game = make_game("cogz", seats=seats)
        seen = game.observe(game.initial_state(0), 0)
        assert (tall, wide, rounds) == (seen.rows, seen.columns, seen.rounds)
        assert (dealt, boxed, lever) == (70 - seen.boxed, seen.boxed, seen.lever)


def test_the_command_of_the_readme_composes() -> None:
    (overrides,) = re.findall(r"`cogeval run (game=cogz[^`]*)`", (ROOT / "README.md").read_text())
    composed = Composer(conf_dir()).compose(overrides.split())
    assert composed.game.name == "cogz"
    assert list(composed.pool.agents) == POOL  # the pool follows the game
