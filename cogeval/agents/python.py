"""Any Python class with the agent protocol as an agent of a pool, run inside the episode actor.

Invariant: the class is imported by name where it plays, so that nothing of it travels but its path
and its parameters.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from cogeval.agents.entry import AgentEntry, make_entry, source_digest
from cogeval.core.agent import Agent
from cogeval.core.game import AnyGame, Json, Seat
from cogeval.core.rng import Stream
from cogeval.errors import InputError

_OFFERED = ("seat", "rng", "game")  # given to a constructor that asks for them by name


class PythonAgent(msgspec.Struct, frozen=True):
    """A factory of agents of one class."""

    target: str  # "package.module.Class"
    parameters: Mapping[str, Json]
    game: AnyGame

    def __call__(self, seat: Seat, rng: Stream) -> Agent:
        """Makes the agent of one seat, with the seat, stream and game that its constructor asks for."""
        made = locate(self.target)
        offered = {"seat": seat, "rng": rng, "game": self.game}
        wanted = inspect.signature(made).parameters
        agent: Agent = made(**{k: v for k, v in offered.items() if k in wanted}, **self.parameters)
        return agent


def locate(target: str) -> Callable[..., Agent]:
    """Imports the class that a dotted path names.

    Raises:
        InputError: when it cannot be imported; the message names what was tried.
    """
    module_name, _, attribute = target.rpartition(".")
    if not module_name:
        raise InputError(f"_target_: expected package.module.Class, got {target!r}")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        tried = ", ".join(p or "." for p in sys.path[:4])
        raise InputError(
            f"_target_ {target!r} cannot be imported ({error}); looked first in {tried}. "
            "Run from the directory that holds it or name that directory in agent_paths"
        ) from error
    if not callable(found):
        raise InputError(f"_target_ {target!r}: expected a class, got {type(found).__name__}")
    made: Callable[..., Agent] = found
    return made


def python_agent(name: str, game: AnyGame, settings: Mapping[str, Json]) -> AgentEntry:
    """A Python class with `decide`. Parameters: _target_, deterministic, version; the rest are its own."""
    parameters = dict(settings)
    target = parameters.pop("_target_", None)
    if not isinstance(target, str):
        raise InputError(f"pool.agents.{name}: expected _target_: package.module.Class, got {target!r}")
    deterministic = parameters.pop("deterministic", False)
    version = parameters.pop("version", "1")
    if type(deterministic) is not bool or type(version) is not str:
        raise InputError(
            f"pool.agents.{name}: expected deterministic: true|false and version: a string, "
            f"got {deterministic!r} and {version!r}"
        )
    made = locate(target)
    clash = [key for key in _OFFERED if key in parameters]
    if clash:
        raise InputError(
            f"pool.agents.{name}.{clash[0]}: the episode gives this one; take it out of the pool"
        )
    _check_constructor(name, target, made, parameters)
    source = inspect.getsourcefile(made)
    code = source_digest(Path(source)) if source else target
    return make_entry(
        name,
        "python",
        PythonAgent(target, parameters, game),
        code=code,
        version=version,
        parameters={"_target_": target, **parameters},
        deterministic=deterministic,
    )


def _check_constructor(
    name: str, target: str, made: Callable[..., Agent], parameters: Mapping[str, Json]
) -> None:
    if not hasattr(made, "decide"):
        raise InputError(f"pool.agents.{name}: {target} has no method decide(request)")
    signature = inspect.signature(made)
    offered = {key: None for key in _OFFERED if key in signature.parameters}
    try:
        signature.bind(**offered, **parameters)
    except TypeError as error:
        raise InputError(
            f"pool.agents.{name}: {target}{signature} does not take these parameters: {error}"
        ) from error
