"""`cogeval run -m`: one run for each combination of values, one after the other.

Invariant: every job is composed and built before the first one starts, and a job that fails costs
only itself. Each job is a run of its own under run.root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from cogeval.cli.app import INTERRUPTED, complain, one_line
from cogeval.cli.arguments import Arguments
from cogeval.cli.composing import Composer
from cogeval.cli.endings import Failed, Interrupted
from cogeval.cli.output import counted, print_json, show
from cogeval.cli.plan import show_plan
from cogeval.cli.program import typed
from cogeval.cli.session import Played, check_places, new_run, outcome_json, play, warn_of_voids
from cogeval.cli.settings import called
from cogeval.config import Experiment, build_experiment, read_config
from cogeval.config.accounts import accounts_of, check_used
from cogeval.core.record import canonical_json
from cogeval.errors import InputError, RunError
from cogeval.report.layout import Column, grid, literal, with_notes
from cogeval.store.run import RunDir

_MOST_STEPS = 5  # commands at the end of a sweep


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One run of a sweep.

    Args:
        overrides: what tells it from the others.
        experiment: what it plays.
    """

    overrides: tuple[str, ...]
    experiment: Experiment

    @property
    def label(self) -> str:
        """How tables and messages name it."""
        return " ".join(self.overrides) or "no overrides"


def sweep(composer: Composer, arguments: Arguments) -> int:
    """Plays every job.

    Returns:
        0 when all went well, the code of the first failure, or 130.
    """
    jobs = _jobs(composer, arguments.overrides)
    if arguments.switch("--plan"):
        if arguments.switch("--json"):
            raise InputError("--plan of a sweep has no --json; plan its jobs one by one")
        for job in jobs:
            show(f"{job.label}:")
            show_plan(job.experiment, as_json=False)
            show("")
        return 0
    results: list[tuple[Job, Played | RunError]] = []
    code = 0
    for number, job in enumerate(jobs, 1):
        complain(f"job {number} of {len(jobs)}: {job.label}")
        try:
            quiet = arguments.switch("--quiet")
            run = new_run(job.experiment)
            played = play(run, job.experiment, quiet=quiet, ladder=False, is_new=True)
        except RunError as error:
            complain(f"job {number} failed: {_why(error)}")
            code = code or error.exit_code
            results.append((job, error))
            continue
        except Interrupted as error:
            code = INTERRUPTED
            complain(f"{one_line(error)}; not begun: {counted(len(jobs) - number, 'job')}")
            break
        results.append((job, played))
        if played.outcome.interrupted:
            code = INTERRUPTED
            complain(
                f"interrupted: go on with cogeval resume {called(played.run)}; not begun: "
                f"{counted(len(jobs) - number, 'job')}"
            )
            break
        warn_of_voids(played)
        if not played.summary.recorded:
            code = code or 1
    _conclude(results, as_json=arguments.switch("--json"))
    return code


def _jobs(composer: Composer, overrides: Sequence[str]) -> list[Job]:
    """Composes and builds every job; the message of one that fails names it."""
    listed = composer.jobs(overrides)
    varying = [i for i in range(len(listed[0])) if len({job[i] for job in listed}) > 1]
    jobs = []
    for number, job in enumerate(listed, 1):
        try:
            experiment = build_experiment(read_config(composer.compose(job)))
            check_places(experiment.config)
        except InputError as error:
            error.add_note(f"in job {number} of {len(listed)} ({' '.join(job)}); nothing was started")
            raise
        jobs.append(Job(tuple(job[i] for i in varying), experiment))
    _check_ids(jobs)
    _check_limits(jobs, overrides)
    return jobs


def _check_limits(jobs: Sequence[Job], overrides: Sequence[str]) -> None:
    """Refuses typed limits that hold for no agent of any job: jobs may share those of several pools."""
    used = [name for job in jobs for name in accounts_of(job.experiment.agents)]
    for job in jobs:
        check_used(job.experiment.config.limits, list(dict.fromkeys(used)), overrides)


def _check_ids(jobs: Sequence[Job]) -> None:
    """Refuses two jobs that would be the same run."""
    seen = set()
    for run in (job.experiment.config.run for job in jobs):
        if run.id is not None and (run.root, run.id) in seen:
            raise InputError(
                f"run.id: expected another one for each job of a sweep, got {run.id!r} for several; leave it "
                "out, and each gets its own"
            )
        seen.add((run.root, run.id))


def _conclude(results: Sequence[tuple[Job, Played | RunError]], *, as_json: bool) -> None:
    if as_json:
        print_json({"jobs": [_job_json(job, result) for job, result in results]})
        return
    columns = [Column("job", numeric=False), Column("run", numeric=False, min_width=32)]
    columns += [Column("episodes", drop=2), Column("first", numeric=False, drop=1)]
    rows = []
    for job, result in results:
        if isinstance(result, RunError):
            cells = [Text("failed", style="bold red"), Text("-"), Text("-")]
        else:
            best = next(iter(result.summary.ladder.rows if result.summary.ladder else ()), None)
            cells = [
                literal(result.run.run_id),
                Text(f"{result.summary.recorded:,}"),
                literal(f"{best.name} {best.elo:+.0f}" if best else "-"),
            ]
        rows.append([literal(job.label, "bold"), *cells])
    show("", with_notes(f"Sweep of {counted(len(results), 'job')}", grid(columns, rows), ()))
    if lines := _next_steps([result.run for _, result in results if not isinstance(result, RunError)]):
        show("", "next:", *lines)


def _next_steps(runs: Sequence[RunDir]) -> list[str]:
    """A command for each set of runs that can be rated together: one game with one set of parameters."""
    together: dict[str, list[RunDir]] = {}
    for run in runs:
        together.setdefault(canonical_json(run.manifest["game"]), []).append(run)
    lines = []
    for group in list(together.values())[:_MOST_STEPS]:
        *ids, last = [run.run_id for run in group[:-1]] + [called(group[-1])]
        lines.append(typed(f"  cogeval {'rate' if ids else 'show'} {' '.join([*ids, last])}"))
    return lines


def _why(error: RunError) -> str:
    """Why a job failed; that it did is said in front of it."""
    return error.why if isinstance(error, Failed) else one_line(error)


def _job_json(job: Job, result: Played | RunError) -> dict[str, object]:
    if isinstance(result, RunError):
        return {"overrides": list(job.overrides), "error": _why(result)}
    return {"overrides": list(job.overrides), **outcome_json(result)}
