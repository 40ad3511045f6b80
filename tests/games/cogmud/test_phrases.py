"""What a seat may do, and what it tries at random."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest

from cogeval.core.game import Legal
from cogeval.core.rng import stream
from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.grammar import KINDS
from cogeval.games.cogmud.phrases import Phrases, phrases_of, why_illegal
from cogeval.games.cogmud.prose import PHRASEBOOK
from cogeval.games.cogmud.state import WAIT, Act, Action, State
from cogeval.games.cogmud.turn import OUTCOMES, understood
from cogeval.testing.walks import walk

GAME = Cogmud()
PHRASES = Phrases(0, ("Bolt", "Rivet"), "Bolt", (0, 2, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0), ("Rivet",))


def opening() -> State:
    return GAME.initial_state(1)


@pytest.mark.parametrize("text", ["I wait.", "", "\0", "\ud800", "x" * 100_000, "\u202eback"])
def test_r9_2_any_text_is_legal(text: str) -> None:
    assert Action(text, text, text) in PHRASES
    assert isinstance(PHRASES, Legal)


@pytest.mark.parametrize("action", [None, "I wait.", Action(5), Action("I wait.", None), Action(notes=b"n")])  # type: ignore[arg-type]
def test_r9_2_what_is_no_text_is_rejected(action: object) -> None:
    assert action not in PHRASES
    assert why_illegal(action) == "rejected"


def test_sentences_cannot_be_listed_or_counted() -> None:
    with pytest.raises(TypeError, match="any sentence is legal in Cogmud"):
        list(PHRASES)
    with pytest.raises(TypeError, match="any sentence is legal in Cogmud"):
        len(PHRASES)


def test_samples_are_a_function_of_what_the_seat_sees_and_of_the_stream() -> None:
    first, second = ([PHRASES.sample(stream(3, "t", i)) for i in range(40)] for _ in range(2))
    assert first == second
    assert all(action in PHRASES and not action.say and not action.notes for action in first)
    assert WAIT in first


def test_samples_reach_every_intent_and_most_outcomes() -> None:
    intents: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    game = Cogmud(turns=40)
    for seed in range(10):
        each = walk(game, seed)
        for position, actions in zip(each.positions, each.actions, strict=True):
            for act in game.step(position.state, actions).events:
                if isinstance(act, Act):
                    intents[act.intent] += 1
                    reasons[act.reason] += 1
    assert set(intents) == {*KINDS, "none"}
    rare = {"rejected", "npc_broke", "thievery_forbidden", "nothing_to_take", "bound_by_contract"}
    assert set(OUTCOMES) - set(reasons) - rare == set()
    assert reasons["ok"] > sum(reasons.values()) // 2


def test_a_seat_holds_what_it_sees_and_no_more() -> None:
    state = opening()
    for seat, phrases in enumerate(phrases_of(state)):
        seen = GAME.observe(state, seat)
        assert {*phrases.here} == {seen.name, *seen.here}
        assert (phrases.room, phrases.pack, phrases.floor) == (seen.room, seen.pack, seen.floor)
        assert phrases.senders == tuple(offer.sender for offer in seen.offers)
        assert {*Phrases.__struct_fields__} == {"room", "here", "name", "pack", "floor", "senders"}


def test_phrases_compare_and_pickle() -> None:
    assert pickle.loads(pickle.dumps(PHRASES)) == PHRASES
    assert phrases_of(opening()) == phrases_of(opening())


@pytest.mark.parametrize(("what", "sentences"), PHRASEBOOK)
def test_every_sentence_of_the_phrasebook_is_understood(what: str, sentences: str) -> None:
    state = opening()
    other = state.names[1]
    kinds = {understood(state, 0, each.replace("NAME", other)).kind for each in sentences.split("  /  ")}
    (expected,) = kinds
    assert expected in KINDS, what


def test_the_phrasebook_has_a_sentence_for_every_intent() -> None:
    state = opening()
    other = state.names[1]
    said = {understood(state, 0, s.split("  /  ")[0].replace("NAME", other)).kind for _, s in PHRASEBOOK}
    assert said == set(KINDS)
