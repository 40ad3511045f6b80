"""Every game and every agent of the tables passes the shared checks; there are no exceptions."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from cogeval.agents import AGENTS, build_agent
from cogeval.core.agent import Reply
from cogeval.core.rng import stream
from cogeval.games import GAMES, make_game
from cogeval.testing.checks import check_agent, check_game
from cogeval.testing.golden import PARAMETER_SETS
from cogeval.testing.replies import WRITE_REPLY
from cogeval.testing.walks import legal_actions

VARIANTS = [
    pytest.param(name, parameters, id=f"{name}-{label}")
    for name in GAMES
    for label, parameters in PARAMETER_SETS.get(name, {"default": {}}).items()
]


class FirstLegal:
    """A user's agent: the first legal action that comes to hand, as a reply for the game to read."""

    def __init__(self, game):
        self._game = game

    def decide(self, request):
        action = legal_actions(request.decision.legal, stream(0, "first"))[0]
        return Reply(payload=WRITE_REPLY[self._game.spec.name](request.decision, action))


ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, str(ROOT / "docs" / "examples" / "chance.py")]

SETTINGS = {
    "baseline": lambda game, url: [{"baseline": name} for name in game.spec.baselines],
    "llm": lambda game, url: [{"provider": "openai", "model": "tiny", "base_url": url}],
    "process": lambda game, url: [{"command": PROGRAM}],
    "python": lambda game, url: [{"_target_": f"{__name__}.FirstLegal", "deterministic": True}],
    "random": lambda game, url: [{}],
}
"""Kind of agent -> its settings for a game and a model server; a kind of the table not here fails."""


@pytest.fixture
def model_url(monkeypatch):
    """A server of models on loopback that plays by the rules."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "llm"))
    monkeypatch.setenv("OPENAI_API_KEY", "nobody's")
    with importlib.import_module("server").ModelServer() as server:
        yield server.openai_url


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_every_game_passes_the_shared_checks(name, parameters):
    check_game(make_game(name, **parameters), seeds=(0, -7))


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("name", GAMES)
def test_every_agent_passes_the_shared_checks(name, kind, model_url):
    game = make_game(name)
    for settings in SETTINGS[kind](game, model_url):
        entry = build_agent("it", game, {"kind": kind, **settings})
        check_agent(entry.seated.agent, game, seeds=(0,), deterministic=entry.seated.deterministic)
