"""docs/models.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from cogeval.agents import build_agent
from cogeval.agents.llm.building import _ALLOWED
from cogeval.agents.llm.connecting import KEYS, PROVIDERS
from cogeval.agents.llm.prompts import PromptText
from cogeval.agents.llm.provider import JSON_STYLES
from cogeval.cli.composing import Composer
from cogeval.config import build_experiment, build_plan, read_config
from cogeval.files import conf_dir
from cogeval.games import make_game

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def rows(heading):
    """Name -> second cell of the rows of the table under a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = section.partition("|---|")[2]
    return {name: cell.strip() for name, cell in re.findall(r"^\| `(\w+)` \|([^|]*)\|", table, re.MULTILINE)}


def test_the_table_of_settings_is_complete_and_its_defaults_are_true():
    table = rows("Settings")
    assert list(table) == list(_ALLOWED)
    for name, (_, default) in _ALLOWED.items():
        said = table[name].strip("`")
        if name == "version":
            assert said == f'"{default}"'
        elif default is not None:
            assert said == str(default)


def test_the_page_names_every_provider_key_json_style_and_part_of_a_prompt():
    assert list(rows("Providers")) == list(PROVIDERS)
    assert list(rows("What it is asked")) == list(JSON_STYLES)
    for name in (*filter(None, KEYS.values()), *PromptText.__struct_fields__):
        assert f"`{name}`" in PAGE


def test_the_pages_yaml_builds_a_run(tmp_path):
    pool, limits = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / "models.yaml").write_text(pool)
    composed = Composer(conf_dir(), str(tmp_path)).compose(["pool=models", "limits.spend_usd=2"])
    assert len(build_experiment(read_config(composed)).agents) == 4
    accounts = msgspec.yaml.decode(limits)["limits"]["accounts"]
    game = make_game("cogmud")
    model = {"kind": "llm", "provider": "anthropic", "model": "m"}
    assert build_agent("x", game, model).seated.agent.account in accounts


def test_the_example_pools_compose_to_a_run_that_limits_their_accounts():
    for pool in ("models_anthropic", "models_openai", "models_local"):
        for game in ("cogchemists", "cogmud", "cogz"):
            experiment = build_experiment(
                read_config(Composer(conf_dir()).compose([f"pool={pool}", f"game={game}"]))
            )
            assert build_plan(experiment, "run", "/nowhere").agents == experiment.agents
