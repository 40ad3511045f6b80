"""A directory of runs: which are there, and which one the user means.

Invariant: a directory is a run if and only if it has a manifest.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

from cogeval.errors import InputError, few, unknown_name
from cogeval.store.shards import read_checked_json

MANIFEST: Final = "manifest.json"
LATEST: Final = "latest"
"""What stands for the run that was made last; no run is named so."""

DEFAULT_ROOT: Final = "runs"
"""Where runs lie when nobody says otherwise, as the configuration has it."""

_PLAIN_PATH = re.compile(r"[\w./+@%-]+")  # what Hydra reads without quotes
_MOST_LISTED = 10  # runs in a message


def call(run_path: Path) -> str:
    """What to write on the command line for a run, from where the user stands.

    Args:
        run_path: the run's directory, under its root.
    """
    if run_path.name in ("", ".."):  # the user stands in it, or below
        run_path = run_path.resolve()
    root, run_id = run_path.parent, run_path.name
    if root.resolve() == Path(DEFAULT_ROOT).resolve():
        return run_id
    override = f"run.root={root}"
    if not _PLAIN_PATH.fullmatch(str(root)):  # Hydra's quotes within the shell's
        override = shlex.quote(f'run.root="{root}"')
    return f"{run_id} {override}"


def list_runs(root: Path | str) -> list[Path]:
    """Directories of the runs under a root, by name; none when there is no such root."""
    return sorted(path.parent for path in Path(root).glob(f"*/{MANIFEST}"))


def find_run(ref: str, root: Path) -> Path:
    """The directory of the run that the user names.

    Args:
        ref: a run id, an unambiguous beginning of one, a run's directory, or ``latest``.
        root: directory of runs.

    Raises:
        InputError: there is no such run, or more than one; the message lists the known ones.
    """
    if ref and (Path(ref) / MANIFEST).is_file():
        return Path(ref)
    runs = list_runs(root)
    if not runs:
        raise InputError(f"no runs in {root}: make one with `cogeval run`, or name another run.root=DIR")
    if ref == LATEST:
        return max(runs, key=lambda path: (_created(path), path.name))
    exact = [path for path in runs if path.name == ref]
    matches = exact or [path for path in runs if ref and path.name.startswith(ref)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        listed = few([path.name for path in matches], _MOST_LISTED)
        raise InputError(f"run {ref!r} could be any of {listed}; write more of the id")
    raise unknown_name(f"run in {root}", ref, [*(path.name for path in runs), LATEST], most=_MOST_LISTED)


def _created(path: Path) -> str:
    """When a run was made; one with a damaged manifest sorts first and never is the latest."""
    try:
        return str(read_checked_json((path / MANIFEST).read_bytes())["created"])
    except (OSError, ValueError, KeyError):
        return ""
