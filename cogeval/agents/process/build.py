"""From an entry of a pool to an agent in a process.

Invariant: what the fingerprint covers is what is declared: the command, the contents of `files`, the
settings. Where the files lie on this machine is not in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from cogeval.agents.entry import AgentEntry, make_entry, take
from cogeval.agents.process.launch import Bounds, Launch, bounds_of
from cogeval.agents.process.seat import ProcessAgent, Setup
from cogeval.core.game import AnyGame, Json
from cogeval.errors import InputError

_MOST_COMMAND: Final = 100_000  # bytes of a command and the names of its files

_SETTINGS: Final[Mapping[str, tuple[type, Json]]] = {
    "command": (list, None),
    "files": (list, []),
    "env": (list, []),
    "reuse": (bool, False),
    "limits": (dict, {}),
    "deterministic": (bool, False),
    "is_model": (bool, False),
    "version": (str, "1"),
}


def process_agent(name: str, game: AnyGame, settings: Mapping[str, Json]) -> AgentEntry:
    """A program in any language. Parameters: command, files, env, reuse, limits (memory_mb, ...), version."""
    where = f"pool.agents.{name}"
    flat = {key: value for key, value in settings.items() if key in Bounds.__struct_fields__}
    rest = {key: value for key, value in settings.items() if key not in flat}
    known = {**_SETTINGS, **dict.fromkeys(Bounds.__struct_fields__, (object, None))}
    values = take(name, "process", rest, known)
    limits = values["limits"] or {}
    if twice := sorted(flat.keys() & limits.keys()):
        raise InputError(f"{where}.{twice[0]}: given twice, in limits too; leave it in limits alone")
    command, files = _texts(where, "command", values["command"]), _texts(where, "files", values["files"])
    if not command:
        raise InputError(f"{where}.command: expected a program and its arguments, got {values['command']!r}")
    files = list(dict.fromkeys(files))
    env = _texts(where, "env", values["env"])
    found = [_found(where, file) for file in files]
    _check_command(where, command, files)
    bounds = placed_bounds(f"{where}.limits" if limits else where, {**flat, **limits})
    launch = Launch(
        command=tuple(command),
        files=tuple((file, path) for file, path in zip(files, found, strict=True) if file != path),
        env=tuple(env),
        bounds=bounds,
        reuse=values["reuse"],
    )
    version = values["version"]
    return make_entry(
        name,
        "process",
        ProcessAgent(launch, game),
        code=_digest(where, files, found),
        version=version,
        parameters={
            "command": command,
            "files": files,
            "env": env,
            "reuse": launch.reuse,
            **msgspec.to_builtins(bounds),
        },
        deterministic=values["deterministic"],
        is_model=values["is_model"],
    )


def placed(
    name: str, game: AnyGame, target: str, parameters: Mapping[str, Json], limits: Mapping[str, Json]
) -> ProcessAgent:
    """A Python agent that is to run in a process of its own.

    Args:
        name: in the pool, for messages.
        game: that it will play.
        target: package.module.Class.
        parameters: of its constructor.
        limits: fields of `Bounds`.

    Raises:
        InputError: for limits that there are not.
    """
    return ProcessAgent(
        Launch((), bounds=placed_bounds(f"pool.agents.{name}.limits", limits)),
        game,
        Setup(target, parameters),
    )


def placed_bounds(where: str, limits: Mapping[str, Json]) -> Bounds:
    """Reads limits, on a platform that has them.

    Raises:
        InputError: for a wrong limit, or a platform without processes that can be supervised.
    """
    if sys.platform != "linux":
        raise InputError(f"{where}: agents in processes need Linux, got {sys.platform}")
    try:
        return bounds_of(limits)
    except ValueError as error:  # msgspec's errors are such
        raise InputError(f"{where}: {error}") from error


def _texts(where: str, key: str, values: Sequence[Json] | None) -> list[str]:
    for value in values or ():
        if not isinstance(value, str) or "\0" in value or not _is_unicode(value):
            raise InputError(f"{where}.{key}: expected a list of texts, got {value!r} in it; quote numbers")
    return list(values or ())


def _is_unicode(text: str) -> bool:
    with contextlib.suppress(UnicodeEncodeError):  # half of a surrogate pair
        return bool(text.encode()) or not text
    return False


def _is_file(path: Path) -> bool:
    """True for a file that can be seen; a text of a command may be no path at all, being too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def _found(where: str, file: str) -> str:
    """Where a declared file lies: absolute, or in the directory one stands in, or on the import path."""
    path = Path(file)
    if not path.is_absolute() and (".." in path.parts or file != path.as_posix()):
        raise InputError(f"{where}.files: expected an absolute path or one inside a directory, got {file!r}")
    tried = [Path(place).absolute() / path for place in ("", *sys.path)]
    for each in tried:
        if _is_file(each):
            return str(each)
    raise InputError(f"{where}.files: expected a file, got {file!r}, which is not in {Path().absolute()}")


def _check_command(where: str, command: Sequence[str], files: Sequence[str]) -> None:
    """Finds the mistakes that would otherwise cost every episode a fault."""
    program = command[0]
    if (size := sum(len(word.encode()) for word in (*command, *files))) > _MOST_COMMAND:
        raise InputError(
            f"{where}.command: expected at most {_MOST_COMMAND:,} bytes, got {size:,}; put the program into "
            "a file and name it in files"
        )
    if program.removeprefix("./") not in files and shutil.which(program) is None:
        raise InputError(f"{where}.command: expected a program, got {program!r}, which is not on the PATH")
    for word in command:
        if word.removeprefix("./") not in files and not Path(word).is_absolute() and _is_file(Path(word)):
            raise InputError(
                f"{where}.command: {word!r} is a file here, but the agent runs in an empty directory of "
                f"its own; add it to files: [{word}]"
            )


def _digest(where: str, files: Sequence[str], found: Sequence[str]) -> str:
    """Identity of the declared files: their names, as written, and contents."""
    total = hashlib.sha256()
    for file, path in sorted(zip(files, found, strict=True)):
        total.update(Path(file).name.encode() if Path(file).is_absolute() else file.encode())
        try:
            with Path(path).open("rb") as opened:
                total.update(b"\0" + hashlib.file_digest(opened, "sha256").digest())
        except OSError as error:
            raise InputError(
                f"{where}.files: expected a file that can be read, got {file!r}: {error.strerror}"
            ) from error
    return total.hexdigest()[:16]
