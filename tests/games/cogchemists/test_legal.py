"""R6: reasons and their order, and the list of legal actions against brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cogeval.core.game import Legal
from cogeval.core.rng import stream
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.state import Action, Seal, State

Walk = Callable[..., Iterator[tuple[Cogchemists, State]]]
Arrange = Callable[..., State]


def every_action(phase: str) -> Iterator[Action]:
    """Every action that R6.4 could list, in its order."""
    pairs = [(a, b) for a in range(8) for b in range(a, 8)]
    if phase == "lab":
        yield Action("forage")
        for verb in ("test_student", "test_self"):
            for a, b in pairs:
                yield Action(verb, a, b)
        for a in range(8):
            yield Action("transmute", a)
    else:
        for a, b in pairs:
            yield Action("sell", a, b)
        for a in range(8):
            for signature in range(8):
                yield Action("publish", a, signature=signature)
        for a in range(8):
            yield Action("endorse", a)
            for b in range(8):
                yield Action("debunk", a, b)
        for artifact in ("mortar", "press"):
            yield Action("buy", artifact=artifact)
    yield Action("pass")


@pytest.mark.parametrize("seed", range(6))
def test_r6_4_the_list_is_what_brute_force_finds(seed: int, walk: Walk) -> None:
    for game, state in walk(seed, artifacts=seed % 2 == 0):
        for decision in game.decisions(state):
            expected = [
                action
                for action in every_action(state.phase)
                if game.why_illegal(state, decision.seat, action) is None
            ]
            assert list(decision.legal) == expected
            assert len(decision.legal) == len(expected)
            assert all(action in decision.legal for action in expected)
            assert decision.default in decision.legal
            assert isinstance(decision.legal, Legal)


def test_samples_are_uniform_over_the_list(market: State, game: Cogchemists, arrange: Arrange) -> None:
    state = arrange(market, seals=(Seal(0, 0, 1, 0), Seal(1, 0, 0, 0)))
    legal = game.decisions(state)[0].legal
    rng = stream(0, "uniform")
    counts = Counter(legal.sample(rng) for _ in range(100 * len(legal)))
    assert set(counts) == set(legal)
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 1.6 * len(legal)


def test_legal_holds_nothing_but_actions(lab: State, game: Cogchemists) -> None:
    legal = game.decisions(lab)[0].legal
    assert "pass" not in legal
    assert Action("sell", 0, 1) not in legal
    assert Action("pass", say="speech", notes="and notes do not matter") in legal  # R6.3


CASES: list[tuple[str, Action, str]] = [
    ("lab", Action(""), "unknown_action"),
    ("lab", Action("dance"), "unknown_action"),
    ("lab", Action("sell", 9, 9), "wrong_phase"),
    ("market", Action("forage"), "wrong_phase"),
    ("lab", Action("transmute", 8), "unknown_ingredient"),
    ("lab", Action("transmute", 7), "missing_card"),
    ("lab", Action("test_self", 0, -1), "unknown_ingredient"),
    ("lab", Action("test_self", 0, 2), "missing_card"),
    ("lab", Action("test_student", 0, 2), "missing_card"),  # before no_coin
    ("lab", Action("test_student", 0, 1), "no_coin"),
    ("market", Action("sell", 8, 0), "unknown_ingredient"),
    ("market", Action("sell", 0, 0), "missing_card"),
    ("market", Action("publish", 8, signature=9), "unknown_ingredient"),
    ("market", Action("publish", 0, signature=8), "bad_signature"),
    ("market", Action("publish", 3, signature=0), "no_coin"),  # before already_claimed
    ("market", Action("endorse", -1), "unknown_ingredient"),
    ("market", Action("endorse", 0), "no_such_theory"),
    ("market", Action("endorse", 3), "own_theory"),
    ("market", Action("endorse", 5), "already_endorsed"),  # before no_coin
    ("market", Action("endorse", 4), "no_coin"),
    ("market", Action("debunk", 4, 8), "unknown_ingredient"),
    ("market", Action("debunk", 0, 7), "no_such_theory"),
    ("market", Action("debunk", 3, 7), "own_theory"),
    ("market", Action("debunk", 4, 7), "missing_card"),
    ("market", Action("debunk", 4, 0), "no_coin"),
    ("market", Action("buy", artifact="x"), "unknown_artifact"),
    ("market", Action("buy", artifact="mortar"), "already_owned"),
    ("market", Action("buy", artifact="press"), "no_coin"),
]


@pytest.mark.parametrize(("phase", "action", "reason"), CASES)
def test_r6_2_the_first_reason_counts(
    phase: str, action: Action, reason: str, lab: State, game: Cogchemists, arrange: Arrange
) -> None:
    seals = (Seal(3, 0, 0, 0), Seal(4, 0, 1, 0), Seal(5, 0, 1, 0, (0,)))
    poor = arrange(lab, phase=phase, coin=(0, 4, 4, 4), seals=seals, mortar=(True, False, False, False))
    assert game.why_illegal(poor, 0, action) == reason
    step = game.step(poor, {0: action, 1: Action(), 2: Action(), 3: Action()})
    act = next(event for event in step.events if getattr(event, "seat", -1) == 0)
    assert (act.outcome, act.coin_delta) == (f"rejected:{reason}", 1)  # R6.1
    assert (act.action, act.a, act.b, act.signature, act.artifact) == (
        action.action,
        action.a,
        action.b,
        action.signature,
        action.artifact,
    )


def test_r6_2_already_claimed(market: State, game: Cogchemists, arrange: Arrange) -> None:
    board = arrange(market, seals=(Seal(3, 0, 1, 0),))
    assert game.why_illegal(board, 0, Action("publish", 3, signature=1)) == "already_claimed"


@pytest.mark.parametrize("artifact", ["mortar", "press", "telescope"])
def test_r6_2_a_closed_shop_wins_over_an_unknown_artifact(artifact: str, market: State) -> None:
    closed = Cogchemists(artifacts=False)
    assert closed.why_illegal(market, 0, Action("buy", artifact=artifact)) == "artifacts_disabled"


def test_all_reasons_are_reached() -> None:
    words: Any = {reason for _, _, reason in CASES} | {"already_claimed", "artifacts_disabled"}
    assert words == {
        "unknown_action",
        "wrong_phase",
        "unknown_ingredient",
        "missing_card",
        "no_coin",
        "bad_signature",
        "already_claimed",
        "no_such_theory",
        "own_theory",
        "already_endorsed",
        "artifacts_disabled",
        "already_owned",
        "unknown_artifact",
    }
