"""Kind llm in a pool: its settings, prompts, prices and keys, and what its fingerprint covers."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import msgspec
import pytest

from cogeval.agents import build_agent
from cogeval.agents.llm.connecting import PROVIDERS
from cogeval.agents.llm.prices import cost_usd, price_of, read_price, read_prices
from cogeval.agents.llm.prompts import PromptText, known_prompts
from cogeval.agents.llm.secrets import scrub
from cogeval.core.agent import Price, Resources, Usage
from cogeval.core.quota import UNLIMITED
from cogeval.errors import InputError
from cogeval.files import conf_dir
from cogeval.games import GAMES, make_game

GAME = make_game("cogmud")
LEAST = {"kind": "llm", "provider": "openai", "model": "m"}
POOLS = ("models_anthropic", "models_openai", "models_local")


def build(**settings):
    return build_agent("x", GAME, {**LEAST, **settings})


def test_a_model_is_neither_deterministic_nor_unmarked():
    entry = build()
    assert entry.seated.is_model
    assert not entry.seated.deterministic
    assert entry.kind == "llm"


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", GAMES)
def test_the_example_pools_build_for_every_game_and_pickle(pool, name):
    game = make_game(name)
    agents = msgspec.yaml.decode((conf_dir() / "pool" / f"{pool}.yaml").read_bytes())["agents"]
    entries = [build_agent(agent, game, settings) for agent, settings in agents.items()]
    assert len({entry.fingerprint for entry in entries}) == len(entries)
    for entry in entries:
        if entry.kind == "llm":
            seat = pickle.loads(pickle.dumps(entry.seated.agent))
            assert seat.price_in({}) is not None
            assert seat.model == entry.parameters["model"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"provider": "anthropc"}, r"unknown provider in pool.agents.x.provider: 'anthropc'; .*anthropic"),
        ({"provider": None}, "expected provider: NAME, one of anthropic, bedrock, openai; got none"),
        ({"model": " "}, "expected model: NAME, as the service calls it; got ' '"),
        ({"temprature": 1.0}, r"unknown parameter of agent kind llm in pool.agents.x: 'temprature'"),
        ({"api_key": "sk"}, "unknown parameter .*'api_key'; known, closest first: api_key_env"),
        ({"temperature": "hot"}, "x.temperature: expected float, got 'hot'"),
        ({"temperature": -1}, "x.temperature: expected a number, 0 or more; got -1.0"),
        ({"temperature": True}, "x.temperature: expected float, got True"),
        ({"top_p": float("nan")}, "x.top_p: expected a number"),
        ({"max_tokens": 0}, "x.max_tokens: expected 1 or more, got 0"),
        ({"max_retries": -1}, "x.max_retries: expected 0 or more, got -1"),
        ({"json": "xml"}, "unknown json style of provider openai in pool.agents.x.json: 'xml'"),
        ({"provider": "anthropic", "json": "llama"}, "unknown json style of provider anthropic"),
        ({"provider": "anthropic", "seed": 1}, "x.seed: provider anthropic takes no seed"),
        ({"region": "eu-west-1"}, "x.region: only provider bedrock has regions"),
        ({"base_url": "localhost:8000"}, "x.base_url: expected a URL such as"),
        ({"base_url": "http://me:pass@host/v1"}, "no credentials may be in it"),
        ({"base_url": "ftp://me:pass@host/v1"}, "no credentials may be in it"),
        ({"base_url": "http://host/v1?api_key=sk"}, "no credentials may be in it, nor a query"),
        ({"api_key_env": "gsk_pass@"}, "x.api_key_env: expected the name of an environment variable in cap"),
        ({"api_key_env": "gsk_0123"}, "x.api_key_env: expected .* got 8 characters that are none"),
        ({"extra": {"messages": []}}, "x.extra.messages: cogeval fills this field in"),
        ({"prompt": "cogmudd"}, "unknown prompt in pool.agents.x.prompt: 'cogmudd'.*cogmud.*prompt_file"),
        ({"prompt": 3}, "x.prompt: expected str, got 3"),
        ({"prompt": {"systm_after": "."}}, "unknown part of a prompt in pool.agents.x.prompt: 'systm_after'"),
        ({"prompt": {"system_after": 1}}, "x.prompt: expected text in system_after, got 1"),
        ({"prompt": "none", "prompt_file": "x"}, "expected prompt or prompt_file, got both"),
        ({"prompt_file": "absent.txt"}, "x.prompt_file: cannot read 'absent.txt'"),
        ({"price": {"input": 1}}, r"x.price: expected \{input: DOLLARS"),
        ({"price": {"input": 1, "output": -1}}, "x.price.output: expected dollars, 0 or more; got -1"),
        ({"prices_file": "absent.yaml"}, "cannot read prices from 'absent.yaml'"),
    ],
)
def test_what_is_wrong_with_the_settings_is_quoted(settings, message):
    with pytest.raises(InputError, match=message) as caught:
        build(**settings)
    assert "pass@" not in str(caught.value)


def test_a_null_setting_is_none():
    assert build(base_url=None, temperature=None).fingerprint == build().fingerprint


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "other"}, {"provider": "anthropic"}, {"base_url": "http://host/v1"}, {"prompt": "none"},
        {"prompt": "Win."}, {"temperature": 0.5}, {"seed": 1}, {"max_tokens": 5}, {"json": "object"},
        {"extra": {"a": 1}}, {"version": "2"},
    ],
)  # fmt: skip
def test_the_fingerprint_covers_what_the_model_is_asked(settings):
    assert build(**settings).fingerprint != build().fingerprint


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key_env": "MINE"}, {"account": "team"}, {"max_retries": 1},
        {"price": {"input": 1, "output": 1}},
        {"prompt": "cogmud"},
    ],
)  # fmt: skip
def test_the_fingerprint_does_not_cover_who_pays(settings):
    assert build(**settings).fingerprint == build().fingerprint


def test_an_edited_prompt_file_is_another_agent(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("Be bold.")
    bold = build(prompt_file=str(path))
    path.write_text("Be careful.")
    assert build(prompt_file=str(path)).fingerprint != bold.fingerprint
    assert bold.parameters["prompt"]["system_after"] == "Be bold."


@pytest.mark.parametrize("name", GAMES)
def test_every_game_has_a_default_prompt_around_its_own_text(name):
    game = make_game(name)
    assert name in known_prompts()
    entry = build_agent("x", game, LEAST)
    state = game.initial_state(1)
    text = game.prompt(game.observe(state, game.decisions(state)[0].seat))
    around = entry.seated.agent.prompt.around(text)
    assert text.system in around.system
    assert len(around.system) > len(text.system) + 300
    assert "instruction" in around.system or name == "cogz"


def test_a_bare_prompt_is_the_games_text():
    game = make_game("cogz")
    text = game.prompt(game.observe(game.initial_state(1), 0))
    around = PromptText().around(text)
    assert around.system == text.system.strip("\n")
    assert around.user == text.user.strip("\n")


def test_a_prompt_file_may_name_its_parts(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("system_before: B\nuser_after: U\n")
    assert build(prompt_file=str(path)).seated.agent.prompt == PromptText("B", "", "U")
    path.write_text("[1, 2]")
    with pytest.raises(InputError, match="expected a mapping of system_before, system_after, user_after"):
        build(prompt_file=str(path))
    path.write_text("a: [")
    with pytest.raises(InputError, match="expected YAML in"):
        build(prompt_file=str(path))


def test_requests_count_for_the_servers_account_unless_one_is_named():
    assert build().seated.agent.account == "openai"
    assert build(base_url="http://localhost:8000/v1").seated.agent.account == "localhost_8000"
    assert build(account="team").seated.agent.account == "team"


def test_another_server_is_not_sent_the_providers_key():
    assert build().seated.agent.endpoint.api_key_env == "OPENAI_API_KEY"
    assert build(base_url="http://localhost:8000/v1").seated.agent.endpoint.api_key_env is None
    named = build(base_url="http://localhost:8000/v1", api_key_env="MINE").seated.agent
    assert named.endpoint.api_key_env == "MINE"


@pytest.mark.parametrize("key", ["", "  ", "two\nlines", "schlüssel"])
def test_a_key_that_is_none_is_named_by_its_variable_and_not_quoted(monkeypatch, key):
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(InputError, match=r"pool.agents.x: expected a key .*MY_KEY") as caught:
        build(api_key_env="MY_KEY").seated.agent.bind(Resources())
    assert not key.strip() or key not in str(caught.value)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_without_its_sdk_a_provider_says_what_to_install(monkeypatch, provider):
    monkeypatch.setenv("MY_KEY", "sk-0123456789")
    module = PROVIDERS[provider]
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "openai" if provider == "openai" else "anthropic", None)
    agent = build(provider=provider, api_key_env="MY_KEY").seated.agent
    with pytest.raises(InputError, match=r'not installed .*pip install "cogeval\[llm\]"'):
        agent.bind(Resources())


def test_a_price_comes_from_the_pool_then_the_run_then_the_list(tmp_path):
    run_prices = {"gpt-4.1": Price(7.0, 7.0)}
    path = tmp_path / "prices.yaml"
    path.write_text("gpt-4.1: {input: 5, output: 6}\n")
    assert build(model="gpt-4.1").seated.agent.price_in({}) == read_prices()["gpt-4.1"]
    assert build(model="gpt-4.1").seated.agent.price_in(run_prices) == Price(7.0, 7.0)
    assert build(model="gpt-4.1", prices_file=str(path)).seated.agent.price_in(run_prices) == Price(5.0, 6.0)
    own = build(model="gpt-4.1", price={"input": 0, "output": 1}).seated.agent
    assert own.price_in(run_prices) == Price(0.0, 1.0)
    assert build().seated.agent.price_in({}) is None


def test_a_model_without_a_price_is_named_once(monkeypatch, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    bound = build().seated.agent.bind(Resources(UNLIMITED))
    assert bound.price is None
    assert [r.getMessage() for r in caplog.records] == [
        "pool.agents.x: no price is known for m, so its cost counts as 0"
    ]


@pytest.mark.parametrize(
    "model",
    [
        "claude-haiku-4-5", "claude-haiku-4-5-20251001", "anthropic/claude-haiku-4-5",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic.claude-haiku-4-5-20251001-v1:0",
    ],
)  # fmt: skip
def test_a_listed_model_is_found_under_its_other_names(model):
    prices = read_prices()
    assert price_of(model, prices) == prices["claude-haiku-4-5"]


def test_no_model_is_taken_for_another():
    prices = read_prices()
    for model in ("gpt-4.1-nano-high", "gpt-4", "claude-haiku", "claude-haiku-4-5-fast", "my-gpt-5"):
        assert price_of(model, prices) is None


def test_the_list_orders_prices_as_services_do():
    for model, price in read_prices().items():
        assert price.cached_input is not None, model
        assert 0 < price.cached_input < price.input < price.output, model


def test_a_cost_counts_cached_tokens_at_their_own_price():
    usage = Usage(tokens_in=1_000_000, tokens_out=100_000, tokens_cached=400_000)
    assert cost_usd(Price(2.0, 10.0, 0.5), usage) == pytest.approx(1.2 + 0.2 + 1.0)
    assert cost_usd(Price(2.0, 10.0), usage) == pytest.approx(2.0 + 1.0)
    assert cost_usd(None, usage) == 0.0
    assert read_price("p", {"input": 1, "output": 2}) == Price(1.0, 2.0)


def test_a_scrubbed_text_holds_a_key_in_no_form(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a/b+c0123")
    monkeypatch.setenv("MY_KEY", "sk-a/b+c0123-longer")
    text = scrub("sk-a/b+c0123-longer sk-a/b+c0123 sk-a%2Fb%2Bc0123 c2stYS9iK2MwMTIz", ["MY_KEY"])
    assert text == "<MY_KEY> <OPENAI_API_KEY> <OPENAI_API_KEY> <OPENAI_API_KEY>"
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert scrub("six exact words") == "six exact words"


def test_only_the_provider_modules_import_an_sdk():
    package = Path(sys.modules["cogeval.agents.llm"].__file__).parent
    for path in package.glob("*.py"):
        imports = [
            line
            for line in path.read_text().splitlines()
            if line.startswith(("from anthropic", "import anthropic", "from openai", "import openai"))
        ]
        assert bool(imports) == (path.stem in ("anthropic", "openai")), path
