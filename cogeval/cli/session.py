"""One stretch of playing a run: from a built experiment to recorded episodes and their ladder.

Invariant: whatever ends it, what is committed stays and the message names the command that goes on.
Wires the siblings that never import each other: driver, progress, tracking, ratings.
"""

from __future__ import annotations

import contextlib
import math
import os
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cogeval import __version__
from cogeval.agents.llm import LlmSeat
from cogeval.cli.app import INTERRUPTED, PAUSED, complain
from cogeval.cli.environment import package_versions, python_version
from cogeval.cli.output import counted, print_json, show, warn
from cogeval.cli.program import typed
from cogeval.cli.progress import doing, make_view
from cogeval.cli.recorded import void_reasons
from cogeval.cli.settings import called
from cogeval.cli.summing import sum_up, summary_json
from cogeval.cli.tracking import LiveTracking, ended_ms
from cogeval.config import Config, Experiment, build_plan, cluster_options, config_to_yaml, make_importable
from cogeval.config.accounts import run_prices
from cogeval.core.local_quota import dollars
from cogeval.errors import InputError, RunError
from cogeval.report import RunSummary
from cogeval.report.tables import ladder_table
from cogeval.store.run import RunDir, new_run_id
from cogeval.tracking.places import unknown_scheme, without_password

if TYPE_CHECKING:  # it would import ray
    from cogeval.cluster.driver import Outcome

_LAST_WORD_S = 15.0  # longest wait for the tracker after Ctrl-C
_REASON_CHARS = 300  # of the reason of a void episode


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """How a stretch of playing ended.

    Args:
        run: the run.
        experiment: what it plays.
        outcome: as the driver says.
        summary: of everything that the run holds now.
        is_tracked: its last state is in MLflow; None when tracking is off.
        rate_s: seconds that reading and rating took.
        track_s: seconds that MLflow was waited for.
    """

    run: RunDir
    experiment: Experiment
    outcome: Outcome
    summary: RunSummary
    is_tracked: bool | None
    rate_s: float
    track_s: float


def new_run(experiment: Experiment) -> RunDir:
    """Makes the directory of a new run.

    Raises:
        InputError: the run exists, its root cannot be written, or see `check_places`.
    """
    config = experiment.config
    check_places(config)
    run_id = config.run.id or new_run_id(experiment.digest)
    return RunDir.create(config.run.root, run_id, manifest_of(experiment), config_to_yaml(config))


def check_places(config: Config) -> None:
    """Refuses places that no run could use or keep, before one is made.

    Raises:
        InputError: an agent path is no directory; the tracking store's URI holds a secret or is none of
            MLflow's.
    """
    for path in config.agent_paths:
        if not Path(path).is_dir():
            raise InputError(f"agent_paths: expected directories, got {path!r}")
    uri = config.tracking.uri
    if uri is None:
        return
    if without_password(uri) != uri:
        raise InputError(
            "tracking.uri holds a password, token or key, which the run would keep; take it out and set "
            "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, instead"
        )
    if config.tracking.enabled and (scheme := unknown_scheme(uri)) is not None:
        raise InputError(
            f"tracking.uri: expected an address of MLflow's (http, https), a database (sqlite, postgresql, "
            f"mysql, mssql) or a directory, got the scheme {scheme!r}"
        )


def check_models(experiment: Experiment) -> None:
    """Finds out before anything starts what would keep models from being asked; names what has no price.

    On a cluster that was there before, keys are the workers' own: only they can tell.

    Raises:
        InputError: an SDK is not installed, or a key not set, on the machine that plays.
    """
    config = experiment.config
    unpriced: dict[str, None] = {}
    prices = run_prices(config.limits)
    for entry in experiment.agents:
        seat = entry.seated.agent
        if not isinstance(seat, LlmSeat):
            continue
        if config.cluster.address is None:
            seat.check_connectable()
        if seat.price_in(prices) is None:
            unpriced[f"{entry.name} ({seat.model})"] = None
    if unpriced:
        said = f"no price is known for {', '.join(unpriced)}, so its cost counts as 0"
        warn([f"{said}; give its agent a price, or the run limits.prices"])


def manifest_of(experiment: Experiment) -> dict[str, Any]:
    """What a run's manifest says of the experiment; the store adds its own part."""
    game, schedule = experiment.game, experiment.schedule
    return {
        "config_digest": experiment.digest,
        "schedule_digest": schedule.digest(),
        "num_episodes": len(schedule),
        "num_blocks": schedule.num_blocks,
        "seed": experiment.config.seed,
        "game": {"name": game.spec.name, "version": game.spec.version, "parameters": dict(game.parameters)},
        "agents": [agent.describe() for agent in experiment.agents],
        "rules_of_play": experiment.rules_of_play(),
        "import_paths": make_importable(experiment.config.agent_paths),
        "cogeval": __version__,
        "packages": package_versions(),
        "python": python_version(),
    }


def play(
    run: RunDir, experiment: Experiment, *, quiet: bool, ladder: bool = True, is_new: bool = False
) -> Played:
    """Plays what is missing of a run, shows progress and the ladder, keeps tracking up to date.

    Args:
        run: the run.
        experiment: what it plays.
        quiet: show no progress.
        ladder: show the ladder of a complete run, before tracking is waited for.
        is_new: the run was made for this; it goes again when wrong input keeps it from starting.

    Raises:
        RunError: the run cannot go on; the message names the command that resumes it.
    """
    config = experiment.config
    tracking = None
    try:
        check_models(experiment)
        tracking = LiveTracking(run, config) if config.tracking.enabled else None
        outcome = _driven(run, experiment, tracking, quiet=quiet)
        driven_at = time.monotonic()
        with doing("rating", quiet=quiet):
            summary = sum_up(run, config.rating)
        rated_at = time.monotonic()
        if ladder and outcome.complete:
            show("", ladder_table(summary), "")
        is_tracked = None
        if tracking is not None:
            with doing("logging to MLflow", quiet=quiet):
                waiting = {"timeout_s": _LAST_WORD_S} if outcome.interrupted else {}
                is_tracked = tracking.finish(summary, ended_ms(run), **waiting) is not None
        track_s = time.monotonic() - rated_at
        return Played(run, experiment, outcome, summary, is_tracked, rated_at - driven_at, track_s)
    except RunError as error:
        if not isinstance(error, InputError):  # those say their own way out
            error.add_note(f"to go on: cogeval resume {called(run)}")
        elif is_new:
            _discard(run)
        raise
    finally:
        if tracking is not None:
            tracking.abandon()


def _discard(run: RunDir) -> None:
    """Removes a run in which nothing was played."""
    with contextlib.suppress(RunError):
        run.discard()


def _driven(run: RunDir, experiment: Experiment, tracking: LiveTracking | None, *, quiet: bool) -> Outcome:
    from cogeval.cluster.driver import drive

    plan = build_plan(experiment, run.run_id, str(run.path.resolve()), run.manifest["import_paths"])
    options = cluster_options(experiment.config)
    with make_view(quiet=quiet) as view:
        return drive(plan, run, options, [view] if tracking is None else [view, tracking])


def conclude(played: Played, *, as_json: bool) -> int:
    """Prints the end of a run, below its ladder: where everything is, what to do next.

    Returns:
        The exit code.
    """
    outcome, summary, run = played.outcome, played.summary, played.run
    kept = f"{summary.recorded:,} of {counted(summary.scheduled, 'episode')}"
    if as_json:
        print_json(outcome_json(played))
    elif outcome.complete:
        show(*_next_steps(played))
    if outcome.interrupted:
        complain(f"interrupted: {kept} are kept; go on with: cogeval resume {called(run)}")
        return INTERRUPTED
    if outcome.paused:
        complain(_paused(played))
        return PAUSED
    if not outcome.complete:
        complain(f"stopped early: {kept} are kept; go on with: cogeval resume {called(run)}")
        return 1
    warn_of_voids(played)
    return 0 if summary.recorded else 1


def _paused(played: Played) -> str:
    """Where a run stands that its spending cap ended, and the command that goes on with a higher one."""
    summary, config = played.summary, played.experiment.config
    spent_usd, cap_usd = played.outcome.spent_usd, config.limits.spend_usd or 0.0
    enough = enough_usd(spent_usd, cap_usd, summary.recorded, summary.scheduled)
    hint = "" if summary.recorded else _fewer_at_once(config)
    return (
        f"paused: spent {dollars(spent_usd)} of {dollars(cap_usd)}; {summary.recorded:,} of "
        f"{counted(summary.scheduled, 'episode')} recorded. {hint}Go on with: cogeval resume "
        f"{called(played.run)} limits.spend_usd={enough}"
    )


def enough_usd(spent_usd: float, cap_usd: float, recorded: int, scheduled: int) -> str:
    """A cap under which a paused run may end: what all of it costs at this rate, and a tenth more.

    Args:
        spent_usd: so far.
        cap_usd: that it paused at.
        recorded: episodes so far; with none, what was spent doubled is all that can be said.
        scheduled: episodes.

    Returns:
        Dollars, rounded up to two digits, as a configuration has them.
    """
    share = recorded / scheduled if recorded else 0.5
    usd = 1.1 * max(spent_usd / share, cap_usd)
    digits = 1 - math.floor(math.log10(usd)) if usd > 0 else 0
    return f"{math.ceil(usd * 10.0**digits) / 10.0**digits:.{max(0, digits)}f}"


def _fewer_at_once(config: Config) -> str:
    """What to do when the money ended before any episode did."""
    at_once = config.cluster.episodes_in_flight
    if at_once == 1:
        return ""
    return (
        f"Up to {at_once:,} episodes a worker were under way at once, and none came to its end: with little "
        "money set cluster.episodes_in_flight=1. "
    )


def warn_of_voids(played: Played) -> None:
    """Says on stderr how many episodes of a complete run are void, who sat in all of them, and why."""
    void = void_reasons(played.run) if played.summary.void else {}
    if not void:
        return
    pool = [agent.name for agent in played.experiment.agents]
    suspects = set(pool)
    for index in void:
        suspects &= {pool[i] for i in played.experiment.schedule[index].lineup}
    said = [f"{counted(played.summary.void, 'episode')} void: given up after our own failures, never scored"]
    if not played.summary.recorded:
        said.insert(0, "nothing was recorded")
    if suspects and len(suspects) < len(pool):
        named = ", ".join(name for name in pool if name in suspects)
        said.append(f"in every one of them sat {named}")
    reason = textwrap.shorten(list(void.values())[-1], _REASON_CHARS, placeholder=" ...")
    warn([f"{'; '.join(said)}; the last reason: {reason or 'unknown'}"])


def outcome_json(played: Played) -> dict[str, Any]:
    """The end of a run as one JSON object."""
    outcome = played.outcome
    return {
        **summary_json(played.summary, [played.run]),
        "path": str(played.run.path),
        "complete": outcome.complete,
        "interrupted": outcome.interrupted,
        "paused": outcome.paused,
        "spent_usd": round(outcome.spent_usd, 9),
        "played": outcome.num_played,
        "tracked": played.is_tracked,
        "timings": {
            "start_s": round(outcome.start_s, 3),
            "play_s": round(outcome.window_s, 3),
            "episodes_per_s": round(_pace(outcome), 3),
            "rate_s": round(played.rate_s, 3),
            "track_s": round(played.track_s, 3),
        },
    }


def _pace(outcome: Outcome) -> float:
    """Episodes/s from the first receipt to the last; 0 when all came in one."""
    return outcome.window_episodes / outcome.window_s if outcome.window_s > 0 else 0.0


def _next_steps(played: Played) -> list[str]:
    outcome, name = played.outcome, called(played.run)
    lines = [f"run directory  {_shown(played.run.path)}", f"run digest     {played.summary.digest}"]
    if pace := _pace(outcome):
        lines.append(f"played         {counted(outcome.num_played, 'episode')}, {pace:,.0f}/s on average")
    lines += ["", "next:", typed(f"  cogeval show {name}")]
    if played.is_tracked:
        lines.append(typed(f"  cogeval ui {name}"))
    return lines


def _shown(path: Path) -> str:
    """The path as short as the user can still follow it."""
    absolute = path.absolute()
    return os.path.relpath(absolute) if absolute.is_relative_to(Path.cwd()) else str(absolute)
