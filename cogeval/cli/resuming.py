"""`cogeval resume`: plays exactly what a run still misses, or refuses by name.

Invariant: an episode that is played on resume is the one that the run scheduled: game, agents,
deadlines and schedule are compared with the manifest first. A changed agent is a new run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cogeval.cli.arguments import Arguments
from cogeval.cli.environment import check_packages
from cogeval.cli.output import counted, print_json, show
from cogeval.cli.recorded import num_missing, read_run, scheduled, warn_of_damage
from cogeval.cli.session import conclude, manifest_of, play
from cogeval.cli.settings import config_of
from cogeval.cli.status import one_run
from cogeval.cli.summing import sum_up, summary_json
from cogeval.config import Experiment, build_experiment, make_importable
from cogeval.core.local_quota import dollars
from cogeval.core.record import canonical_json
from cogeval.errors import InputError
from cogeval.store.recover import hot_shards
from cogeval.store.run import RunDir
from cogeval.store.spend import spend_of


def resume(arguments: Arguments) -> int:
    """Carries out ``cogeval resume``."""
    check_packages()
    run = one_run(arguments)
    config = config_of(run, arguments.overrides)
    make_importable(run.manifest["import_paths"])
    experiment = build_experiment(config)
    check_unchanged(run, experiment)
    if is_complete(run):
        if arguments.switch("--json"):
            print_json({**summary_json(sum_up(run, config.rating), [run]), "complete": True, "played": 0})
        else:
            recorded = counted(scheduled(run), "episode")
            show(f"{run.run_id} is complete: all {recorded} recorded or void, nothing to play")
        return 0
    check_budget(run, config.limits.spend_usd)
    run.acquire_lock().release()  # refuses a run that another driver holds before anything is shown
    run.shards_path.mkdir(exist_ok=True)  # where somebody removed it, workers could write nothing
    as_json = arguments.switch("--json")
    played = play(run, experiment, quiet=arguments.switch("--quiet"), ladder=not as_json)
    return conclude(played, as_json=as_json)


def check_budget(run: RunDir, cap_usd: float | None) -> None:
    """Compares the spending cap with the one that a run has paused at.

    Raises:
        InputError: it is no higher: the run would pay for a few requests and pause again.
    """
    spend = spend_of(run)
    if spend.cap_usd is not None and cap_usd is not None and cap_usd <= spend.cap_usd:
        spent = f"{dollars(spend.spent_usd)} of {dollars(spend.cap_usd)}"
        raise InputError(
            f"{run.run_id} paused at its spending cap: {spent} are spent; go on with a higher one: cogeval "
            f"resume {run.run_id} limits.spend_usd=DOLLARS"
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
    return not (num_missing(episodes) or episodes.damaged or hot_shards(run.path))
