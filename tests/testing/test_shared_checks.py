"""Every game and every agent of the tables passes the shared checks; there are no exceptions."""

from __future__ import annotations

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


SETTINGS = {
    "baseline": lambda game: [{"baseline": name} for name in game.spec.baselines],
    "python": lambda game: [{"_target_": f"{__name__}.FirstLegal", "deterministic": True}],
    "random": lambda game: [{}],
}
"""Kind of agent -> its settings for a game; a kind of the table that is not here fails."""


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_every_game_passes_the_shared_checks(name, parameters):
    check_game(make_game(name, **parameters), seeds=(0, -7))


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("name", GAMES)
def test_every_agent_passes_the_shared_checks(name, kind):
    game = make_game(name)
    for settings in SETTINGS[kind](game):
        entry = build_agent("it", game, {"kind": kind, **settings})
        check_agent(entry.seated.agent, game, seeds=(0,), deterministic=entry.seated.deterministic)
