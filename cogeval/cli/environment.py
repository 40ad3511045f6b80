"""What cogeval runs on: versions, and whether they will do.

Invariant: the floors are those of the installed package's own metadata, written down once, in
pyproject.toml.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterable
from importlib import metadata

from cogeval.errors import InputError

RECORDED = ("ray", "pyarrow", "numpy", "scipy", "hydra-core", "omegaconf", "mlflow", "msgspec")
"""Packages whose versions a run's manifest keeps."""

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?P<bounds>[^;]*)(?P<marker>;.*)?")
_BOUND = re.compile(r"(>=|<)\s*([0-9.]+)")


def check_packages(
    requirements: Iterable[str] | None = None, version_of: Callable[[str], str] = metadata.version
) -> None:
    """Compares the installed packages with what cogeval needs.

    Args:
        requirements: as in package metadata; None: those of cogeval.
        version_of: gives the installed version of a package.

    Raises:
        InputError: a package is missing, too old or too new; the message says how to mend it.
    """
    if requirements is None:
        try:
            requirements = metadata.requires("cogeval") or ()
        except metadata.PackageNotFoundError:  # run from a source tree that was never installed
            return
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        if found is None or found["marker"]:
            continue
        name, bounds = found["name"], found["bounds"].strip()
        mend = f"install it with: python -m pip install '{name}{bounds}'"
        try:
            version = version_of(name)
        except metadata.PackageNotFoundError:
            raise InputError(f"cogeval needs {name} {bounds}, which is not installed; {mend}") from None
        if not _fits(version, bounds):
            raise InputError(f"cogeval needs {name} {bounds}, this is {version}; {mend}")


def package_versions() -> dict[str, str]:
    """The installed versions of the packages that a result could depend on."""
    versions = {}
    for name in RECORDED:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "none"
    return versions


def python_version() -> str:
    """The version of this Python and the system that it runs on."""
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def _fits(version: str, bounds: str) -> bool:
    have = _numbers(version)
    for sign, bound in _BOUND.findall(bounds):
        limit = _numbers(bound)
        width = max(len(have), len(limit))
        padded = [numbers + (0,) * (width - len(numbers)) for numbers in (have, limit)]
        if (padded[0] >= padded[1]) != (sign == ">="):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
