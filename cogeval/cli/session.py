"""One stretch of playing a run: from a built experiment to recorded episodes and their ladder.

Invariant: whatever ends it, what is committed stays and the message names the command that goes on.
Wires the siblings that never import each other: driver, progress, tracking, ratings.
"""

from __future__ import annotations

import contextlib
import os
import textwrap
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cogeval import __version__
from cogeval.agents.llm import LlmSeat
from cogeval.cli.app import INTERRUPTED, PAUSED, complain
from cogeval.cli.continuing import elsewhere, enough_usd, fewer_at_once, resuming
from cogeval.cli.endings import Interrupted, failed
from cogeval.cli.environment import package_versions, python_version
from cogeval.cli.output import counted, print_json, show, warn
from cogeval.cli.plan import make_plan
from cogeval.cli.program import standing_in, typed
from cogeval.cli.progress import doing, lost_words, make_view
from cogeval.cli.recorded import void_reasons
from cogeval.cli.settings import called
from cogeval.cli.summing import sum_up, summary_json
from cogeval.cli.tracking import LiveTracking, ended_ms
from cogeval.cluster.signals import terminable
from cogeval.config import Config, Experiment, build_plan, cluster_options, config_to_yaml, make_importable
from cogeval.config.accounts import accounts_of, check_used, run_prices
from cogeval.core.local_quota import dollars
from cogeval.errors import InputError, RunError
from cogeval.report import RunSummary
from cogeval.report.tables import ladder_table
from cogeval.store.run import RunDir, new_run_id
from cogeval.store.totals import complete_entry, totals_of
from cogeval.tracking.places import unknown_scheme, without_password

if TYPE_CHECKING:  # it would import ray
    from cogeval.cluster.driver import Outcome

_LAST_WORD_S = 15.0  # longest wait for the tracker after Ctrl-C
_LEAST_EPISODES, _LEAST_S = 10, 1.0  # of a stretch whose pace means anything
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
        overrides: that `resume` was given, and that the run does not keep.
    """

    run: RunDir
    experiment: Experiment
    outcome: Outcome
    summary: RunSummary
    is_tracked: bool | None
    rate_s: float
    track_s: float
    overrides: tuple[str, ...] = ()


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


def check_limits(experiment: Experiment, overrides: Iterable[str] = ()) -> None:
    """Finds limits that no agent of the pool is under; says which, once.

    Args:
        experiment: what would be played.
        overrides: of the command line.

    Raises:
        InputError: the name of one was typed.
    """
    limits = experiment.config.limits
    warn(check_used(limits, accounts_of(experiment.agents), overrides))


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
    spool_dir = experiment.config.store.spool_dir
    return {
        "config_digest": experiment.digest,
        "schedule_digest": schedule.digest(),
        "num_episodes": len(schedule),
        "num_blocks": schedule.num_blocks,
        "seed": experiment.config.seed,
        "game": {"name": game.spec.name, "version": game.spec.version, "parameters": dict(game.parameters)},
        "agents": [agent.describe() for agent in experiment.agents],
        "rules_of_play": experiment.rules_of_play(),
        "spool_dir": spool_dir and os.path.abspath(Path(spool_dir).expanduser()),  # noqa: PTH100 - keeps links
        "import_paths": make_importable(experiment.config.agent_paths),
        "cogeval": __version__,
        "packages": package_versions(),
        "python": python_version(),
    }


def play(
    run: RunDir,
    experiment: Experiment,
    *,
    quiet: bool,
    ladder: bool = True,
    is_new: bool = False,
    overrides: tuple[str, ...] = (),
) -> Played:
    """Plays what is missing of a run, shows progress and the ladder, keeps tracking up to date.

    Args:
        run: the run.
        experiment: what it plays.
        quiet: show no progress.
        ladder: show the ladder of a complete run, before tracking is waited for.
        is_new: the run was made for this; it goes again when wrong input keeps it from starting.
        overrides: that hold for this stretch alone.

    Raises:
        RunError: the run cannot go on; the message names the command that resumes it.
        Interrupted: as it began, or as it was rated; the message names that command too.
    """
    command, where = resuming(run, overrides), elsewhere(experiment.config.cluster.address)
    try:
        with terminable():
            return _played(run, experiment, quiet=quiet, ladder=ladder, overrides=overrides)
    except InputError:  # those say their own way out
        if is_new:
            _discard(run)
        raise
    except (KeyboardInterrupt, SystemExit) as error:  # Ray makes the latter of SIGTERM
        raise Interrupted(f"interrupted; go on with: {command}{where}") from error
    except (RunError, OSError) as error:
        said = failed(error, run, command, where)
        if said is None or said is error:
            raise
        raise said from error


def _played(
    run: RunDir, experiment: Experiment, *, quiet: bool, ladder: bool, overrides: tuple[str, ...]
) -> Played:
    config = experiment.config
    tracking = None
    try:
        check_models(experiment)
        tracking = LiveTracking(run, config) if config.tracking.enabled else None
        outcome = _driven(run, experiment, tracking, quiet=quiet)
        driven_at = time.monotonic()
        with doing("rating", quiet=quiet):
            summary = sum_up(run, config.rating)
        if outcome.complete and summary.digest:
            _keep_digest(run, summary.digest)
        rated_at = time.monotonic()
        if ladder and outcome.complete:
            show("", ladder_table(summary), "")
        is_tracked = None
        if tracking is not None:
            with doing("logging to MLflow", quiet=quiet):
                waiting = {"timeout_s": _LAST_WORD_S} if outcome.interrupted else {}
                is_tracked = tracking.finish(summary, ended_ms(run), **waiting) is not None
        track_s = time.monotonic() - rated_at
        return Played(run, experiment, outcome, summary, is_tracked, rated_at - driven_at, track_s, overrides)
    finally:
        if tracking is not None:
            tracking.abandon()


def _keep_digest(run: RunDir, digest: str) -> None:
    """Keeps a complete run's digest in its log, where `status` finds it; one without is none the worse."""
    with contextlib.suppress(RunError), run.lock():
        run.append_log(complete_entry(digest, run.records()))


def _discard(run: RunDir) -> None:
    """Removes a run in which nothing was played."""
    with contextlib.suppress(RunError):
        run.discard()


def _driven(run: RunDir, experiment: Experiment, tracking: LiveTracking | None, *, quiet: bool) -> Outcome:
    from cogeval.cluster.driver import drive

    plan = build_plan(experiment, run.run_id, run.place.resolved().uri, run.manifest["import_paths"])
    options = cluster_options(experiment.config)
    with make_view(quiet=quiet, num_faults=totals_of(run).sums.faults) as view:
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
        complain(f"interrupted: {kept} are kept; go on with: {resuming(run, played.overrides)}")
        return INTERRUPTED
    if outcome.paused:
        complain(_paused(played))
        return PAUSED
    if not outcome.complete:
        complain(f"stopped early: {kept} are kept; go on with: {resuming(run, played.overrides)}")
        return 1
    warn_of_voids(played)
    return 0 if summary.recorded else 1


def _paused(played: Played) -> str:
    """Where a run stands that its spending cap ended, and the command that goes on with a higher one."""
    summary, config = played.summary, played.experiment.config
    spent_usd, cap_usd = played.outcome.spent_usd, config.limits.spend_usd or 0.0
    expected_usd = None if summary.recorded else make_plan(played.experiment).price_usd_high
    enough = enough_usd(spent_usd, cap_usd, summary.recorded, summary.scheduled, expected_usd)
    hint = "" if summary.recorded else fewer_at_once(config)
    return (
        f"paused: spent {dollars(spent_usd)} of {dollars(cap_usd)}; {summary.recorded:,} of "
        f"{counted(summary.scheduled, 'episode')} recorded. {hint}Go on with: "
        f"{resuming(played.run, played.overrides, spend_usd=enough)}"
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
        "path": played.run.uri,
        "complete": outcome.complete,
        "interrupted": outcome.interrupted,
        "paused": outcome.paused,
        "spent_usd": round(outcome.spent_usd, 9),
        "lost_workers": outcome.progress.num_lost_workers,
        "lost_seat_actors": outcome.progress.num_lost_seat_actors,
        "refused_nodes": list(outcome.refused_nodes),
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


def _pace_words(outcome: Outcome) -> list[str]:
    """The pace for people; a handful of episodes, or those of one moment, have none."""
    if outcome.window_episodes < _LEAST_EPISODES or outcome.window_s < _LEAST_S:
        return []
    pace = _pace(outcome)
    if pace < 0.1:
        return [f"{pace * 3600:,.0f} an hour on average"]
    return [f"{pace:,.0f}/s on average" if pace >= 10 else f"{pace:.1f}/s on average"]


def _next_steps(played: Played) -> list[str]:
    outcome, name = played.outcome, called(played.run)
    lines = [f"run directory  {_shown(played.run)}", f"run digest     {played.summary.digest}"]
    if outcome.num_played:
        played_now = [counted(outcome.num_played, "episode"), *_pace_words(outcome)]
        lines.append(f"played         {', '.join(played_now)}")
    if lost := lost_words(outcome.progress):
        lines.append(f"lost           {', '.join(lost)}; others took their places")
    lines += [f"refused        a node that joined: {typed(wrong)}" for wrong in outcome.refused_nodes]
    lines += ["", "next:", typed(f"  cogeval show {name}")]
    if played.is_tracked:
        lines.append(typed(f"  cogeval ui {name}"))
    return lines


def _shown(run: RunDir) -> str:
    """Where a run is, as short as the user can still follow it."""
    if run.place.path is None:
        return run.uri
    here = standing_in()
    if here is None:
        return str(run.place.path)
    absolute = run.place.path.absolute()
    return os.path.relpath(absolute, here) if absolute.is_relative_to(here) else str(absolute)
