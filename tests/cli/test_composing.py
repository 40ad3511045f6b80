from __future__ import annotations

import logging
from pathlib import Path

import pytest

from cogeval.cli.composing import Composer
from cogeval.config import conf_dir
from cogeval.errors import InputError


def jobs(*overrides: str) -> list[list[str]]:
    return Composer(conf_dir()).jobs(overrides)


def test_a_sweep_is_the_product_of_its_values_the_last_key_fastest() -> None:
    assert jobs("game.rounds=3,4", "seed=range(1,3)", "tracking=off") == [
        [f"game.rounds={rounds}", f"seed={seed}", "tracking=off"] for rounds in (3, 4) for seed in (1, 2)
    ]


def test_choice_and_glob_are_swept_and_quoted_commas_are_not() -> None:
    assert jobs("schedule=choice(rotations,round_robin)") == [
        ["schedule=rotations"],
        ["schedule=round_robin"],
    ]
    assert jobs("game=glob(cogchem*)") == [["game=cogchemists"]]
    assert jobs("run.root='a,b'", "~pool.agents.quack") == [["run.root='a,b'", "~pool.agents.quack"]]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("seed=interval(0,1)", "an interval has no list of values"),
        ("game=glob(nothing*)", "gives no value to sweep over"),
        ("seed=[1", "whose value cannot be read"),
    ],
)
def test_what_cannot_be_swept_is_named(override: str, said: str) -> None:
    with pytest.raises(InputError, match=r"seed|game") as caught:
        jobs(override)
    assert said in str(caught.value)


def test_sweep_values_may_stand_in_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "short.yaml").write_text(
        "# @package _global_\nhydra:\n  sweeper:\n    params:\n      game.rounds: 3,4\n"
    )
    composer = Composer(conf_dir(), str(tmp_path))
    assert composer.jobs(["experiment=short"]) == [[f"game.rounds={n}", "experiment=short"] for n in (3, 4)]


def test_a_users_directory_adds_options_and_a_primary_configuration(cogeval, tmp_path: Path) -> None:
    (tmp_path / "mine" / "pool").mkdir(parents=True)
    (tmp_path / "mine" / "pool" / "two.yaml").write_text("agents:\n  a: {kind: random}\n")
    (tmp_path / "mine" / "nightly.yaml").write_text("defaults: [config, _self_]\nseed: 99\n")
    answer = cogeval("run", "--config-dir", "mine", "pool=two", "--cfg", "job", "-p", "pool")
    assert answer.out == "# @package pool\nagents:\n  a:\n    kind: random\n"
    answer = cogeval("run", "-cd", "mine", "-cn", "nightly", "--cfg", "job")
    assert "\nseed: 99\n" in answer.out
    assert "two" in cogeval("agents", "--config-dir", "mine").out
    assert "expected a directory, got 'nowhere'" in cogeval("run", "--config-dir", "nowhere").err
    answer = cogeval("run", "-cd", "mine", "-cn", "nightl")
    assert "unknown configuration in --config-name: 'nightl'; known, closest first: nightly" in answer.err


def test_cfg_prints_what_hydra_prints(cogeval) -> None:
    answer = cogeval("run", "--cfg", "job", "game.rounds=4")
    assert answer.code == 0
    assert "game:\n  name: cogchemists\n  rounds: 4\n" in answer.out
    assert "hydra:" not in answer.out
    assert cogeval("run", "--cfg", "hydra").out.startswith("hydra:\n")
    assert cogeval("run", "--cfg", "job", "-p", "gam").code == 2
    assert "unknown key 'sed'" in cogeval("run", "--cfg", "job", "sed=1").err


def test_info_prints_the_defaults_list(cogeval) -> None:
    assert "| game/cogchemists" in cogeval("run", "--info", "defaults").out


@pytest.mark.parametrize("argv", [("--cfg", "all"), ("--info",), ("--plan",), ("-m", "--plan", "seed=1,2")])
def test_hydra_leaves_nothing_behind(cogeval, tmp_path: Path, argv: tuple[str, ...]) -> None:
    handlers = list(logging.getLogger().handlers)
    assert cogeval("run", "schedule.blocks=2", "game.rounds=3", *argv).code == 0
    assert list(tmp_path.iterdir()) == []
    assert Path.cwd() == tmp_path
    assert logging.getLogger().handlers == handlers


def test_every_option_of_every_group_composes() -> None:
    composer = Composer(conf_dir())
    for group in composer.groups():
        for name in composer.options(group):
            composer.compose([f"{group}={name}"])
