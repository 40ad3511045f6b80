"""Small episodes of our own, written down whole: a clone alone proves that the rules stand still.

The files under golden/ were written by this module (`python tests/games/cogchemists/test_golden.py`)
when the same code agreed with every reference trace; a change of them needs a new game version.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cogeval.core.rng import stream
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.constants import MIX
from cogeval.games.cogchemists.state import Act, Action, State

FOLDER = Path(__file__).parent / "golden"

# name -> parameters, seed, who sits where, phases after which the clock runs out (-1: played to the end)
EPISODES: dict[str, tuple[dict[str, Any], int, tuple[str, ...], int]] = {
    "all_assayers": ({}, 11, ("assayer",) * 4, -1),
    "careful_and_reckless": ({"rounds": 9}, -7, ("assayer", "quack", "assayer", "quack"), -1),
    "knowing": ({"rounds": 8}, 2_000_003, ("knowing", "quack", "knowing", "random"), -1),
    "quiet_and_without_shop": ({"rounds": 3, "talk": False, "artifacts": False}, 0, ("random",) * 4, -1),
    "cut_short": ({"rounds": 4}, 1 << 62, ("random", "quack", "knowing", "assayer"), 5),
}


def decide(game: Cogchemists, state: State, seat: int, who: str, seed: int) -> Action:
    """A seat's action: a baseline's, a random one with speech, or one that peeks at the chemistry."""
    if who in game.spec.baselines:
        return game.baseline(who, state, seat, seed)
    rng = stream(seed, who, state.phases, seat)
    legal = game.decisions(state)[seat].legal
    if who == "knowing":
        x = state.chemistry
        hits = [m for m in legal if m.action == "sell" and MIX[x[m.a]][x[m.b]] == state.demand]
        true = [m for m in legal if m.action == "publish" and x[m.a] == m.signature]
        attacks = [m for m in legal if m.action in ("endorse", "debunk")]
        choice = hits or attacks or true or [m for m in legal if m.action in ("forage", "test_self")]
        if choice:
            return choice[rng.below(len(choice))]
    say = ("", " \u00e9\u00e9 \U0001f9ea\n", "0123456789" * 15)[rng.below(3)]
    return replace(legal.sample(rng), say=say, notes=("", " n\n", "\u0416 b")[rng.below(3)])


def columns(state: State) -> dict[str, Any]:
    kept = ("coin", "reputation", "hands", "mortar", "press", "say", "notes", "words", "rounds_played")
    table: dict[str, Any] = msgspec.to_builtins({name: getattr(state, name) for name in kept})
    table["hands"] = ["".join(map(str, hand)) for hand in state.hands]
    table["words"] = [str(word) for word in state.words]  # more than JSON readers take as a number
    table["chemistries"] = [known.count for known in state.known]
    return table


def act_line(act: Act) -> str:
    fields = [act.seat, act.action, act.a, act.b, act.signature, act.artifact or "-", act.outcome]
    fields += [act.potion or "-", "".join(map(str, act.draws)) or "-", len(act.discarded)]
    return " ".join(map(str, [*fields, act.coin_delta, act.rep_delta, act.target, act.claim]))


def written(name: str, given: list[list[Any]] | None = None) -> dict[str, Any]:
    """Plays an episode, by its seats or by given actions, and writes it down."""
    parameters, seed, seats, cut = EPISODES[name]
    game = Cogchemists(**parameters)
    state = game.initial_state(seed)
    setup = {"names": state.names, "chemistry": state.chemistry, "demands": state.demands}
    phases = []
    while game.decisions(state) and state.phases != cut:
        if given is None:
            actions = [decide(game, state, seat, who, seed) for seat, who in enumerate(seats)]
        else:
            actions = [game.action_from_wire(wire) for wire in given[state.phases]]
        step = game.step(state, dict(enumerate(actions)))
        phases.append(
            {
                "actions": [game.action_to_wire(action) for action in actions],
                "acts": [act_line(event) for event in step.events if isinstance(event, Act)],
                "resolved": columns(step.resolved),
            }
        )
        state = step.next
    if not state.reason:
        step = game.stop(state)
        state = step.next
    results = game.results(state)
    outcome = {
        "exhibition": msgspec.to_builtins(step.events[-2]),
        "seals": [list(msgspec.structs.astuple(seal)) for seal in state.seals],
        "facts": msgspec.to_builtins(state.public_facts),
        "reason": results.reason,
        "phases": results.phases,
        "seats": msgspec.to_builtins(results.seats),
    }
    whole: dict[str, Any] = json.loads(json.dumps({"setup": setup, "phases": phases, "outcome": outcome}))
    return whole


@pytest.mark.parametrize("name", EPISODES)
def test_recorded_actions_lead_to_the_recorded_episode(name: str) -> None:
    golden = json.loads((FOLDER / f"{name}.json").read_text())
    again = written(name, [phase["actions"] for phase in golden["phases"]])
    assert again["setup"] == golden["setup"]
    for k, (phase, expected) in enumerate(zip(again["phases"], golden["phases"], strict=True)):
        assert phase == expected, f"phase {k}"
    assert again["outcome"] == golden["outcome"]


@pytest.mark.parametrize("name", EPISODES)
def test_the_same_seats_decide_the_same(name: str) -> None:
    golden = json.loads((FOLDER / f"{name}.json").read_text())
    assert [phase["actions"] for phase in written(name)["phases"]] == [
        phase["actions"] for phase in golden["phases"]
    ]


def test_the_golden_episodes_reach_every_outcome() -> None:
    outcomes = set()
    for name in EPISODES:
        for phase in json.loads((FOLDER / f"{name}.json").read_text())["phases"]:
            outcomes |= {tuple(act.split(" ")[i] for i in (1, 6)) for act in phase["acts"]}
    assert {verb for verb, _ in outcomes} == {
        *("forage", "test_student", "test_self", "transmute", "pass"),
        *("sell", "publish", "endorse", "debunk", "buy"),
    }
    assert {outcome for _, outcome in outcomes} >= {
        *("ok", "hit", "miss", "poisoned", "glowed", "burned", "survived"),
        *("rejected:already_claimed", "rejected:no_such_theory"),
    }


def _write() -> None:
    for name in EPISODES:
        text = json.dumps(written(name), indent=None, ensure_ascii=True, separators=(",", ":"))
        (FOLDER / f"{name}.json").write_text(text.replace('{"actions"', '\n{"actions"') + "\n")


if __name__ == "__main__":
    _write()
