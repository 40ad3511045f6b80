"""The pages for users do as they say: docs/agents.md, configuration.md, games.md, and store.md's replay."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import yaml

from cogeval.cli.arguments import Arguments, read_arguments
from cogeval.cli.composing import Composer
from cogeval.cli.settings import composer_of
from cogeval.cli.verbs import VERBS
from cogeval.config import build_experiment, conf_dir, read_config
from cogeval.core.agent import Seated
from cogeval.core.episode import play
from cogeval.core.game import Game
from cogeval.core.record import FAULTS
from cogeval.core.rng import stream
from cogeval.games import make_game
from cogeval.games.cogchemists.constants import INGREDIENTS, SIGNATURES
from cogeval.games.cogchemists.view import Observation as CogchemistsObservation
from cogeval.games.cogmud.view import Observation
from cogeval.games.cogz.state import Swap
from cogeval.games.cogz.view import Observation as CogzObservation
from cogeval.schedule.designs import DESIGNS
from cogeval.store.read import episode_journal
from cogeval.testing.checks import check_agent
from cogeval.testing.replies import write_cogchemists_reply

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
AGENTS, CONFIGURATION, GAMES = [
    (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("agents", "configuration", "games")
]


def saved(page: str, folder: Path) -> list[str]:
    """Writes the files that a page says to save; gives their names."""
    found = re.findall(r"this as `([\w/.]+)`:\n\n```\w+\n(.*?)```", page, re.DOTALL)
    for name, text in found:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return [name for name, _ in found]


def command(page: str) -> Arguments:
    """The page's command in a block of its own."""
    (line,) = re.findall(r"^cogeval run .*$", page, re.MULTILINE)
    return read_arguments(VERBS["run"], shlex.split(line)[2:])


@pytest.fixture
def no_agents_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "my_agents", raising=False)


@pytest.mark.usefixtures("no_agents_imported")
def test_the_first_agent_of_the_page_gets_onto_the_ladder(cogeval, make_run, tmp_path: Path) -> None:
    assert saved(AGENTS, tmp_path)[:2] == ["my_agents.py", "mine/pool/eager.yaml"]
    given = command(AGENTS)
    directory = tmp_path / str(given.value("--config-dir"))
    make_run(f"hydra.searchpath=[file://{directory}]", *given.overrides, "schedule.blocks=8")
    said = cogeval("show", "latest", "--json").json
    assert {a["name"] for a in said["agents"]} == {"eager", "patient", "quack", "chance"}
    assert (said["recorded"], said["faults"]) == (8, 0)
    assert all(a["elo"] is not None for a in said["agents"])
    assert cogeval("audit", "latest").code == 0


@pytest.mark.cluster
@pytest.mark.usefixtures("no_agents_imported")
def test_the_command_of_the_page_plays_in_workers(cogeval, tmp_path: Path, monkeypatch) -> None:
    saved(AGENTS, tmp_path)
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"^cogeval (run .*)$", AGENTS, re.MULTILINE)
    answer = cogeval(*shlex.split(line), "schedule.blocks=4", "tracking=off", "cluster.workers=1", "--json")
    assert (answer.code, answer.json["recorded"], answer.json["faults"]) == (0, 4, 0)


def test_the_model_agent_of_the_page_passes_the_shared_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    game = make_game("cogchemists", rounds=3)
    seen: list[str] = []

    async def ask(key: str, model: str, system: str, user: str, schema: Any) -> Any:
        seen.append(key)
        market = "signature" in schema["properties"]
        decision: Any = types.SimpleNamespace(kind="market" if market else "lab")
        reply = write_cogchemists_reply(decision, game.action_from_wire({"action": "pass"}))
        return types.SimpleNamespace(
            text=json.dumps(reply), tokens_in=9, tokens_out=1, cost_usd=0.1, model=model
        )

    (code,) = [block for block in re.findall(r"```python\n(.*?)```", AGENTS, re.DOTALL) if "Asking" in block]
    names: dict[str, Any] = {"ask": ask}
    exec(code, names)
    monkeypatch.setenv("MY_API_KEY", "k")
    check_agent(lambda game: names["Asking"](game, "m", "MY_API_KEY"), game, seeds=(0,), deterministic=False)
    assert set(seen) == {"k"}


@pytest.fixture
def courier(tmp_path: Path) -> Any:
    saved(AGENTS, tmp_path)
    names: dict[str, Any] = {}
    exec((tmp_path / "couriers.py").read_text(), names)
    return names["Courier"]


def test_the_courier_of_the_page_passes_the_shared_checks(courier: Any) -> None:
    check_agent(courier, make_game("cogmud", turns=8), seeds=(0,), deterministic=True)


def test_the_courier_of_the_page_delivers_what_was_ordered(courier: Any) -> None:
    seated = Seated("courier", lambda seat, rng: courier(), deterministic=True)
    episodes = [asyncio.run(play(make_game("cogmud"), seed, [seated] * 6)) for seed in range(3)]
    delivered = [seat.statistics["delivered"] for e in episodes for seat in e.results.seats]
    assert sum(delivered) > 3 * len(delivered)  # of 4
    assert not any(attempt.fault for e in episodes for attempt in e.attempts)


@pytest.mark.usefixtures("courier")
def test_the_command_for_the_courier_seats_it_beside_the_baselines(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "couriers", raising=False)
    (line,) = re.findall(r"`cogeval (run [^`]*game=cogmud[^`]*)`", AGENTS)
    given = read_arguments(VERBS["run"], shlex.split(line)[1:])
    experiment = build_experiment(read_config(composer_of(given).compose(given.overrides)))
    assert [agent.name for agent in experiment.agents] == ["courier", "factor", "magpie"]
    assert (experiment.game.spec.name, experiment.agents[0].seated.deterministic) == ("cogmud", True)


@pytest.fixture
def leveller(tmp_path: Path) -> Any:
    saved(AGENTS, tmp_path)
    names: dict[str, Any] = {}
    exec((tmp_path / "levellers.py").read_text(), names)
    return names["Leveller"]


@pytest.mark.parametrize("seats", [2, 5])
def test_the_leveller_of_the_page_passes_the_shared_checks(leveller: Any, seats: int) -> None:
    check_agent(leveller, make_game("cogz", seats=seats), seeds=(0,), deterministic=True)


def test_the_leveller_of_the_page_beats_the_greed_for_points(leveller: Any) -> None:
    game = make_game("cogz")
    won = 0
    for seed in range(10):
        agent, state = leveller(), game.initial_state(seed)
        while decisions := game.decisions(state):
            (decision,) = decisions
            if decision.seat == seed % 2:
                request: Any = types.SimpleNamespace(
                    observation=game.observe(state, decision.seat), decision=decision
                )
                action = agent.decide(request).action
            else:
                action = game.baseline("greedy_total", state, decision.seat, seed)
            state = game.step(state, {decision.seat: action}).next
        keys = [seat.rank_key for seat in game.results(state).seats]
        won += keys[seed % 2] > keys[1 - seed % 2]
    assert won >= 7


@pytest.mark.usefixtures("leveller")
def test_the_command_for_the_leveller_seats_it_beside_the_baselines(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "levellers", raising=False)
    (line,) = re.findall(r"`cogeval (run [^`]*game=cogz[^`]*)`", AGENTS)
    given = read_arguments(VERBS["run"], shlex.split(line)[1:])
    experiment = build_experiment(read_config(composer_of(given).compose(given.overrides)))
    assert [agent.name for agent in experiment.agents] == ["leveller", "greedy_total", "chance"]
    assert (experiment.game.spec.name, experiment.agents[0].seated.deterministic) == ("cogz", True)


def test_the_game_by_hand_of_the_page_is_played_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = [
        block for block in re.findall(r"```python\n(.*?)```", AGENTS, re.DOTALL) if "results(" in block
    ]
    names: dict[str, Any] = {}
    exec(code, names)
    assert len(json.loads(capsys.readouterr().out)) == 3
    assert names["game"].results(names["state"]).reason == "complete"


def test_the_page_of_agents_names_every_field_of_a_swap() -> None:
    (text,) = re.findall(r"^A swap of the record: (.*?)\n\n", AGENTS, re.MULTILINE | re.DOTALL)
    assert tuple(re.findall(r"`(\w+)`", text)) == Swap.__struct_fields__


@pytest.mark.parametrize(
    ("section", "after", "observation"),
    [
        ("## Cogchemists", "## Cogmud", CogchemistsObservation),
        ("## Cogmud", "## COGZ", Observation),
        ("## COGZ", "## How it is made", CogzObservation),
    ],
)
def test_the_page_of_agents_names_every_field_of_an_observation(
    section: str, after: str, observation: type[CogchemistsObservation | Observation | CogzObservation]
) -> None:
    text = AGENTS.partition(f"\n{section}\n")[2].partition(f"\n{after}\n")[0]
    cells = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)[1:]
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    shown = {name for name, member in vars(observation).items() if isinstance(member, property)}
    assert len(named) == len(set(named))
    assert set(named) == shown | set(observation.__struct_fields__)


def test_the_page_of_agents_names_every_fault() -> None:
    section = AGENTS.partition("## When it fails")[2]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [
        "unreadable", "illegal", "timeout", "exception",
    ]  # fmt: skip
    assert set(FAULTS) == {"unreadable", "illegal", "timeout", "exception"}


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, dict) or prefix == "pool.agents":
        return {prefix: value}
    return {
        k: v
        for key, part in value.items()
        for k, v in flat(part, f"{prefix}.{key}" if prefix else key).items()
    }


def test_every_key_is_documented_with_its_default() -> None:
    composed = json.loads(json.dumps(_plain(Composer(conf_dir()).compose([]))))
    expected = flat(composed)
    documented = {}
    for line in CONFIGURATION.splitlines():
        if found := re.fullmatch(r"\| `([\w.]+)` \| ([^|]+) \| `([^`]+)` \| ([^|]*)\| ([^|]+) \|", line):
            documented[found[1]] = yaml.safe_load(found[3])
    assert documented.pop("pool.agents") == "pool=${game}_baselines"
    assert expected.pop("pool.agents")
    assert documented == expected


def _plain(value: Any) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(value, resolve=True)


def test_every_group_option_and_design_is_named() -> None:
    composer = Composer(conf_dir())
    for group in composer.groups():
        section = CONFIGURATION.partition(f"\n### {group}\n")[2].partition("\n### ")[0]
        for option in composer.options(group):
            assert option in (section or CONFIGURATION), f"{group}={option}"
    for design in DESIGNS:
        assert f"`{design}`:" in CONFIGURATION


def test_the_experiment_of_the_page_composes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert saved(CONFIGURATION, tmp_path) == ["mine/experiment/quick.yaml"]
    monkeypatch.chdir(tmp_path)
    given = command(CONFIGURATION)
    composed = composer_of(given).compose(given.overrides)
    assert (composed.game.rounds, composed.schedule.blocks, composed.seed) == (3, 20, 7)
    assert composed.schedule.design == "rotations"


def test_every_member_of_the_protocol_is_explained() -> None:
    table = GAMES.partition("## The protocol")[2].partition("## Its places")[0]
    members = {*Game.__annotations__, *(n for n, v in vars(Game).items() if n[0] != "_" and callable(v))}
    explained = {
        name
        for cell in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)", cell)
    }
    assert explained == members


def test_an_episode_is_played_again_as_the_store_page_shows(
    make_run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(done=3)
    page = (DOCS / "store.md").read_text(encoding="utf-8")
    attempts, journal = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    exec(attempts, {})
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {"0", "1", "2"}
    exec(journal, {})
    assert capsys.readouterr().out.split()[-1] == episode_journal(run, 0).reason


COGCHEMISTS = AGENTS.partition("## Cogchemists\n")[2].partition("\n## Cogmud\n")[0]


def test_the_page_of_agents_has_the_numbers_of_ingredients_and_signatures() -> None:
    table = re.findall(r"^\| (\d) \| (.*?) \| (.*?) \|$", COGCHEMISTS, re.MULTILINE)
    expected = [(str(i), *names) for i, names in enumerate(zip(INGREDIENTS, SIGNATURES, strict=True))]
    assert table == expected


def test_the_observation_of_the_page_is_one_that_the_game_sends_to_a_program() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", COGCHEMISTS, re.DOTALL)
    game, rng = make_game("cogchemists"), stream(1, "x")
    state = game.initial_state(13)
    for _ in range(2):
        drawn = {d.seat: d.legal.sample(rng) for d in game.decisions(state)}
        state = game.step(state, drawn).next
    sent = json.dumps(game.observation_to_wire(game.observe(state, 3)))
    assert json.loads(text) == json.loads(sent)
    named = set(re.findall(r"`(\w+)`", COGCHEMISTS.partition("```json")[0]))
    assert json.loads(text).keys() <= named
