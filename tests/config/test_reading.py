"""What a configuration may not hold, and what the message says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from cogeval.agents import build_agent
from cogeval.agents.entry import source_digest
from cogeval.config import build_experiment, conf_dir, config_from_plain, config_from_yaml, config_to_yaml
from cogeval.errors import InputError
from cogeval.games import make_game


def plain(**groups: Any) -> dict[str, Any]:
    with initialize_config_dir(str(conf_dir()), version_base=None):
        whole: Any = OmegaConf.to_container(compose("config"), resolve=True)
    return {k: {**v, **groups[k]} if k in groups and isinstance(v, dict) else v for k, v in whole.items()}


def test_the_configuration_reads_back_from_the_run_directory_as_it_was() -> None:
    config = config_from_plain(plain())
    assert config_from_yaml(config_to_yaml(config)) == config
    assert (
        build_experiment(config_from_yaml(config_to_yaml(config))).digest == build_experiment(config).digest
    )


@pytest.mark.parametrize("key", ["api_key", "OPENAI_API_KEY", "password", "authToken", "secret"])
def test_a_secret_in_the_pool_is_refused_and_not_quoted(key: str) -> None:
    agents = {"model": {"_target_": "a.B", "deep": {key: "s3cr3t-value"}}}
    with pytest.raises(InputError, match=f"{key}.*environment variable") as caught:
        config_from_plain(plain(pool={"agents": agents}))
    assert "s3cr3t-value" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"api_key_env": "MY_KEY"}, {"max_tokens": 20}, {"token_price": 0.1}])
def test_the_name_of_a_variable_and_numbers_of_tokens_are_no_secrets(settings: dict[str, Any]) -> None:
    config_from_plain(plain(pool={"agents": {"model": {"_target_": "a.B", **settings}}}))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"pool": {"agents": {3: {"kind": "random"}}}}, "pool.agents: expected text as a name, got 3"),
        ({"pool": {"agents": {" ": {"kind": "random"}}}}, "pool.agents: expected a name of 1 to 80"),
        ({"run": {"root": "s3://key:hush@bucket/runs"}}, "take it out"),
        ({"rating": {"anchor": "quak"}}, "known, closest first: quack"),
        ({"deadlines": {"on_fault": "basline"}}, "known, closest first: baseline"),
    ],
)
def test_a_wrong_value_is_quoted_with_its_key(groups: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        config_from_plain(plain(**groups))
    assert words in str(caught.value)


def test_more_blocks_than_a_ledger_holds_are_refused() -> None:
    with pytest.raises(InputError, match="at most 100,000,000, got 99999999999"):
        build_experiment(config_from_plain(plain(schedule={"blocks": 99999999999})))


def test_a_parameter_set_to_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"pool\.agents\.x\.version: expected str, got None"):
        build_agent("x", make_game("cogchemists"), {"kind": "random", "version": None})


def test_a_change_anywhere_in_its_package_changes_an_agent(tmp_path: Path, monkeypatch: Any) -> None:
    deep = tmp_path / "agents_of_mine" / "bold"
    deep.mkdir(parents=True)
    (tmp_path / "agents_of_mine" / "__init__.py").touch()
    (tmp_path / "agents_of_mine" / "shared.py").write_text("DEPTH = 1\n")
    (deep / "__init__.py").touch()
    (deep / "agent.py").write_text("class Bold:\n    def decide(self, request):\n        ...\n")
    before = source_digest(deep / "agent.py")
    (tmp_path / "agents_of_mine" / "shared.py").write_text("DEPTH = 2\n")
    assert source_digest(deep / "agent.py") != before
    monkeypatch.syspath_prepend(tmp_path)
    entry = build_agent(
        "bold", make_game("cogchemists"), {"_target_": "agents_of_mine.bold.agent.Bold", "is_model": True}
    )
    assert entry.seated.is_model
    assert not entry.seated.deterministic
    sys.modules.pop("agents_of_mine.bold.agent", None)
