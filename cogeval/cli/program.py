"""How the user calls this program: `cogeval`, or the path that works where they stand.

Invariant: what a message tells the user to type does work when it is typed. Stdlib only.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from cogeval.cli.verbs import VERBS

_NAME = "cogeval"
_COMMAND = re.compile(rf"(?<![\w./-])(?<!-m ){_NAME} (?=(?:{'|'.join(VERBS)})\b)")


@functools.cache
def program() -> str:
    """What to type for this program: its name where the shell finds it, else its path."""
    running = _running()
    found = shutil.which(_NAME)
    if running is None or (found is not None and _is_same(Path(found), running)):
        return _NAME
    if running.name != _NAME:  # python -m cogeval, and no script beside that Python
        return f"{_typed_path(running)} -m {_NAME}"
    return _typed_path(running)


def standing_in() -> Path | None:
    """The working directory; None when it was removed meanwhile."""
    try:
        return Path.cwd()
    except OSError:
        return None


def typed(text: str) -> str:
    """The text with every command of ours as it must be typed here."""
    if (name := program()) == _NAME:
        return text
    return _COMMAND.sub(lambda _: f"{name} ", text)


def _running() -> Path | None:
    """The script that runs, or the Python that runs the package; None when something else calls us."""
    started = Path(sys.argv[0])
    if started.name == _NAME:
        return Path(shutil.which(sys.argv[0]) or started)
    if started.name != "__main__.py" or started.parent.name != _NAME:
        return None
    beside = Path(sys.executable).with_name(_NAME)
    return beside if beside.exists() else Path(sys.executable)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _typed_path(path: Path) -> str:
    """The path as short as it works, in the shell's quotes."""
    here = standing_in()
    if here is None:
        return shlex.quote(str(path))
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolving would leave the virtual environment
    if absolute.is_relative_to(here):
        short = str(absolute.relative_to(here))
        return shlex.quote(short if os.sep in short else os.path.join(os.curdir, short))  # noqa: PTH118
    return shlex.quote(str(absolute))
