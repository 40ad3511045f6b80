"""Configuration that a command starts from: composed for a new run, a run's own for an old one.

Invariant: an override means the same everywhere: Hydra's grammar reads it and `cogeval.config`
checks the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from cogeval.cli.arguments import Arguments
from cogeval.cli.composing import Composer
from cogeval.cli.rewording import reword
from cogeval.config import Config, conf_dir, config_from_plain, config_from_yaml, read_config
from cogeval.errors import InputError
from cogeval.store.roots import DEFAULT_ROOT, call
from cogeval.store.run import RunDir


def composer_of(arguments: Arguments) -> Composer:
    """Hydra with the user's --config-dir and --config-name."""
    return Composer(conf_dir(), arguments.value("--config-dir"), arguments.value("--config-name"))


def find_runs(arguments: Arguments, names: Sequence[str]) -> list[RunDir]:
    """The runs that the user named, each once.

    Args:
        arguments: of the command; its run.root says where runs lie.
        names: run ids, beginnings of them, directories, or latest; at least one.

    Raises:
        InputError: no name, or one that is no run; the message lists the known ones.
    """
    if not names:
        raise InputError("expected a RUN (a run id, a directory or latest), got none; for example latest")
    root = run_root(arguments)
    found = {run.place.resolved().uri: run for run in (RunDir.find(name, root) for name in names)}
    return list(found.values())


def run_root(arguments: Arguments) -> str:
    """The directory of runs that a command looks in."""
    plain: dict[str, Any] = {"run": {"root": DEFAULT_ROOT}}
    _apply([o for o in arguments.overrides if _is_root(o)], plain)
    root = plain["run"]["root"]
    if not isinstance(root, str) or not root:
        raise InputError(f"run.root: expected a directory, got {root!r}")
    return root


def config_of(run: RunDir, overrides: Sequence[str] = ()) -> Config:
    """A run's own configuration, with what the user overrides now.

    Args:
        run: the run.
        overrides: KEY=VALUE or GROUP=NAME.

    Raises:
        InputError: an unknown key or a wrong value.
    """
    config = config_from_yaml(run.config_yaml)
    kept = [o for o in overrides if not _is_root(o)]  # it said where the run is
    if not kept:
        return config
    plain = msgspec.to_builtins(config)
    _apply(kept, plain)
    return config_from_plain(plain)


def called(run: RunDir) -> str:
    """What to write on the command line for a run, from where the user stands."""
    return call(run.place)


def _is_root(override: str) -> bool:
    return override.partition("=")[0].lstrip("+~") == "run.root"


def _apply(overrides: Sequence[str], plain: dict[str, Any]) -> None:
    """Sets each override in nested dicts."""
    composer = Composer(conf_dir())
    parser = OverridesParser.create(config_loader=composer.hydra.config_loader)
    for written in overrides:
        try:
            parsed = parser.parse_override(written)
        except HydraException as error:
            raise reword(error, [written], composer) from error
        if parsed.is_delete() or parsed.is_sweep_override():
            raise InputError(f"expected one KEY=VALUE, got {written!r}")
        key, value = parsed.key_or_group, parsed.value()
        if key in composer.groups():
            part = getattr(read_config(composer.compose([written])), key)
            plain[key] = msgspec.to_builtins(part)
            continue
        *place, last = key.split(".")
        node: Any = plain
        for part in place:
            node = node.setdefault(part, {}) if isinstance(node, dict) else None
        if not isinstance(node, dict):
            raise InputError(f"{key}: {'.'.join(place)} is a single value and has no keys")
        node[last] = value
