"""R9: what a seat sees, that nothing else shows, and that it survives the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.constants import INGREDIENTS, MIX, SIGNATURES
from cogeval.games.cogchemists.deduction import knowledge_of
from cogeval.games.cogchemists.state import Act, Action, Seal, State
from cogeval.games.cogchemists.view import Observation

Walk = Callable[..., Iterator[tuple[Cogchemists, State]]]
Arrange = Callable[..., State]

HIDDEN = {"chemistry", "demands", "words", "hands", "private_facts", "notes", "known"}


def changed_columns(one: State, other: State) -> set[str]:
    return {name for name in State.__struct_fields__ if getattr(one, name) != getattr(other, name)}


@pytest.mark.parametrize("seed", range(3))
def test_r9_2_an_observation_is_the_same_when_anything_hidden_changes(seed: int, walk: Walk) -> None:
    changed: set[str] = set()
    for game, state in walk(seed):
        for seat in range(4):
            rng = np.random.default_rng([seed, state.phases, seat])
            other = game.resample_hidden(state, seat, rng)
            seen, also = game.observe(state, seat), game.observe(other, seat)
            assert seen == also
            assert repr(seen) == repr(also)
            assert game.observation_to_wire(seen) == game.observation_to_wire(also)
            assert game.prompt(seen) == game.prompt(also)
            assert list(seen.moves) == list(also.moves)
            changed |= changed_columns(state, other)
    assert changed == HIDDEN


@pytest.mark.parametrize("seed", range(3))
def test_resampled_worlds_could_have_happened(seed: int, walk: Walk) -> None:
    for game, state in walk(seed):
        for seat in range(4):
            other = game.resample_hidden(state, seat, np.random.default_rng(seed))
            assert sorted(other.chemistry) == list(range(8))
            assert other.demands[: state.round + 1] == state.demands[: state.round + 1]
            for each in range(4):
                assert other.known[each] == knowledge_of(other.public_facts, other.private_facts[each])
                assert other.known[each].count >= 1
                assert all(other.chemistry[a] in grid for a, grid in enumerate(other.known[each].grid))
                assert all(
                    MIX[other.chemistry[f.a]][other.chemistry[f.b]] == f.potion
                    for f in other.private_facts[each]
                )
            for act in state.record:
                if act.action == "debunk" and not act.outcome.startswith("rejected"):
                    predicted = MIX[act.claim][other.chemistry[act.b]]
                    assert (act.potion != predicted) == (act.outcome == "burned")


@pytest.mark.parametrize("seed", range(4))
def test_resampled_opening_hands_allow_every_later_card(seed: int, walk: Walk) -> None:
    """The cards that the record shows (drawn and kept, or named by later use) stay in the hand."""
    for game, state in walk(seed):
        other = game.resample_hidden(state, 0, np.random.default_rng(seed))
        for each in range(1, 4):
            assert len(other.hands[each]) == len(state.hands[each])
            drawn = [
                card
                for act in state.record
                if act.seat == each
                for card in act.draws[: len(act.draws) - len(act.discarded)]
            ]
            if not any(act.seat == each and act.action not in ("forage", "pass") for act in state.record):
                assert list(other.hands[each][3:]) == drawn


def test_a_mortar_owner_keeps_the_card_that_a_test_showed(game: Cogchemists, lab: State) -> None:
    record = (
        Act(0, "market", 1, "buy", -1, -1, -1, "mortar", "ok"),
        Act(1, "lab", 1, "test_student", 0, 1, -1, "", "ok", secret=True),
    )
    state = msgspec.structs.replace(lab, record=record, hands=((0, 1, 1), (1, 5), (0,) * 3, (0,) * 3))
    for seed in range(20):
        hand = game.resample_hidden(state, 0, np.random.default_rng(seed)).hands[1]
        assert len(hand) == 2
        assert 1 in hand


def test_r9_1_a_seat_sees_its_own_and_the_public_columns(
    market: State, game: Cogchemists, arrange: Arrange
) -> None:
    seals = (Seal(3, 0, 2, 0), Seal(4, 0, 2, 0))
    state = arrange(market, hands=((0,), (1, 2), (), (5, 5, 5)), notes=("a", "b", "c", "d"), seals=seals)
    seen = game.observe(state, 1)
    assert (seen.hand, seen.notes, seen.num_cards) == ((1, 2), "b", (1, 2, 0, 3))
    assert seen.published == ((), (), (3, 4), ())
    assert (seen.scores, seen.chemistries) == ((10.8,) * 4, 40_320)
    assert seen.grid == (tuple(range(8)),) * 8
    assert (seen.demand, seen.initiative) == ("RED+", (0, 1, 2, 3))


def test_r9_1_the_record_leaves_out_a_tests_potion(
    game: Cogchemists, lab: State, play: Callable[..., Any]
) -> None:
    state = play(lab, seat0=Action("test_self", 0, 1)).next
    for seat in range(4):
        act = game.observe(state, seat).record[0]
        assert (act.outcome, act.potion, act.a, act.b) == ("glowed", "", 0, 1)
    assert [len(game.observe(state, seat).private_facts) for seat in range(4)] == [1, 0, 0, 0]


@pytest.mark.parametrize("seed", range(2))
def test_observations_and_actions_survive_the_wire(seed: int, walk: Walk) -> None:
    for game, state in walk(seed):
        for seat in range(4):
            seen = game.observe(state, seat)
            wire = json.loads(json.dumps(game.observation_to_wire(seen)))
            assert game.observation_from_wire(wire) == seen
            assert wire["chemistries"] == seen.chemistries
            assert wire["legal"] == [game.action_to_wire(action) for action in seen.moves]
            for action in seen.moves:
                assert game.action_from_wire(json.loads(json.dumps(game.action_to_wire(action)))) == action


_TEXT = st.text(st.characters())


@settings(deadline=None)
@given(st.builds(Action, _TEXT, st.integers(), st.integers(), st.integers(), _TEXT, _TEXT, _TEXT))
def test_any_action_survives_the_wire(action: Action) -> None:
    game = Cogchemists()
    assert game.action_from_wire(json.loads(json.dumps(game.action_to_wire(action)))) == action


def test_an_observation_holds_no_state(game: Cogchemists, lab: State) -> None:
    seen = game.observe(lab, 0)
    assert isinstance(seen, Observation)
    assert not any(isinstance(getattr(seen, name), State) for name in Observation.__struct_fields__)


# the prompt


def test_the_prompt_tells_rules_reply_form_and_table(
    market: State, game: Cogchemists, arrange: Arrange
) -> None:
    burned = Seal(0, 5, 2, 0, (1,), "burned", 1, 3, 0)
    prompt = game.prompt(game.observe(arrange(market, seals=(burned,), say=("psst", "", "", "")), 1))
    assert all(name in prompt.system for name in (*INGREDIENTS, *SIGNATURES))
    assert all(
        f'"{field}"' in prompt.system for field in ("action", "a", "b", "signature", "artifact", "say")
    )
    assert f"Nightcap is R+G-B+, by {market.names[2]}: burned by {market.names[3]}" in prompt.user
    assert f"{market.names[0]}: psst" in prompt.user
    assert 'publish a="Nightcap" signature=any of the eight' in prompt.user
    assert "40320 chemistries left" in prompt.user


def test_the_system_text_follows_the_parameters() -> None:
    def system(**parameters: Any) -> str:
        game = Cogchemists(**parameters)
        return game.prompt(game.observe(game.initial_state(0), 0)).system

    assert "mortar" in system()
    assert "buy" not in system(artifacts=False)
    assert "Nobody can speak" in system(talk=False)
    assert "over 9 rounds" in system(rounds=9)


def test_the_prompt_lists_every_legal_action(walk: Walk) -> None:
    for game, state in walk(4):
        seen = game.observe(state, 2)
        listed = game.prompt(seen).user.split("YOUR LEGAL ACTIONS (choose one)\n")[1].split("\n")
        moves = [move for move in seen.moves if move.action != "publish" or move.signature == 0]
        assert len(listed) == len(moves)
        assert [line.split(" ")[0] for line in listed] == [move.action for move in moves]


def test_what_an_agent_does_to_its_observation_stays_its_own(game: Cogchemists, market: State) -> None:
    """Knowledge is shared between seats and episodes: an agent gets a copy."""
    before = market.known[0].grid
    seen = game.observe(market, 0)
    seen.known.survivors = 1
    seen.known._candidates[0] = 0
    assert market.known[0].grid == before
    assert game.observe(market, 0).grid == before
