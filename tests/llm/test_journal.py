"""A model's recorded replies are read from the journal as they were read when they came."""

from __future__ import annotations

import pytest
from behaviours import CUT, EMPTY, INJECTION, OK, REFUSAL, SERVER_ERROR, TEN_MB, TRUNCATED
from seats import KEY_VARIABLE, WIRES, baseline_seat, model_seat, run
from server import ModelServer

from cogeval.agents.recorded import ModelText, recorded_seat
from cogeval.core.episode import play
from cogeval.core.game import AnyGame
from cogeval.core.record import Attempt
from cogeval.games import make_game

GAMES = {"cogchemists": {"rounds": 3}, "cogmud": {"turns": 6}, "cogz": {"seats": 3}}
BEHAVIOURS = (OK, TEN_MB, OK, INJECTION, EMPTY, CUT, OK, REFUSAL, OK, TRUNCATED, SERVER_ERROR)


def told(attempt: Attempt) -> tuple[object, ...]:
    """Everything but times, which a fault of an agent in the journal does not say again."""
    a = attempt
    return (
        a.phase,
        a.seat,
        a.attempt,
        a.source,
        a.accepted,
        a.action_text,
        a.fault,
        a.detail,
        a.text,
        a.usage,
    )


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", GAMES)
def test_replies_of_every_sort_are_read_again_as_they_were(
    server: ModelServer, name: str, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-test-0123456789")
    game: AnyGame = make_game(name, **GAMES[name])
    server.behave(*BEHAVIOURS, model="odd")
    baselines = [baseline_seat(game) for _ in range(game.seats - 1)]

    first = run(play(game, 5, [model_seat(game, server, wire, "odd", max_retries=0), *baselines]))
    again = run(play(game, 5, [recorded_seat("odd", first.attempts, ModelText()), *baselines]))

    assert {a.fault for a in first.attempts if a.source == "agent"} >= {None, "unreadable"}
    assert [*map(told, again.attempts)] == [*map(told, first.attempts)]
    assert again.digest == first.digest
