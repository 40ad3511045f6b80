"""What may be on the bill is in the books: a failure counts unless the call cannot have reached the model."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
from behaviours import CUT, Behaviour
from fakes import PRICE, Table
from seats import KEY_VARIABLE, WIRES, baseline_seat, model_seat, run
from server import ModelServer

from cogeval.agents.llm.prices import cost_usd
from cogeval.agents.llm.provider import RefusedError, RetryableError, connection_failure, status_failure
from cogeval.core.agent import Usage
from cogeval.core.budget import Budget
from cogeval.core.episode import play
from cogeval.core.local_quota import LocalQuota
from cogeval.core.seat import Deadlines
from cogeval.games import make_game

REFUSED = Behaviour(status=400, body=b'{"error": {"message": "no"}}')
PLAIN = Behaviour(body=b"not JSON at all")
ODD = Behaviour(body=json.dumps({"odd": True}).encode())
OVERLOADED = Behaviour(status=503, body=b"busy")
BROKEN = Behaviour(status=500, body=b"sorry")


@pytest.mark.parametrize("kind", [RefusedError, RetryableError])
@pytest.mark.parametrize("may_cost", [False, True])
def test_a_failure_is_booked_at_the_most_that_it_may_have_cost_or_at_nothing(kind, may_cost) -> None:
    table = Table(kind("broken", may_cost=may_cost), max_retries=0)
    with pytest.raises(RefusedError):
        asyncio.run(table.ask())
    ((lease, tokens, dollars),) = table.quota.settled
    most = cost_usd(PRICE, Usage(lease.tokens - 500, 500))  # 500 is the longest reply
    assert (tokens, dollars) == ((lease.tokens, pytest.approx(most)) if may_cost else (0, 0.0))


def test_whatever_an_sdk_raises_beside_its_own_may_have_cost() -> None:
    table = Table(ValueError("odd"), max_retries=0)
    with pytest.raises(RefusedError):
        asyncio.run(table.ask())
    ((lease, tokens, dollars),) = table.quota.settled
    assert tokens == lease.tokens
    assert dollars > 0


@pytest.mark.parametrize(
    ("status", "may_cost"),
    [
        (400, False), (401, False), (408, False), (429, False),
        (500, True), (502, True), (503, False), (504, True), (529, False),
    ],
)  # fmt: skip
def test_a_status_says_whether_the_model_may_have_been_asked(status: int, may_cost: bool) -> None:
    assert status_failure(status, {}, "").may_cost is may_cost


def test_a_connection_that_failed_after_it_stood_may_have_cost() -> None:
    for name, may_cost in (("ConnectError", False), ("PoolTimeout", False), ("ReadTimeout", True)):
        error = Exception("Connection error.")
        error.__cause__ = type(name, (Exception,), {})("why")
        assert connection_failure(error).may_cost is may_cost
    assert connection_failure(Exception("nobody knows why")).may_cost


def spent_on(
    server: ModelServer, wire: str, behaviour: Behaviour | None, base_url: str | None = None
) -> float:
    """Dollars booked for an episode of one turn in which every request ends in the same way."""
    quota = LocalQuota(Budget())
    game = make_game("cogmud", turns=6)
    if behaviour is not None:
        server.always(behaviour, model="m")
    more = {} if base_url is None else {"base_url": base_url}
    model = model_seat(game, server, wire, "m", quota=quota, max_retries=0, **more)
    deadlines = Deadlines(decision_s=20.0, retry_s=20.0, episode_timeout_s=280.0)
    run(play(game, 5, [model, *(baseline_seat(game) for _ in range(5))], deadlines=deadlines, stop_after=1))
    return quota.budget.spent_usd


@pytest.mark.parametrize("wire", WIRES)
def test_over_the_wire_what_broke_off_or_could_not_be_read_costs_and_what_was_sent_away_does_not(
    server: ModelServer, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-0123456789abcdef0123")
    for behaviour in (CUT, PLAIN, ODD, BROKEN):
        assert spent_on(server, wire, behaviour) > 0, behaviour
    for behaviour in (REFUSED, OVERLOADED):
        assert spent_on(server, wire, behaviour) == 0, behaviour
    with socket.socket() as unheard:  # bound and not listening: refused
        unheard.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unheard.getsockname()[1]}"
        assert spent_on(server, wire, None, url) == 0
