"""A class decides the same inline, in a process and in a seat actor, which is a matter of one word."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from cogeval.agents import build_agent
from cogeval.agents.actor.build import options_of
from cogeval.agents.actor.options import ActorOptions
from cogeval.core.agent import Resources, bound, released
from cogeval.core.episode import Fallback, play
from cogeval.core.seat import Deadlines
from cogeval.errors import InputError
from cogeval.games import GAMES, make_game
from cogeval.testing.agent_checks import AgentCheckError, check_agent

GAME = make_game("cogz")


def entry(name, game=GAME, **settings):
    return build_agent("acted", game, {"_target_": f"actor_agents.{name}", **settings})


async def _played(game, seated, deadlines, seed):
    chance = build_agent("chance", game, {"kind": "random"}).seated
    here = bound(seated, Resources())
    try:
        return await play(
            game, seed, [chance, here, *[here] * (game.seats - 2)],
            fallback=Fallback("pass"), deadlines=deadlines,
        )  # fmt: skip
    finally:
        await released(here.agent)


def played(game, made, *, decision_s=30.0, seed=11):
    seated = pickle.loads(pickle.dumps(made)).seated  # as it travels to a worker
    return asyncio.run(_played(game, seated, Deadlines(decision_s=decision_s, retry_s=decision_s), seed))


def told(episode):
    return [
        (a.phase, a.seat, a.attempt, a.action_text, a.fault, a.usage, a.model, a.text)
        for a in episode.attempts
    ]


@pytest.mark.parametrize("name", ["Drawer", "Eventual", "Many", "ManyEventual", "Stumbling", "StumblingMany"])
@pytest.mark.parametrize("game_name", GAMES)
def test_an_agent_decides_the_same_inline_and_in_a_seat_actor(game_name, name):
    game = make_game(game_name)
    inline = played(game, entry(name, game, deterministic=True))
    acted = played(game, entry(name, game, deterministic=True, placement="actor"))
    assert acted.digest == inline.digest
    assert told(acted) == told(inline)


def test_memory_and_seed_come_to_an_agent_in_a_process_too():
    inline = played(GAME, entry("Drawer", deterministic=True))
    placed = played(GAME, entry("Drawer", deterministic=True, placement="process"))
    assert told(placed) == told(inline)


def test_a_batch_decides_as_one_at_a_time_does():
    one = played(GAME, entry("Stumbling", placement="actor"))
    many = played(GAME, entry("StumblingMany", placement="actor", actor={"batch": 3}))
    assert many.digest == one.digest


def test_a_decision_that_holds_its_thread_costs_itself_and_nothing_else():
    slow = played(GAME, entry("Stuck", placement="actor"), decision_s=0.5, seed=5)
    late = [a for a in slow.attempts if a.fault is not None]
    assert {a.fault for a in late} == {"timeout"}
    assert all(a.think_s < 2 for a in slow.attempts)


def test_placement_is_no_part_of_the_fingerprint():
    acted = entry("Drawer", placement="actor", actor={"replicas": 3})
    assert acted.fingerprint == entry("Drawer").fingerprint
    assert acted.fingerprint != entry("Drawer", bias=1).fingerprint


def test_an_entry_says_what_its_actors_need():
    acted = entry("Drawer", placement="actor", actor={"replicas": 3, "gpus": 0.5, "memory_mb": 100})
    assert options_of(acted.seated.agent) == ActorOptions(replicas=3, gpus=0.5, memory_mb=100)
    assert options_of(entry("Drawer").seated.agent) is None


@pytest.mark.parametrize("name", ["Drawer", "Eventual", "Many"])
def test_the_shared_checks_of_agents_hold_for_one_in_a_seat_actor(name):
    made = entry(name, placement="actor", deterministic=True)
    check_agent(made.seated.agent, GAME, (0,), deterministic=True)


def test_an_agent_that_cannot_be_made_says_so_at_each_decision():
    episode = played(GAME, entry("Unborn", placement="actor"))
    faults = {(a.fault, a.detail) for a in episode.attempts if a.source == "agent" and a.seat == 1}
    assert faults == {("exception", "the agent could not be made: OSError: no weights")}
    with pytest.raises(AgentCheckError, match="no weights") as found:
        check_agent(entry("Unborn", placement="actor").seated.agent, GAME, (0,), deterministic=False)
    assert found.value.kind == "constructor"


@pytest.mark.parametrize(
    ("name", "settings", "what"),
    [
        ("PerSeat", {}, "asks for 'seat' in its constructor; use request.decision.seat"),
        ("PerStream", {}, "asks for 'rng' in its constructor; use request.seed"),
        ("Drawer", {"actor": {"replica": 1}}, "unknown setting in pool.agents.acted.actor: 'replica'"),
        ("Drawer", {"actor": {"replicas": 0}}, r"actor.replicas: expected int >= 1, got 0"),
        ("Drawer", {"actor": {"replicas": 1.5}}, r"actor.replicas: expected int, got 1.5"),
        ("Drawer", {"actor": {"cpus": "2"}}, r"actor.cpus: expected float, got '2'"),
        ("Drawer", {"actor": {"gpus": float("nan")}}, "actor.gpus: expected a finite number, got nan"),
        ("Drawer", {"actor": {"linger_ms": 5000}}, "actor.linger_ms: expected float <= 1000.0, got 5000"),
        ("Drawer", {"actor": 3}, "pool.agents.acted.actor: expected dict, got 3"),
        ("Drawer", {"placement": "acter"}, "known, closest first: actor"),
    ],
)
def test_wrong_settings_are_refused_in_their_own_words(name, settings, what):
    with pytest.raises(InputError) as refused:
        entry(name, **{"placement": "actor", **settings})
    assert what in str(refused.value)
