"""`cogeval resume`: plays exactly what a run still misses, or refuses by name.

Invariant: an episode that is played on resume is the one that the run scheduled: game, agents,
deadlines and schedule are compared with the manifest first. A changed agent is a new run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from cogeval.cli.arguments import Arguments
from cogeval.cli.environment import check_packages
from cogeval.cli.output import counted, print_json, show
from cogeval.cli.recorded import num_missing, read_run, scheduled, void_reasons, warn_of_damage
from cogeval.cli.session import check_limits, conclude, manifest_of, play
from cogeval.cli.settings import called, config_of
from cogeval.cli.status import one_run
from cogeval.cli.summing import sum_up, summary_json
from cogeval.config import Experiment, build_experiment, make_importable
from cogeval.core.local_quota import dollars
from cogeval.core.record import canonical_json
from cogeval.errors import InputError
from cogeval.schedule.log import PARDON
from cogeval.store.recover import hot_shards
from cogeval.store.run import RunDir
from cogeval.store.spend import recorded_cost, spend_of


def resume(arguments: Arguments) -> int:
    """Carries out ``cogeval resume``."""
    check_packages()
    run = one_run(arguments)
    config = config_of(run, arguments.overrides)
    check_spool(run, config.store.spool_dir)
    make_importable(run.manifest["import_paths"])
    experiment = build_experiment(config)
    check_unchanged(run, experiment)
    check_limits(experiment, arguments.overrides)
    if arguments.switch("--retry-void"):
        pardon(run)
    if is_complete(run):
        if arguments.switch("--json"):
            print_json({**summary_json(sum_up(run, config.rating), [run]), "complete": True, "played": 0})
        else:
            recorded = counted(scheduled(run), "episode")
            show(f"{run.run_id} is complete: all {recorded} recorded or void, nothing to play")
        return 0
    check_budget(run, config.limits.spend_usd)
    run.acquire_lock().release()  # refuses a run that another driver holds before anything is shown
    run.shards.make()  # where somebody removed it, workers could write nothing
    as_json = arguments.switch("--json")
    quiet, overrides = arguments.switch("--quiet"), tuple(arguments.overrides)
    played = play(run, experiment, quiet=quiet, ladder=not as_json, overrides=overrides)
    return conclude(played, as_json=as_json)


def pardon(run: RunDir) -> None:
    """Has the episodes that were given up tried again, as if for the first time.

    Raises:
        InputError: another driver holds the run.
    """
    if void_reasons(run):
        with run.lock():
            run.append_log(PARDON)


def check_spool(run: RunDir, spool_dir: str | None) -> None:
    """Refuses another spool than the run began with, where its open shards lie.

    Raises:
        InputError: it is another.
    """
    began_with = config_of(run).store.spool_dir
    if spool_dir != began_with:
        raise InputError(
            f"store.spool_dir: {run.run_id} began with {began_with!r}, where its open shards lie, got "
            f"{spool_dir!r}; leave it as it was"
        )


def check_budget(run: RunDir, cap_usd: float | None) -> None:
    """Compares the spending cap with the one that a run has paused at, and with what an episode costs.

    Raises:
        InputError: it is no higher, or leaves less than an episode costs: the run would pay for a few
            requests and pause again.
    """
    spend = spend_of(run)
    if spend.cap_usd is not None and cap_usd is not None and cap_usd <= spend.cap_usd:
        spent = f"{dollars(spend.spent_usd)} of {dollars(spend.cap_usd)}"
        raise InputError(
            f"{run.run_id} paused at its spending cap: {spent} are spent; go on with a higher one: cogeval "
            f"resume {called(run)} limits.spend_usd=DOLLARS"
        )
    num, usd = recorded_cost(run)
    left_usd = math.inf if cap_usd is None else cap_usd - spend.spent_usd
    if num and left_usd < usd / num:
        left = f"leaves {dollars(left_usd)}" if left_usd > 0 else "leaves nothing"
        raise InputError(
            f"limits.spend_usd={cap_usd:g} {left}, as {dollars(spend.spent_usd)} are spent, and an episode "
            f"costs {dollars(usd / num)}: none would end; go on with a higher one: cogeval resume "
            f"{called(run)} limits.spend_usd=DOLLARS"
        )


def check_unchanged(run: RunDir, experiment: Experiment) -> None:
    """Compares what would be played with what the run began with.

    Raises:
        InputError: something differs; the message names it, as it was and as it is.
    """
    then, now = run.manifest, manifest_of(experiment)
    changed = [f"agent {name} changed since the run began: {how}" for name, how in changed_agents(then, now)]
    differences = [*changed_rules(then, now), *changed]
    if differences:
        raise InputError(f"{'; '.join(differences)}: what changed is a new run, start it with cogeval run")


def changed_rules(then: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """What differs between two manifests in game, deadlines, fallback and schedule, each in a sentence."""
    for key, value in then["game"].items():
        if canonical_json(value) != canonical_json(now["game"][key]):
            yield f"game {key} changed since the run began: {value!r}, now {now['game'][key]!r}"
    for part, values in then["rules_of_play"].items():
        for key, value in values.items():
            found = now["rules_of_play"][part].get(key)
            if found != value:
                yield f"{part}.{key} changed since the run began: {value!r}, now {found!r}"
    if then["schedule_digest"] != now["schedule_digest"]:
        yield "the schedule changed since the run began, though its configuration did not"


def changed_agents(then: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The agents whose fingerprints differ between two manifests: name, and from what to what."""
    before = {agent["name"]: agent["fingerprint"] for agent in then["agents"]}
    after = {agent["name"]: agent["fingerprint"] for agent in now["agents"]}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield name, f"fingerprint {before.get(name, 'none')}, now {after.get(name, 'none')}"


def is_complete(run: RunDir) -> bool:
    """True when nothing is missing and nothing damaged; names damaged shards, which playing sets aside."""
    episodes = read_run(run)
    warn_of_damage([episodes])
    return not (num_missing(episodes) or episodes.damaged or hot_shards(run.place))
