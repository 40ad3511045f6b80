"""Any Python class with the agent protocol as an agent of a pool, in the episode actor or a process apart.

Invariant: the class is imported by name where it plays, so that nothing of it travels but its path
and its parameters.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType

import msgspec

from cogeval.agents.entry import AgentEntry, make_entry, source_digest
from cogeval.agents.process.build import placed
from cogeval.core.agent import Agent, AgentFactory
from cogeval.core.game import AnyGame, Json, Seat
from cogeval.core.rng import Stream
from cogeval.errors import InputError, few, unknown_name

PLACEMENTS = ("inline", "process")  # where it runs: an agent decides the same in both
_MOST_PLACES = 8  # of the import path that a message names
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


def locate(target: str) -> Callable[..., Agent]:
    """Imports the class that a dotted path names.

    Raises:
        InputError: when it cannot be imported; the message names what was tried, or what its module
            raised and where.
    """
    module_name, _, attribute = target.rpartition(".")
    if not module_name or not all(part.isidentifier() for part in target.split(".")):
        raise InputError(f"_target_: expected package.module.Class, got {target!r}")
    module = _imported(module_name, target)
    if not hasattr(module, attribute):
        raise InputError(
            f"_target_ {target!r} cannot be imported: {module.__file__ or module_name} has no {attribute!r}"
        )
    found = getattr(module, attribute)
    if not callable(found):
        raise InputError(f"_target_ {target!r}: expected a class, got {type(found).__name__}")
    made: Callable[..., Agent] = found
    return made


def _imported(module_name: str, target: str) -> ModuleType:
    """Imports a module of the user's, which may do anything meanwhile, end the process too."""
    try:
        return importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent is None or not f"{module_name}.".startswith(f"{absent}."):
            raise InputError(
                f"_target_ {target!r} cannot be imported: module {module_name} raised "
                f"{type(error).__name__}: {getattr(error, 'msg', error)} ({_place_of(error)})"
            ) from error
        raise InputError(
            f"_target_ {target!r} cannot be imported ({error}); looked in {_own_path()} and among the "
            "installed packages. Run from the directory that holds it or name that directory in agent_paths"
        ) from error


def _own_path() -> str:
    """The part of the import path that is the user's: no library, no directory of commands."""
    here = str(Path().absolute())
    theirs = tuple(
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    )
    theirs += (str(Path(sys.executable).parent), str(Path(sys.executable).resolve().parent))
    own = []
    for place in dict.fromkeys(str(Path(entry).absolute()) for entry in sys.path):
        is_library = any(Path(place).is_relative_to(each) for each in theirs) or place.endswith(".zip")
        if place == here or not (is_library or "-packages" in place):
            own.append(place)
    return few(own, _MOST_PLACES) or "no directory of yours"


def _place_of(error: BaseException) -> str:
    """File and line of the user's code that an import stopped at."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<frozen")]
    last = next((f for f in reversed(frames) if "site-packages" not in f.filename), frames[-1])
    return f"{last.filename}, line {last.lineno}"


def python_agent(name: str, game: AnyGame, settings: Mapping[str, Json]) -> AgentEntry:
    """A Python class. Parameters: _target_, placement, limits, deterministic, is_model, version, its own."""
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
    for key, value, kind in (
        ("deterministic", deterministic, bool),
        ("is_model", is_model, bool),
        ("version", version, str),
        ("limits", limits, dict),
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
    _check_constructor(name, target, made, parameters)
    source = inspect.getsourcefile(made)
    code = source_digest(Path(source)) if source else target
    agent: AgentFactory = PythonAgent(target, parameters, game)
    if placement == "process":
        agent = placed(name, game, target, parameters, limits)
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
