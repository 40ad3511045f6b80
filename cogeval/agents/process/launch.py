"""What to start in a process, and within which limits.

Invariant: a launch is a value that pickles and holds names of environment variables, never their values.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from cogeval.core.game import Json

RUNNER: Final = "cogeval.agents.process.runner"
_KEPT: Final = ("PATH", "LD_LIBRARY_PATH")  # of the environment, whatever the user allows


class Bounds(msgspec.Struct, frozen=True):
    """Limits of one agent's process; None: none."""

    memory_mb: int | None = 4096  # address space of each of its processes
    cpu_s: int | None = 3600  # processor time of each of its processes
    open_files: int = 256
    processes: int = 256  # processes and threads at once
    max_line_kb: int = 1024  # of one answer
    max_output_mb: int = 64  # of all answers of one episode
    start_s: float = 30.0  # from the start to the answer to `hello`


class Launch(msgspec.Struct, frozen=True):
    """How an agent's process is started."""

    command: tuple[str, ...]  # empty: the runner of Python agents
    files: tuple[tuple[str, str], ...] = ()  # (path in the process's directory, absolute path of the file)
    env: tuple[str, ...] = ()  # names of variables that it gets
    bounds: Bounds = Bounds()
    reuse: bool = False

    @property
    def is_python(self) -> bool:
        """True when a Python agent is to run in it."""
        return not self.command

    def request(self) -> bytes:
        """What the nursery reads, with the values of the environment as they are now."""
        allowed = {name: os.environ[name] for name in (*_KEPT, *self.env) if name in os.environ}
        return json.dumps(
            {
                "command": self.command,
                "module": RUNNER,
                "path": import_path(),
                "files": self.files,
                "env": {"LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", **allowed},
                "limits": msgspec.to_builtins(self.bounds),
            }
        ).encode()


def import_path() -> list[str]:
    """The import path of this interpreter, absolute: the process stands in another directory."""
    return [str(Path(entry).absolute()) for entry in sys.path]


def bounds_of(settings: Mapping[str, Json]) -> Bounds:
    """Reads limits.

    Raises:
        ValueError: naming the limit that is unknown, of another type or not positive.
    """
    for key, value in settings.items():
        if key not in Bounds.__struct_fields__:
            raise ValueError(f"{key}: expected one of {', '.join(Bounds.__struct_fields__)}")
        if isinstance(value, int | float) and not 0 < value < 1e9:
            raise ValueError(f"{key}: expected more than 0, got {value!r}")
    return msgspec.convert(dict(settings), Bounds)
