"""A directory of runs: which are there, and which one the user means.

Invariant: a directory is a run if and only if it has a manifest.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cogeval.errors import InputError, RunError, few, unknown_name
from cogeval.store.addresses import is_address
from cogeval.store.places import Place, PlaceLike, place_at
from cogeval.store.shards import read_checked_json

MANIFEST: Final = "manifest.json"
SHARDS: Final = "shards"
LATEST: Final = "latest"
"""What stands for the run that was made last; no run is named so."""

DEFAULT_ROOT: Final = "runs"
"""Where runs lie when nobody says otherwise, as the configuration has it."""

_PLAIN_PATH = re.compile(r"[\w./+@%-]+")  # what Hydra reads without quotes
_MOST_LISTED = 10  # runs in a message


def call(run: PlaceLike) -> str:
    """What to write on the command line for a run, from where the user stands.

    Args:
        run: the run's place, under its root.
    """
    place = place_at(run)
    if place.path is not None and place.path.name in ("", ".."):  # the user stands in it, or below
        with contextlib.suppress(OSError):  # where they stand was removed: as good as it gets
            place = place.resolved()
    run_id, root = place.name, place.parent
    if root.path is not None and _is_default(root.path):
        return run_id
    override = f"run.root={root.uri}"
    if not _PLAIN_PATH.fullmatch(root.uri):  # Hydra's quotes within the shell's
        override = shlex.quote(f'run.root="{root.uri}"')
    return f"{run_id} {override}"


def check_there(run: Place, *parts: str) -> None:
    """Makes sure, of a run that is in use, that nobody has removed its directory.

    Args:
        run: the run's place; one in an object store has no directory that could be gone.
        parts: names in it that must be there too.

    Raises:
        RunError: it is gone.
    """
    if run.path is None:
        return
    for path in (run.path, *(run.path / part for part in parts)):
        if not path.exists():
            what = "the run's directory" if path == run.path else "part of the run's directory"
            raise RunError(
                f"{path} is gone: {what} was removed or moved while it was in use; put it back, or start the "
                "run anew"
            )


@contextlib.contextmanager
def naming_gone(run: Place) -> Iterator[None]:
    """Turns "no such file" into an error that says that the run's directory is gone, when it is.

    Args:
        run: the place of the run that is being written.

    Raises:
        RunError: it is gone.
    """
    try:
        yield
    except FileNotFoundError:
        check_there(run, SHARDS, MANIFEST)
        raise


def _is_default(root: Path) -> bool:
    default = Path(DEFAULT_ROOT)
    if root == default:
        return True
    try:
        return root.resolve() == default.resolve()
    except OSError:  # the directory that we stand in was removed: nothing lies in it
        return False


def _seen(where: PlaceLike) -> Place:
    """A place to look into; what a user writes is given up soon when nothing answers there."""
    return place_at(where).hasty() if isinstance(where, str) else place_at(where)


def list_runs(root: PlaceLike) -> list[Place]:
    """Places of the runs under a root, by name; none when there is no such root.

    Args:
        root: directory of runs; see `find_run`.
    """
    place = _seen(root)
    subs = (place.sub(name) for name in place.names())
    return [sub for sub in subs if _is_run(sub)]


def find_run(ref: str, root: PlaceLike) -> Place:
    """The place of the run that the user names.

    Args:
        ref: a run id, an unambiguous beginning of one, a run's directory or URI, or ``latest``.
        root: directory of runs. What is found by a text is for reading: see `Place.hasty`.

    Raises:
        InputError: there is no such run, or more than one; the message lists the known ones.
        RunError: the store does not answer.
    """
    if ref and _is_run(here := _seen(ref)):
        return here
    if is_address(ref):
        raise InputError(f"no run at {ref}: expected the URI of a run, with a {MANIFEST} in it")
    within = _seen(root)
    if ref and ref != LATEST and within.path is None and _is_run(exact := within.sub(ref)):
        return exact  # without a look at all the others
    runs = list_runs(within)
    if not runs:
        lacking = within.lacks()
        if lacking is not None:
            raise InputError(
                f"no runs in {within.where()}: there is no {lacking}; make it, or correct run.root"
            )
        raise InputError(
            f"no runs in {within.where()}: make one with `cogeval run`, or name another run.root=DIR"
        )
    if ref == LATEST:
        return max(runs, key=lambda run: (_created(run), run.name))
    matches = [run for run in runs if run.name == ref] or [
        run for run in runs if ref and run.name.startswith(ref)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        listed = few([run.name for run in matches], _MOST_LISTED)
        raise InputError(f"run {ref!r} could be any of {listed}; write more of the id")
    known = [*(run.name for run in runs), LATEST]
    raise unknown_name(f"run in {within.where()}", ref, known, most=_MOST_LISTED)


def _is_run(place: Place) -> bool:
    if place.path is None:
        return place.size(MANIFEST) is not None
    try:
        return (place.path / MANIFEST).is_file()
    except OSError:  # a directory of somebody else's
        return False


def _created(run: Place) -> str:
    """When a run was made; one with a damaged manifest sorts first and never is the latest."""
    try:
        return str(read_checked_json(run.read(MANIFEST))["created"])
    except (OSError, ValueError, KeyError):
        return ""
