"""The example programs of docs/agent-protocol.md play whole episodes of every game without a fault."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest
from process_stage import faults

from cogeval.agents import build_agent
from cogeval.agents.process.launch import Bounds
from cogeval.agents.process.seat import MOST_LISTED
from cogeval.core.episode import play
from cogeval.games import GAMES, make_game

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "agent-protocol.md").read_text()
EXAMPLES = {
    "chance.py": ["python3", "chance.py"],
    "first_legal.sh": ["bash", "first_legal.sh"],
    "first_legal.mjs": ["node", "first_legal.mjs"],
}
NEEDED = {"first_legal.sh": "jq", "first_legal.mjs": "node"}


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", GAMES)
def test_an_example_plays_an_episode(monkeypatch, name, example):
    if shutil.which(NEEDED.get(example, "python3")) is None:
        pytest.skip(f"{NEEDED[example]} is not installed")
    monkeypatch.chdir(DOCS / "examples")
    game = make_game(name)
    settings = {"kind": "process", "command": EXAMPLES[example], "files": [example]}
    tried = build_agent("tried", game, settings).seated
    chance = build_agent("chance", game, {"kind": "random"}).seated
    episode = asyncio.run(play(game, 5, [tried, *[chance] * (game.seats - 1)]))
    assert not faults(episode), faults(episode)[0].detail


def test_every_example_is_shown_as_it_is():
    for example in EXAMPLES:
        assert (DOCS / "examples" / example).read_text().strip() in PAGE, example


def test_the_page_has_every_limit_with_its_default():
    for name in Bounds.__struct_fields__:
        default = getattr(Bounds(), name)
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        assert re.search(rf"^\| `{name}` \| {shown} \|", PAGE, re.MULTILINE), name
    assert f"{MOST_LISTED} legal actions" in PAGE
