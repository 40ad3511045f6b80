"""A service that refuses all of an agent's first requests ends the run: the setup is wrong, no seat is."""

from __future__ import annotations

import pytest
from behaviours import UNAUTHORIZED, Behaviour
from fakes import GOOD, Table
from seats import KEY_VARIABLE, baseline_seat, model_seat, run
from server import ModelServer

from cogeval.agents.llm.provider import Endpoint, RefusedError, RetryableError
from cogeval.agents.llm.standing import Standing, told
from cogeval.core.episode import play
from cogeval.core.quota import ServiceRefusedError
from cogeval.games import make_game

KEY = "sk-test-0123456789"
FORBIDDEN, UNKNOWN = Behaviour(status=403), Behaviour(status=404)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


@pytest.mark.parametrize("behaviour", [UNAUTHORIZED, FORBIDDEN, UNKNOWN])
def test_eight_refusals_and_nothing_else_end_the_run_by_name(server: ModelServer, behaviour) -> None:
    game = make_game("cogchemists")
    server.always(behaviour, model="bad")
    seats = [
        model_seat(game, server, "openai", "bad"),
        model_seat(game, server, "openai", "good"),
        *(baseline_seat(game) for _ in range(2)),
    ]
    with pytest.raises(ServiceRefusedError) as caught:
        run(play(game, 5, seats))
    assert [ask.model for ask in server.asks].count("bad") == 8
    said = str(caught.value)
    assert said.startswith(
        f"pool.agents.bad: {server.openai_url} refused its first 8 requests, all of them; "
    )
    assert f"the service answered {behaviour.status}: " in said
    assert KEY not in said


async def ask_often(table: Table, times: int) -> list[type[BaseException] | None]:
    outcomes: list[type[BaseException] | None] = []
    for _ in range(times):
        try:
            await table.ask()
            outcomes.append(None)
        except RefusedError:
            outcomes.append(RefusedError)
        except ServiceRefusedError as error:
            outcomes.append(type(error))
    return outcomes


def test_a_service_that_has_answered_once_is_never_given_up() -> None:
    table = Table(GOOD, RefusedError("no", status=401))
    assert run(ask_often(table, 20)) == [None] + [RefusedError] * 19


def test_refusals_of_what_was_asked_are_faults_of_the_seat() -> None:
    for status in (400, 413, 422, None):
        table = Table(RefusedError("no", status=status))
        assert run(ask_often(table, 12)) == [RefusedError] * 12


def test_a_service_that_cannot_answer_now_neither_ends_the_run_nor_vouches_for_the_key() -> None:
    busy = [RetryableError("busy")] * 6
    table = Table(*busy, RefusedError("no", status=401), max_retries=0)
    assert run(ask_often(table, 15)) == [RefusedError] * 13 + [ServiceRefusedError] * 2


def test_every_lease_is_settled_when_the_run_ends() -> None:
    table = Table(RefusedError("no", status=403))
    run(ask_often(table, 8))
    assert len(table.quota.settled) == len(table.quota.leased) == 8


@pytest.mark.parametrize(
    ("endpoint", "status", "cause"),
    [
        (Endpoint("openai", None, "MY_KEY"), 401, "the key in MY_KEY is not one of this service"),
        (Endpoint("openai", "http://x:1/v1"), 401, "No key is sent there: name its"),
        (Endpoint("anthropic", None, "MY_KEY"), 403, "may not use mine"),
        (Endpoint("openai", "http://x:1"), 404, "base_url lacks its /v1"),
        (Endpoint("anthropic", "http://x:1/v1/"), 404, "a /v1 too many"),
        (Endpoint("openai", "http://x:1/v1"), 404, "it has no model mine"),
    ],
)
def test_the_likely_cause_is_told(endpoint: Endpoint, status: int, cause: str) -> None:
    assert cause in told("pool.agents.x", endpoint, "mine", status, "the service answered")


def test_a_standing_is_told_once_and_for_all() -> None:
    standing = Standing()
    assert [standing.refused(401) for _ in range(9)] == [False] * 7 + [True] * 2
    standing.answered()
    assert not standing.refused(401)
