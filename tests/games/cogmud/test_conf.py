"""The configuration files of the game, and the command that the README gives for it."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from cogeval.cli.composing import Composer
from cogeval.config import conf_dir
from cogeval.games import make_game
from cogeval.games.cogmud.vocabulary import VERBS

ROOT = Path(__file__).parents[3]
RULES = (ROOT / "cogeval" / "games" / "cogmud" / "RULES.md").read_text(encoding="utf-8")


def test_the_game_file_has_every_parameter_with_its_default() -> None:
    read = yaml.safe_load((ROOT / "conf" / "game" / "cogmud.yaml").read_text())
    assert read == {"name": "cogmud", **make_game("cogmud").parameters}


def test_the_pool_has_every_baseline_and_chance() -> None:
    agents = yaml.safe_load((ROOT / "conf" / "pool" / "cogmud_baselines.yaml").read_text())["agents"]
    baselines = {name: {"kind": "baseline", "baseline": name} for name in make_game("cogmud").spec.baselines}
    assert agents == {**baselines, "random": {"kind": "random"}}


def test_the_command_of_the_readme_composes() -> None:
    commands = re.findall(r"`cogeval run (game=cogmud[^`]*)`", (ROOT / "README.md").read_text())
    (overrides,) = commands
    composed = Composer(conf_dir()).compose(overrides.split())
    assert composed.game.name == "cogmud"
    assert list(composed.pool.agents) == ["factor", "magpie", "random"]  # the pool follows the game


def test_r3_3_the_rules_list_every_verb() -> None:
    table = RULES.partition("- R3.3")[2].partition("- R3.4")[0]
    listed = " ".join(re.findall(r"^\| ([a-z ]+) \| `", table, re.MULTILINE)).split()
    assert sorted(listed) == sorted(VERBS)
