"""What to start in a process, and within which limits.

Invariant: a launch is a value that pickles and holds names of environment variables, never their values.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from cogeval.agents.llm.secrets import scrub
from cogeval.core.game import Json
from cogeval.errors import closest_first

RUNNER: Final = "cogeval.agents.process.runner"
_SECRET: Final = re.compile(
    r"key|token|secret|passw|passphrase|pwd|credential|auth|cookie|session|signature|webhook|dsn"
    r"|(^|_)(pat|pin)(_|$)",
    re.IGNORECASE,
)
"""In the name of an environment variable whose value may well be a secret."""

_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_KEPT: Final = ("PATH", "LD_LIBRARY_PATH")  # of the environment, whatever the user allows


class Bounds(msgspec.Struct, frozen=True):
    """Limits of one agent's process; None: none."""

    memory_mb: int | None = 4096  # address space of each of its processes
    cpu_s: int | None = 3600  # processor time of each of its processes
    open_files: int = 256
    file_mb: int | None = 1024  # of each file that it writes
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

    def scrubbed(self, text: str) -> str:
        """A text of the process, without the values of secrets that it was given, spelt as in JSON or not."""
        if not (secrets := self.secrets):
            return text
        plain = scrub(text, secrets)
        spelt = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), plain)
        clean = scrub(spelt, secrets)
        return plain if clean == spelt else clean

    def cleaned(self, value: Any) -> Any:
        """A JSON value of the process, without them."""
        if not self.secrets:
            return value
        if isinstance(value, dict):
            return {self.scrubbed(name): self.cleaned(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.cleaned(item) for item in value]
        return self.scrubbed(value) if isinstance(value, str) else value

    @property
    def secrets(self) -> tuple[str, ...]:
        """Variables that it gets whose names look like secrets."""
        return tuple(name for name in self.env if _SECRET.search(name))

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
            known = ", ".join(closest_first(str(key), Bounds.__struct_fields__))
            raise ValueError(f"{key}: expected one of {known}")
        if isinstance(value, int | float) and not 0 < value < 1e9:
            raise ValueError(f"{key}: expected more than 0, got {value!r}")
    return msgspec.convert(dict(settings), Bounds)
