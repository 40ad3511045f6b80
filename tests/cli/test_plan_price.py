"""What a plan says of money: by agent and account, against the cap, and what nobody prices by name."""

from __future__ import annotations

import pytest

from cogeval.cli.composing import Composer
from cogeval.cli.continuing import enough_usd
from cogeval.cli.picking import local_resources
from cogeval.config import (
    build_experiment,
    build_plan,
    conf_dir,
    config_from_yaml,
    config_to_yaml,
    read_config,
)
from cogeval.core.agent import Price

SERVED = "provider: openai, base_url: 'http://localhost:1/v1'"
CHEAP = (
    f"+pool.agents.cheap={{kind: llm, {SERVED}, model: m, max_tokens: 100, price: {{input: 1, output: 4}}}}"
)
DEAR = (
    f"+pool.agents.dear={{kind: llm, {SERVED}, model: n, account: other, max_tokens: 1000, "
    "prompt: none, price: {input: 10, output: 40}}"
)
UNPRICED = f"+pool.agents.odd={{kind: llm, {SERVED}, model: nobodys}}"
SMALL = (
    "schedule=rotations",
    "schedule.blocks=4",
    "game.rounds=3",
    "~pool.agents.random",
    "~pool.agents.quack",
)


def planned(cogeval, *overrides):
    answer = cogeval("run", "--plan", "--json", *SMALL, *overrides)
    assert answer.code == 0, answer.err
    return answer.json


def test_an_agents_price_is_its_decisions_at_its_prompts_and_longest_replies(cogeval) -> None:
    said = planned(cogeval, CHEAP, DEAR)
    agents = {agent["agent"]: agent for agent in said["price"]["agents"]}
    assert list(agents) == ["cheap", "dear"]
    for agent, (price_in, price_out, longest) in (("cheap", (1, 4, 100)), ("dear", (10, 40, 1000))):
        found = agents[agent]
        assert found["decisions"] > 0
        assert found["tokens_out"] == found["decisions"] * longest
        assert found["tokens_in"] > 500 * found["decisions"]  # the game's rules are in every request
        assert found["usd_low"] == pytest.approx(found["tokens_in"] * price_in / 1e6, abs=1e-6)
        high = found["usd_low"] + found["tokens_out"] * price_out / 1e6
        assert found["usd_high"] == pytest.approx(high, abs=1e-5)
    assert sum(agent["decisions"] for agent in agents.values()) == said["model_calls"]
    # The default prompt's words are paid for, too.
    per_decision = {name: agent["tokens_in"] / agent["decisions"] for name, agent in agents.items()}
    assert per_decision["cheap"] > per_decision["dear"]
    accounts = said["price"]["accounts"]
    assert list(accounts) == ["localhost_1", "other"]
    assert said["price_usd_high"] == pytest.approx(sum(account["usd_high"] for account in accounts.values()))
    assert said["price_usd_low"] == pytest.approx(sum(account["usd_low"] for account in accounts.values()))


def test_a_plan_shows_each_model_agent_with_its_account_in_a_line_of_eighty_columns(cogeval) -> None:
    twin = DEAR.replace("agents.dear", "agents.a_name_of_24_characters__")
    shown = cogeval("run", "--plan", *SMALL, CHEAP, DEAR, twin).out
    assert max(len(line) for line in shown.splitlines()) <= 80
    table = shown.partition("model agent")[2]
    assert [line.split()[:2] for line in table.splitlines()[2:4]] == [
        ["cheap", "localhost_1"],
        ["dear", "other"],
    ]
    assert "together" in table
    alone = cogeval("run", "--plan", *SMALL, CHEAP).out
    assert "cheap       localhost_1" in alone
    assert "together" not in alone


def test_a_cap_below_what_is_under_way_at_once_is_advised_on_before_the_money_is_gone(cogeval) -> None:
    high = planned(cogeval, CHEAP)["price_usd_high"]
    setting = ("cluster.workers=2", "cluster.episodes_in_flight=8")

    def advice(cap_usd, *more):
        shown = cogeval("run", "--plan", *SMALL, CHEAP, f"limits.spend_usd={cap_usd}", *setting, *more).out
        return " ".join(shown.split())

    assert "set cluster.episodes_in_flight=2, or half-played" in advice(high * 4.5 / 8)
    assert "set cluster.workers=1 cluster.episodes_in_flight=1, or" in advice(high * 1.5 / 8)
    assert "buys none" in advice(high * 0.1 / 8)
    assert "under way at once" not in advice(high * 1.01)
    assert "under way at once" not in advice(high * 5 / 8, "cluster.episodes_in_flight=2")


def test_a_plan_compares_with_the_cap(cogeval) -> None:
    high = planned(cogeval, CHEAP)["price_usd_high"]
    low = planned(cogeval, CHEAP)["price_usd_low"]
    for cap, said in (
        (2 * high, "within the cap"),
        ((low + high) / 2, "lies between"),
        (low / 2, "more than the cap"),
    ):
        shown = cogeval("run", "--plan", *SMALL, CHEAP, f"limits.spend_usd={cap}").out
        assert said in " ".join(shown.split())
    assert planned(cogeval, CHEAP, "limits.spend_usd=3")["price"]["cap_usd"] == 3


def test_a_model_without_a_price_is_named_and_the_run_may_give_it_one(cogeval) -> None:
    said = planned(cogeval, CHEAP, UNPRICED)
    assert said["price"]["unpriced"] == ["odd"]
    assert (said["price_usd_low"], said["price_usd_high"]) == (None, None)
    shown = " ".join(cogeval("run", "--plan", *SMALL, UNPRICED).out.split())
    assert "no price is known for nobodys of odd: set its price, or limits.prices" in shown
    priced = "+limits.prices.nobodys={input: 1, output: 4}"
    assert planned(cogeval, UNPRICED, priced)["price"]["unpriced"] == []
    capped = cogeval("run", "--plan", *SMALL, UNPRICED, priced, "limits.spend_usd=1")
    assert capped.code == 0, capped.err


def test_a_plan_needs_no_key_and_a_run_misses_it_before_anything_starts(
    cogeval, monkeypatch, tmp_path
) -> None:
    monkeypatch.delenv("A_KEY_OF_MINE", raising=False)
    keyed = CHEAP.replace("model: m,", "model: m, api_key_env: A_KEY_OF_MINE,")
    planned = cogeval("run", "--plan", *SMALL, keyed)
    assert planned.code == 0
    assert "cogeval: warning: pool.agents.cheap: expected a key in the environment" in planned.err
    elsewhere = cogeval("run", "--plan", *SMALL, keyed, "cluster.address=auto")
    assert (elsewhere.code, elsewhere.err) == (0, "")  # its workers have keys of their own
    answer = cogeval("run", *SMALL, keyed, "tracking=off")
    assert answer.code == 2
    assert (
        "pool.agents.cheap: expected a key in the environment variable A_KEY_OF_MINE, got none" in answer.err
    )
    assert not list(tmp_path.rglob("manifest.json"))


def test_a_wrong_price_of_the_run_is_refused_by_name(cogeval) -> None:
    answer = cogeval("run", "--plan", "+limits.prices.m={input: 1}")
    assert answer.code == 2
    assert "limits.prices.m: expected {input: DOLLARS" in answer.err


@pytest.mark.parametrize(
    ("spent", "cap", "recorded", "scheduled", "expected", "said"),
    [
        (5.02, 5.0, 132, 200, None, "8.4"),  # all of it costs 7.61 at this rate
        (0.5, 0.5, 2, 6, None, "1.7"),
        (0.0041, 0.004, 0, 10, None, "0.0091"),
        (0.0041, 0.004, 0, 10, 3.0, "3.4"),  # nothing ended: what the plan expects, and what is gone
        (420.0, 400.0, 1, 3, None, "1400"),
        (0.9, 1.0, 9, 10, None, "1.1"),  # always more than the cap
    ],
)
def test_the_cap_that_a_paused_run_proposes_follows_from_what_it_spent(
    spent, cap, recorded, scheduled, expected, said
) -> None:
    proposed = enough_usd(spent, cap, recorded, scheduled, expected)
    assert proposed == said
    assert float(proposed) > cap


def test_a_runs_prices_reach_its_workers_and_the_agents_that_are_tried() -> None:
    priced = "+limits.prices.nobodys={input: 1, output: 4}"
    config = read_config(Composer(conf_dir()).compose([UNPRICED, priced]))
    experiment = build_experiment(config)
    expected = {"nobodys": Price(1.0, 4.0)}
    assert build_plan(experiment, "run", "/nowhere").prices == expected
    assert local_resources(experiment).prices == expected
    assert config_from_yaml(config_to_yaml(config)) == config
