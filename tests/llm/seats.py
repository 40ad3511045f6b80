"""Model seats that play against the tests' server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec
from server import ModelServer

from cogeval.agents import build_agent
from cogeval.agents.llm import BoundSeat
from cogeval.core.agent import Resources, Seated, bound
from cogeval.core.game import AnyGame
from cogeval.core.quota import UNLIMITED, Quota

KEY_VARIABLE = "COGEVAL_TEST_KEY"
WIRES = ("anthropic", "openai")
T = TypeVar("T")
_open: list[Any] = []  # clients of the SDKs: a worker keeps its own for life, a test may not


def run(coroutine: Coroutine[Any, Any, T], limit_s: float = 120.0) -> T:
    """Runs it to its end and hangs up."""

    async def and_hang_up() -> T:
        try:
            return await asyncio.wait_for(coroutine, limit_s)
        finally:
            while _open:
                await _open.pop().close()

    return asyncio.run(and_hang_up())


def settings(server: ModelServer, wire: str, model: str, **more: Any) -> dict[str, Any]:
    """A pool's entry of a model that the server plays."""
    url = server.anthropic_url if wire == "anthropic" else server.openai_url
    return {
        "kind": "llm",
        "provider": wire,
        "model": model,
        "base_url": url,
        "api_key_env": KEY_VARIABLE,
        "price": {"input": 1, "output": 5},
        **more,
    }


async def _at_once(_wait_s: float) -> None:
    """A back-off that takes no time."""


def model_seat(
    game: AnyGame,
    server: ModelServer,
    wire: str,
    model: str,
    *,
    quota: Quota = UNLIMITED,
    waits: bool = False,
    **more: Any,
) -> Seated:
    """A model, ready to sit down; unless it `waits`, its back-off takes no time."""
    entry = build_agent(model, game, settings(server, wire, model, **more))
    seated = bound(entry.seated, Resources(quota=quota))
    assert isinstance(seated.agent, BoundSeat)
    _open.append(seated.agent.provider._client)  # type: ignore[attr-defined] # no protocol of ours closes it
    if waits:
        return seated
    return msgspec.structs.replace(seated, agent=msgspec.structs.replace(seated.agent, sleep=_at_once))


def baseline_seat(game: AnyGame) -> Seated:
    """The game's first baseline."""
    name = game.spec.baselines[0]
    return build_agent(name, game, {"kind": "baseline", "baseline": name}).seated
