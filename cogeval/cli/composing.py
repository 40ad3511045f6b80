"""From overrides to a composed configuration, by Hydra and in Hydra's own meaning of every word.

Invariant: Hydra only composes: it makes no directory, changes no working directory and sets up no
logging. Its errors leave here re-worded (`cogeval.cli.rewording`). Uses `hydra._internal`, whose
version pyproject pins, because its public compose API knows neither --config-dir nor sweeps.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import version as hydra_version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode

from cogeval.cli.arguments import NO_CONFIGS, NO_GROUPS
from cogeval.cli.rewording import reword
from cogeval.errors import InputError

_OURS = ("hydra.searchpath", "hydra.sweeper.params")  # the keys of Hydra's own that mean something here


class Composer:
    """Hydra over our configuration and, where given, the user's.

    Args:
        conf: the configuration directory of cogeval.
        config_dir: a directory of the user's, searched after ours, as Hydra's own --config-dir is.
        config_name: the primary configuration.

    Raises:
        InputError: there is no such directory.
    """

    def __init__(self, conf: Path, config_dir: str | None = None, config_name: str | None = None) -> None:
        hydra_version.setbase("1.3")
        search_path = create_config_search_path(str(conf))
        if config_dir is not None:
            directory = Path(config_dir).absolute()
            if not directory.is_dir():
                raise InputError(f"--config-dir: expected a directory, got {config_dir!r}")
            search_path.prepend(
                provider="command-line", path=f"file://{directory}", anchor=SearchPathQuery(provider="schema")
            )
        self.hydra = Hydra(task_name="cogeval", config_loader=ConfigLoaderImpl(search_path))
        self.config_name = (config_name or "config").removesuffix(".yaml")

    def compose(self, overrides: Sequence[str]) -> Any:
        """Composes one configuration.

        Returns:
            An OmegaConf container without Hydra's own part.

        Raises:
            InputError: an unknown group option or key, or an override that cannot be read.
        """
        self._check_hydra_keys(overrides)
        try:
            return self.composed(overrides)
        except (HydraException, ValueError, TypeError, AssertionError, OSError) as error:
            raise reword(error, overrides, self) from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("omegaconf", "yaml"):
                raise reword(error, overrides, self) from error
            raise

    def composed(self, overrides: Sequence[str], *, whole: bool = False, mode: RunMode = RunMode.RUN) -> Any:
        """Composes with Hydra's own errors.

        Args:
            overrides: as on the command line.
            whole: with Hydra's own part.
            mode: whether several values of one key are a sweep.
        """
        loaded = self.hydra.config_loader.load_configuration(
            config_name=self.config_name, overrides=list(overrides), run_mode=mode
        )
        return loaded if whole else self.hydra.get_sanitized_cfg(loaded, "job")

    def jobs(self, overrides: Sequence[str]) -> list[list[str]]:
        """The overrides of each job of a sweep, in the order of Hydra's basic sweeper.

        A key that names several values (``a=1,2``, ``choice()``, ``range()``, ``glob()``) is swept; the
        last key varies fastest.

        Raises:
            InputError: an override that cannot be read or swept.
        """
        self._check_hydra_keys(overrides)
        try:
            parser = OverridesParser.create(config_loader=self.hydra.config_loader)
            whole = self.composed(overrides, whole=True, mode=RunMode.MULTIRUN)
            configured = whole.hydra.sweeper.get("params") or {}
            listed = [f"{key}={value}" for key, value in configured.items()]
            parsed = parser.parse_overrides([*listed, *overrides])
            choices = {override.get_key_element(): _values(override) for override in parsed}
        except Exception as error:
            raise reword(error, overrides, self) from error
        return [list(job) for job in itertools.product(*choices.values())]

    def options(self, group: str) -> list[str]:
        """The names that ``group=NAME`` can take; for the group "" the primary configurations."""
        found = self.hydra.config_loader.get_group_options(group, ObjectType.CONFIG)
        known = [str(name) for name in found if not str(name).startswith("_dummy_")]  # Hydra's own
        return known if group else [name for name in known if name not in NO_CONFIGS]

    def groups(self) -> list[str]:
        """The names of the groups, Hydra's own and the folders that are none left out."""
        return [str(name) for name in self.hydra.config_loader.list_groups("") if name not in NO_GROUPS]

    def show(self, which: str, package: str | None, overrides: Sequence[str], *, resolve: bool) -> None:
        """Prints the composed configuration as Hydra's --cfg does."""
        whole = self._whole(overrides)
        if package and package != "_global_" and _select(whole, package) is None:
            raise InputError(f"--package: expected a part of the configuration, got {package!r}")
        self.hydra.show_cfg(self.config_name, list(overrides), which, package, resolve)

    def inform(self, what: str, overrides: Sequence[str]) -> None:
        """Prints how the configuration is composed, as Hydra's --info does."""
        self._whole(overrides)
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        try:
            self.hydra.show_info(what, self.config_name, list(overrides))
        finally:  # it prints by way of the root logger
            root.handlers[:] = handlers
            root.setLevel(level)

    def _whole(self, overrides: Sequence[str]) -> Any:
        self.compose(overrides)  # re-words what is wrong
        return self.composed(overrides, whole=True)

    def _check_hydra_keys(self, overrides: Sequence[str]) -> None:
        """Refuses keys of Hydra's that would have no effect: silence would mislead."""
        for override in overrides:
            key = override.partition("=")[0].lstrip("+~")
            if key.startswith(("hydra.", "hydra/")) and not key.startswith(_OURS):
                raise InputError(
                    f"{key} has no effect: cogeval only composes with Hydra (runs lie under run.root, "
                    "sweeps are -m); take it out"
                )


def _values(override: Override) -> list[str]:
    """The values of one override, each as an override."""
    assert override.input_line is not None
    if not override.is_sweep_override():
        return [override.input_line]
    if not override.is_discrete_sweep():
        raise InputError(
            f"{override.input_line}: an interval has no list of values to sweep; write choice(...) or "
            "range(...)"
        )
    key = override.get_key_element()
    values = [f"{key}={value}" for value in override.sweep_string_iterator()]
    if not values:
        raise InputError(f"{override.input_line} gives no value to sweep over; see the options of {key}")
    return values


def _select(config: Any, path: str) -> Any:
    """The part of a container at a dotted path; None when there is none."""
    for part in path.split("."):
        if not hasattr(config, "get") or isinstance(config, str) or part not in config:
            return None
        config = config[part]
    return config
