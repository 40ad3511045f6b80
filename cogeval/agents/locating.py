"""Classes of agents by their names: what cannot be imported is said with where it was looked for.

Invariant: an agent is imported where it plays, so that nothing of it travels but its path.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from cogeval.core.agent import Agent
from cogeval.errors import InputError, few

_MOST_PLACES = 8  # of the import path that a message names


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
