"""Any Python class with the agent protocol as an agent of a pool: beside its episode, or elsewhere.

Invariant: the class is imported by name where it plays, so that nothing of it travels but its path
and its parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from cogeval.agents.actor.build import acted
from cogeval.agents.entry import AgentEntry, make_entry, source_digest
from cogeval.agents.locating import locate
from cogeval.agents.process.build import placed
from cogeval.core.agent import Agent, AgentFactory
from cogeval.core.game import AnyGame, Json, Seat
from cogeval.core.rng import Stream
from cogeval.errors import InputError, unknown_name

PLACEMENTS = ("inline", "process", "actor")  # where it runs: an agent decides the same in all
_OFFERED = ("seat", "rng", "game")  # given to a constructor that asks for them by name


class PythonAgent(msgspec.Struct, frozen=True):
    """A factory of agents of one class."""

    target: str  # "package.module.Class"
    parameters: Mapping[str, Json]
    game: AnyGame

    def __call__(self, seat: Seat, rng: Stream) -> Agent:
        """Makes the agent of one seat, with the seat, stream and game that its constructor asks for."""
        return seat_agent(locate(self.target), self.game, seat, rng, self.parameters)


def seat_agent(
    made: Callable[..., Agent],
    game: AnyGame,
    seat: Seat,
    rng: Stream,
    parameters: Mapping[str, Json] = MappingProxyType({}),
) -> Agent:
    """Makes the agent of one seat: a class gets those of seat, rng and game that it asks for by name.

    Args:
        made: the class, or a function that stands for it.
        game: that it will play.
        seat: where it sits.
        rng: its own stream.
        parameters: the rest of what its constructor takes.
    """
    offered = {"seat": seat, "rng": rng, "game": game}
    wanted = inspect.signature(made).parameters
    return made(**{name: offered[name] for name in _OFFERED if name in wanted}, **parameters)


def python_agent(name: str, game: AnyGame, settings: Mapping[str, Json]) -> AgentEntry:
    """A Python class. Parameters: _target_, placement, limits, actor, deterministic, is_model, version."""
    parameters = dict(settings)
    target = parameters.pop("_target_", None)
    if not isinstance(target, str):
        raise InputError(f"pool.agents.{name}: expected _target_: package.module.Class, got {target!r}")
    deterministic = parameters.pop("deterministic", False)
    is_model = parameters.pop("is_model", False)
    version = parameters.pop("version", "1")
    placement = parameters.pop("placement", "inline")
    if placement not in PLACEMENTS:
        raise unknown_name(f"placement of pool.agents.{name}:", placement, PLACEMENTS)
    limits = parameters.pop("limits", {}) if placement == "process" else {}
    actor = parameters.pop("actor", {}) if placement == "actor" else {}
    for key, value, kind in (
        ("deterministic", deterministic, bool),
        ("is_model", is_model, bool),
        ("version", version, str),
        ("limits", limits, dict),
        ("actor", actor, dict),
    ):
        if type(value) is not kind:
            raise InputError(f"pool.agents.{name}.{key}: expected {kind.__name__}, got {value!r}")
    try:
        made = locate(target)
    except InputError as error:
        raise InputError(f"pool.agents.{name}: {error}") from error
    clash = [key for key in _OFFERED if key in parameters]
    if clash:
        raise InputError(
            f"pool.agents.{name}.{clash[0]}: the episode gives this one; take it out of the pool"
        )
    _check_constructor(name, target, made, parameters, many=placement == "actor")
    source = inspect.getsourcefile(made)
    code = source_digest(Path(source)) if source else target
    agent: AgentFactory = PythonAgent(target, parameters, game)
    if placement == "process":
        agent = placed(name, game, target, parameters, limits)
    elif placement == "actor":
        agent = acted(name, game, target, made, parameters, actor)
    return make_entry(
        name,
        "python",
        agent,
        code=code,
        version=version,
        parameters={"_target_": target, **parameters},
        deterministic=deterministic,
        is_model=is_model,
    )


def _check_constructor(
    name: str, target: str, made: Callable[..., Agent], parameters: Mapping[str, Json], *, many: bool
) -> None:
    if not hasattr(made, "decide") and not (many and hasattr(made, "decide_many")):
        both = " and no method decide_many(requests)" if many else ""
        raise InputError(f"pool.agents.{name}: {target} has no method decide(request){both}")
    signature = inspect.signature(made)
    offered = {key: None for key in _OFFERED if key in signature.parameters}
    try:
        signature.bind(**offered, **parameters)
    except TypeError as error:
        raise InputError(
            f"pool.agents.{name}: {target}{signature} does not take these parameters: {error}"
        ) from error
