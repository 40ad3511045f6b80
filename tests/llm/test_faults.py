"""Whole episodes with a model that goes wrong: it costs its own seat, and nobody else anything."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import msgspec
import pytest
from behaviours import (
    ARRAY,
    ARRAY_BODY,
    CUT,
    EMPTY,
    EMPTY_BODY,
    INJECTED_SPEECH,
    INJECTION,
    INVALID_UTF8,
    INVALID_UTF8_BODY,
    OK,
    OVERLOADED,
    REFUSAL,
    SERVER_ERROR,
    TEN_MB,
    TEN_MB_BODY,
    TRUNCATED,
    UNAUTHORIZED,
    WORDS_OF_INJECTION,
    Behaviour,
    slow,
    too_many,
)
from seats import KEY_VARIABLE, WIRES, baseline_seat, model_seat, run
from server import ModelServer

from cogeval.core.agent import Seated
from cogeval.core.budget import Budget
from cogeval.core.episode import play
from cogeval.core.game import AnyGame
from cogeval.core.local_quota import LocalQuota
from cogeval.core.quota import Limits
from cogeval.core.record import Attempt, Episode
from cogeval.core.seat import Deadlines
from cogeval.games import make_game

GAMES = {"cogchemists": {"rounds": 3}, "cogmud": {"turns": 6}, "cogz": {"seats": 3}}
WRONG = {
    "unauthorized": (UNAUTHORIZED, "exception"),
    "server error": (SERVER_ERROR, "exception"),
    "overloaded": (OVERLOADED, "exception"),
    "too many, for ever": (too_many(0.0), "exception"),
    "cut": (CUT, "exception"),
    "invalid UTF-8 in the text": (INVALID_UTF8, "unreadable"),
    "invalid UTF-8": (INVALID_UTF8_BODY, "exception"),
    "10 MB of text": (TEN_MB, "unreadable"),
    "10 MB": (TEN_MB_BODY, "exception"),
    "no text": (EMPTY, "unreadable"),
    "nothing": (EMPTY_BODY, "exception"),
    "an array as text": (ARRAY, "unreadable"),
    "an array": (ARRAY_BODY, "exception"),
    "refusal": (REFUSAL, "unreadable"),
    "truncated": (TRUNCATED, "unreadable"),
    "injection": (INJECTION, "unreadable"),
}
DEADLINES = Deadlines(decision_s=20.0, retry_s=20.0, episode_timeout_s=280.0)
SHORT = Deadlines(decision_s=1.0, retry_s=1.0, episode_timeout_s=280.0)
BAD, GOOD = 0, 1  # seats


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-test-0123456789")


def bad_good_and_baselines(game: AnyGame, server: ModelServer, wire: str) -> list[Seated]:
    """A model that goes wrong, though its service has answered before, one that does not, and baselines."""
    bad = model_seat(game, server, wire, "bad", max_retries=1)
    bad.agent.standing.answered()  # type: ignore[union-attr] # else a wrong key would be no fault of a seat
    return [
        bad,
        model_seat(game, server, wire, "good", max_retries=1),
        *(baseline_seat(game) for _ in range(game.seats - 2)),
    ]


async def episode_of(game: AnyGame, server: ModelServer, wire: str, deadlines: Deadlines) -> Episode:
    return await play(game, 5, bad_good_and_baselines(game, server, wire), deadlines=deadlines)


def asked(episode: Episode, seat: int) -> list[Attempt]:
    return [a for a in episode.attempts if a.seat == seat and a.source == "agent"]


def num_decisions(episode: Episode, seat: int) -> int:
    return len({a.phase for a in episode.attempts if a.seat == seat})


def wire_of(name: str, what: str) -> str:
    """Both wire formats meet every game."""
    return WIRES[(sorted(GAMES).index(name) + sorted(WRONG).index(what)) % 2]


def assert_the_bad_seat_alone_paid(episode: Episode, fault: str) -> None:
    """Every decision of the bad seat fell back; nobody else saw a fault."""
    assert not episode.stopped
    assert {a.fault for a in asked(episode, BAD)} == {fault}, asked(episode, BAD)[0].detail
    assert all(a.detail for a in asked(episode, BAD))
    fallen = [a for a in episode.attempts if a.seat == BAD and a.source == "baseline"]
    assert len(fallen) == num_decisions(episode, BAD) > 0
    others = [a for a in episode.attempts if a.seat != BAD]
    assert [a.detail for a in others if a.fault] == []
    assert all(a.accepted for a in others)


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("name", GAMES)
def test_what_a_service_does_costs_its_own_seat_only(server: ModelServer, name: str, what: str) -> None:
    behaviour, fault = WRONG[what]
    game = make_game(name, **GAMES[name])
    server.always(behaviour, model="bad")
    episode = run(episode_of(game, server, wire_of(name, what), DEADLINES))
    assert_the_bad_seat_alone_paid(episode, fault)


def test_a_service_that_never_answers_costs_its_own_seat_only(server: ModelServer) -> None:
    """In every game and both wire formats, side by side: each phase waits out a real deadline."""
    server.always(slow(3600.0), model="bad")
    wires = dict(zip(GAMES, (*WIRES, WIRES[0]), strict=True))
    assert set(wires.values()) == set(WIRES)

    async def all_of_them() -> list[Episode]:
        games = [make_game(name, **parameters) for name, parameters in GAMES.items()]
        # All sit before one plays: a client takes time to make, and no good seat shall be charged for it.
        seated = [bad_good_and_baselines(game, server, wires[game.spec.name]) for game in games]
        playing = zip(games, seated, strict=True)
        return await asyncio.gather(*(play(game, 5, seats, deadlines=SHORT) for game, seats in playing))

    for episode in run(all_of_them()):
        assert_the_bad_seat_alone_paid(episode, "timeout")
        # The good seat thought as long as its own answers took, however long the phases were.
        assert all(a.think_s >= SHORT.decision_s for a in asked(episode, BAD))
        assert sum(a.think_s for a in asked(episode, GOOD)) < episode.wall_s / 2


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", GAMES)
def test_a_model_that_answers_plays_every_decision_itself(server: ModelServer, name: str, wire: str) -> None:
    game = make_game(name, **GAMES[name])
    episode = run(episode_of(game, server, wire, DEADLINES))
    for seat in (BAD, GOOD):
        said = asked(episode, seat)
        assert [a.fault for a in said] == [None] * num_decisions(episode, seat), [a.detail for a in said]
        assert all(a.usage and a.usage.tokens_in > a.usage.tokens_cached > 0 for a in said)
        assert all(a.usage and a.usage.cost_usd > 0 for a in said)
    assert {a.model for a in asked(episode, GOOD)} == {"good-20260101"}
    assert server.num_requests == len(asked(episode, BAD)) + len(asked(episode, GOOD))


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_waiting_after_429_is_not_think_time(server: ModelServer, wire: str, dated: bool) -> None:
    """Each wait is longer than the whole think time that a decision has."""
    game = make_game("cogmud", turns=6)
    wait_s, num_waits = (2.0, 1) if dated else (0.6, 2)  # a date has whole seconds
    server.behave(*[too_many(wait_s, dated=dated)] * num_waits, model="good")
    deadlines = msgspec.structs.replace(DEADLINES, decision_s=0.5)
    seats = [model_seat(game, server, wire, "good", waits=True), *(baseline_seat(game) for _ in range(5))]
    episode = run(play(game, 5, seats, deadlines=deadlines))
    said = asked(episode, 0)
    assert [a.fault for a in said] == [None] * 6, [a.detail for a in said]
    least_s = wait_s - 1.0 if dated else wait_s
    assert said[0].queue_s >= num_waits * least_s
    assert all(a.think_s < 0.5 for a in said)
    times = [ask.at_s for ask in server.asks[: num_waits + 1]]
    assert min(after - before for before, after in pairwise(times)) >= least_s


def test_429_holds_back_the_whole_account(server: ModelServer) -> None:
    """The other seat of the account sends nothing while the service wants quiet."""
    game, wait_s = make_game("cogmud", turns=6), 0.5
    server.behave(too_many(wait_s), model="bad")
    quota = LocalQuota(Budget({"shared": Limits(concurrency=1)}))
    seats = [
        model_seat(game, server, "openai", "bad", quota=quota, account="shared", waits=True),
        model_seat(game, server, "openai", "good", quota=quota, account="shared", waits=True),
        *(baseline_seat(game) for _ in range(4)),
    ]
    episode = run(play(game, 5, seats, deadlines=DEADLINES))
    assert [a.detail for a in episode.attempts if a.fault] == []
    refused = next(i for i, ask in enumerate(server.asks) if ask.model == "bad")
    if refused + 1 < len(server.asks):
        assert server.asks[refused + 1].at_s - server.asks[refused].at_s >= wait_s


def test_a_reply_of_10_mb_is_kept_in_part_and_stays_readable_for_the_next(server: ModelServer) -> None:
    """Neither the journal nor the retry holds it."""
    game = make_game("cogmud", turns=6)
    server.behave(TEN_MB, model="good")
    seats = [model_seat(game, server, "openai", "good"), *(baseline_seat(game) for _ in range(5))]
    episode = run(play(game, 5, seats, deadlines=DEADLINES))
    said = asked(episode, 0)
    assert [a.fault for a in said] == ["unreadable", *[None] * 6]
    assert said[0].text is not None
    assert len(said[0].text) <= 1_000_000
    assert max(len(str(ask.body)) for ask in server.asks) < 100_000


@pytest.mark.parametrize("behaviour", [SERVER_ERROR, OVERLOADED, CUT, too_many(0.0)])
@pytest.mark.parametrize("wire", WIRES)
def test_a_service_that_recovers_costs_nothing(server: ModelServer, wire: str, behaviour: Behaviour) -> None:
    game = make_game("cogchemists", rounds=3)
    server.behave(behaviour, OK, behaviour, behaviour, model="good")
    seats = [model_seat(game, server, wire, "good"), *(baseline_seat(game) for _ in range(3))]
    episode = run(play(game, 5, seats, deadlines=DEADLINES))
    assert [a.detail for a in episode.attempts if a.fault] == []
    assert server.num_requests == num_decisions(episode, 0) + 3


def test_injected_speech_stays_a_quotation(server: ModelServer) -> None:
    """What one model says reaches the other as a remark; the rules it is sent do not change."""
    game = make_game("cogchemists", rounds=3)
    server.always(INJECTED_SPEECH, model="bad")
    episode = run(episode_of(game, server, "openai", DEADLINES))
    assert [a.detail for a in episode.attempts if a.fault] == []
    heard = [ask for ask in server.asks if ask.model == "good"]
    assert any(WORDS_OF_INJECTION[:60] in ask.user for ask in heard)
    assert len({ask.system for ask in heard}) == 1
    assert WORDS_OF_INJECTION[:20] not in heard[0].system
    lines = [line for ask in heard for line in ask.user.splitlines() if WORDS_OF_INJECTION[:60] in line]
    assert all(not line.startswith(WORDS_OF_INJECTION[:10]) for line in lines), lines


@pytest.mark.parametrize("wire", WIRES)
def test_a_retry_says_what_was_wrong(server: ModelServer, wire: str) -> None:
    game = make_game("cogchemists", rounds=3)
    server.behave(TRUNCATED, model="good")
    seats = [model_seat(game, server, wire, "good"), *(baseline_seat(game) for _ in range(3))]
    episode = run(play(game, 5, seats, deadlines=DEADLINES))
    assert [a.fault for a in asked(episode, 0)][:2] == ["unreadable", None]
    assert server.asks[1].user != server.asks[0].user
    assert "cut off" in server.asks[1].user
