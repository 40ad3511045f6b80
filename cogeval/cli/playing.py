"""`cogeval run`: a new run, a sweep of them, or a look at what one would be.

Invariant: everything that the configuration can be wrong in is found before a run directory is made.
"""

from __future__ import annotations

from cogeval.cli.arguments import Arguments
from cogeval.cli.environment import check_packages
from cogeval.cli.plan import show_plan
from cogeval.cli.session import check_limits, conclude, new_run, play
from cogeval.cli.settings import composer_of
from cogeval.cli.sweep import sweep
from cogeval.config import build_experiment, read_config
from cogeval.errors import InputError

_INSTEAD = ("--cfg", "--info", "--plan")


def run(arguments: Arguments) -> int:
    """Carries out ``cogeval run``."""
    check_packages()
    _check_flags(arguments)
    composer = composer_of(arguments)
    overrides = arguments.overrides
    if which := arguments.value("--cfg"):
        composer.show(which, arguments.value("--package"), overrides, resolve=arguments.switch("--resolve"))
        return 0
    if what := arguments.value("--info"):
        composer.inform(what, overrides)
        return 0
    if arguments.switch("--multirun"):
        return sweep(composer, arguments)
    experiment = build_experiment(read_config(composer.compose(overrides)))
    check_limits(experiment, overrides)
    as_json = arguments.switch("--json")
    if arguments.switch("--plan"):
        return show_plan(experiment, as_json=as_json)
    quiet = arguments.switch("--quiet")
    played = play(new_run(experiment), experiment, quiet=quiet, ladder=not as_json, is_new=True)
    return conclude(played, as_json=as_json)


def _check_flags(arguments: Arguments) -> None:
    given = [flag for flag in (*_INSTEAD, "--multirun") if arguments.switch(flag)]
    if len(given) > 1 and given != ["--plan", "--multirun"]:
        raise InputError(f"expected one of {' and '.join(given)}, got both; run them one after the other")
    for flag in ("--package", "--resolve"):
        if arguments.switch(flag) and not arguments.switch("--cfg"):
            raise InputError(f"{flag} belongs to --cfg; for example --cfg job {flag}")
