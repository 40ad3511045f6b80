"""The agent that draws its actions from the legal ones: the floor of every ladder."""

from __future__ import annotations

from collections.abc import Mapping

from cogeval.agents.entry import AgentEntry, make_entry, take
from cogeval.core.agent import Reply, Request
from cogeval.core.game import AnyGame, Json, Seat
from cogeval.core.rng import Stream

_CODE = "1"  # changes when the same stream would give other actions


class RandomAgent:
    """Draws a legal action as the game's `legal.sample` does: uniformly where they can be listed.

    Where they cannot (any sentence may be legal), the draw is the game's: what somebody might try there.

    Args:
        seat: index of the seat; not looked at.
        rng: the agent's own stream.
    """

    __slots__ = ("_rng",)

    def __init__(self, seat: Seat, rng: Stream) -> None:  # noqa: ARG002 - the factory protocol
        self._rng = rng

    def decide(self, request: Request) -> Reply:
        """Draws one legal action."""
        return Reply(request.decision.legal.sample(self._rng))


def random_agent(name: str, game: AnyGame, settings: Mapping[str, Json]) -> AgentEntry:  # noqa: ARG001 - plays any game
    """Draws a legal action: uniform where they can be listed, else the game's draw. Parameters: version."""
    values = take(name, "random", settings, {"version": (str, _CODE)})
    version = values.pop("version")
    return make_entry(
        name, "random", RandomAgent, code=_CODE, version=version, parameters=values, deterministic=True
    )
