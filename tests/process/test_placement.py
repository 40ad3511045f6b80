"""A Python agent decides the same inline and in a process, which is a matter of one word in its pool."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import sysconfig

import pytest
from process_stage import faults

from cogeval.agents import build_agent
from cogeval.core.episode import Fallback, play
from cogeval.core.seat import Deadlines
from cogeval.errors import InputError
from cogeval.games import GAMES, make_game
from cogeval.testing.agent_checks import check_agent


def entry(name, game, **settings):
    return build_agent("placed", game, {"_target_": f"placed_agents.{name}", **settings})


def played(game, made, *, decision_s=30.0, on_fault="pass", seed=11):
    seated = pickle.loads(pickle.dumps(made)).seated  # as it travels to a worker
    chance = build_agent("chance", game, {"kind": "random"}).seated
    seats = [chance, seated, *[chance] * (game.seats - 2)]
    deadlines = Deadlines(decision_s=decision_s, retry_s=decision_s)
    return asyncio.run(play(game, seed, seats, fallback=Fallback(on_fault), deadlines=deadlines))


@pytest.mark.parametrize("name", ["Drawer", "Eventual", "Stumbling", "Replying"])
@pytest.mark.parametrize("game_name", GAMES)
def test_an_agent_decides_the_same_inline_and_in_a_process(game_name, name):
    game = make_game(game_name)
    inline = played(game, entry(name, game, deterministic=True))
    placed = played(game, entry(name, game, deterministic=True, placement="process"))
    assert placed.digest == inline.digest
    told = [[(a.phase, a.attempt, a.fault, a.usage, a.model, a.text) for a in e.attempts if a.seat == 1]
            for e in (inline, placed)]  # fmt: skip
    assert told[0] == told[1]


def test_placement_is_no_part_of_the_fingerprint_and_code_is():
    game = make_game("cogz")
    inline, placed = entry("Drawer", game), entry("Drawer", game, placement="process")
    assert inline.fingerprint == placed.fingerprint
    assert entry("Drawer", game, placement="process", version="2").fingerprint != placed.fingerprint


def test_a_placed_agent_is_made_elsewhere_and_told_of_its_end(tmp_path):
    game, log = make_game("cogz"), tmp_path / "log"
    episode = played(game, entry("Drawer", game, placement="process", log=str(log)))
    made, closed = log.read_text().splitlines()
    assert made != f"made {os.getpid()}"
    assert closed == f"closed {episode.results.seats[1].score}"


def test_a_placed_agent_that_holds_its_interpreter_is_given_up_at_its_deadline():
    game = make_game("cogz")
    episode = played(game, entry("Hanging", game, placement="process"), decision_s=0.3, on_fault="forfeit")
    (fault,) = faults(episode, seat=1)
    assert fault.fault == "timeout"
    assert not faults(episode, seat=0)


def test_a_constructor_that_fails_is_named_with_what_it_raised():
    game = make_game("cogz")
    episode = played(game, entry("Drawer", game, placement="process", log=3.5), on_fault="forfeit")
    (fault,) = faults(episode, seat=1)
    assert "the agent could not be made: TypeError" in fault.detail


def test_a_module_that_is_not_there_is_looked_for_where_a_user_may_put_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "own"), "", *sys.path])
    with pytest.raises(InputError) as caught:
        build_agent("placed", make_game("cogz"), {"_target_": "no_such_module.Agent"})
    said = str(caught.value)
    assert f"looked in {tmp_path / 'own'}, {tmp_path}," in said
    assert "-packages" not in said
    assert sysconfig.get_path("stdlib") not in said
    assert sysconfig.get_path("scripts") not in said


def test_the_shared_checks_of_agents_hold_for_a_placed_one():
    game = make_game("cogz")
    made = entry("Drawer", game, deterministic=True, placement="process")
    check_agent(made.seated.agent, game, (0,), deterministic=True)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"placement": "elsewhere"}, "unknown placement"),
        ({"placement": "process", "limits": {"memory": 3}}, "limits: memory: expected one of memory_mb"),
        ({"placement": "process", "limits": {"cpu_s": -1}}, "cpu_s: expected more than 0, got -1"),
        ({"placement": "process", "limits": {"cpu_s": "all"}}, "limits: Expected `int | null`, got `str`"),
        ({"placement": "process", "limits": 3}, "limits: expected dict, got 3"),
    ],
)
def test_a_wrong_placement_is_refused_in_its_own_words(settings, what):
    with pytest.raises(InputError, match=r"pool.agents.placed|placed") as caught:
        entry("Drawer", make_game("cogz"), **settings)
    assert what in str(caught.value)
