"""`cogeval reproduce`: plays a run again from what it recorded, and says where it comes out otherwise.

Invariant: writes nothing and calls nobody: agents that are not deterministic, and those that live in
processes of their own, answer from the journal. Damaged shards are named and the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from cogeval.agents import build_agent
from cogeval.cli.arguments import Arguments
from cogeval.cli.environment import check_packages
from cogeval.cli.output import counted, print_json, show, warn
from cogeval.cli.progress import doing
from cogeval.cli.recorded import scheduled, void_reasons
from cogeval.cli.resuming import changed_agents, changed_rules
from cogeval.cli.session import manifest_of
from cogeval.cli.settings import called, config_of
from cogeval.cli.status import one_run
from cogeval.config import Experiment, build_experiment, make_importable
from cogeval.core.agent import Resources, bound
from cogeval.core.ranges import from_ranges
from cogeval.core.record import run_digest
from cogeval.errors import InputError
from cogeval.report.layout import escaped
from cogeval.report.reproduction import Difference, Rehearsal
from cogeval.store.attempts import iter_recorded
from cogeval.store.run import RunDir
from cogeval.store.shards import DamagedShard

_ANEW_KINDS: Final = ("baseline", "python", "random")  # of agents that this process can be
_KEPT_DIFFERENCES: Final = 100  # of the first ones, in the order of the schedule
_SHOWN_DIFFERENCES: Final = 3


@dataclass(slots=True)
class Reproduction:
    """What came of playing a run again.

    Args:
        run_id: of the run.
        from_journal: agents that answered from the journal.
        changed: how agents differ from those that the run began with, by name.
        num_recorded: episodes that are recorded, damaged ones included.
        num_void: episodes that were given up and have no result.
        num_missing: scheduled episodes that are neither.
    """

    run_id: str
    from_journal: tuple[str, ...]
    changed: dict[str, str]
    num_recorded: int
    num_void: int
    num_missing: int
    num_played: int = 0
    num_differing: int = 0
    differences: list[Difference] = field(default_factory=list)
    damaged: list[DamagedShard] = field(default_factory=list)
    recorded_digests: list[bytes] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)

    @property
    def is_reproduced(self) -> bool:
        """True when everything that was to be read was read and came out as recorded."""
        return bool(self.num_played) and not (self.num_differing or self.damaged)

    def note(self, difference: Difference) -> None:
        """Keeps the first differences in the order of the schedule, and counts all."""
        self.num_differing += 1
        self.differences.append(difference)
        if len(self.differences) > 2 * _KEPT_DIFFERENCES:
            self.settle()

    def settle(self) -> None:
        """Puts the differences in order."""
        self.differences.sort(key=lambda difference: difference.index)
        del self.differences[_KEPT_DIFFERENCES:]


def reproduce(arguments: Arguments) -> int:
    """Carries out ``cogeval reproduce``; 1 when anything comes out otherwise or cannot be read."""
    check_packages()
    most, seed = _number(arguments, "--episodes", least=1), _number(arguments, "--seed")
    run = one_run(arguments)
    make_importable(run.manifest["import_paths"])
    from_journal = answering_from_journal(run)
    experiment = experiment_of(run, from_journal)
    recorded = np.unique(
        np.concatenate([np.empty(0, np.int64), *(from_ranges(r.accepted) for r in run.records())])
    )
    wanted = _wanted(experiment, recorded.tolist(), most, seed)
    void = void_reasons(run).keys() - set(recorded.tolist())
    outcome = Reproduction(
        run_id=run.run_id,
        from_journal=from_journal,
        changed=dict(_changed(run, experiment, from_journal)),
        num_recorded=len(recorded),
        num_void=len(void),
        num_missing=max(0, scheduled(run) - len(recorded) - len(void)),
    )
    with doing("playing it again", quiet=arguments.switch("--json")):
        asyncio.run(_play(run, experiment, wanted, outcome))
    _report(outcome, run, is_whole=wanted is None, as_json=arguments.switch("--json"))
    return 0 if outcome.is_reproduced else 1


def answering_from_journal(run: RunDir) -> tuple[str, ...]:
    """The agents of a run that are not played anew: models, programs, and whatever is not deterministic."""
    settings = config_of(run).pool.agents
    return tuple(a["name"] for a in run.manifest["agents"] if not _is_played_anew(a, settings[a["name"]]))


def experiment_of(run: RunDir, from_journal: Collection[str]) -> Experiment:
    """What a run played, as far as it is needed to play it again; no journal agent's code is imported.

    Args:
        run: the run.
        from_journal: agents that answer from the journal.

    Raises:
        InputError: game, deadlines, fallback or schedule are not those that the run began with.
    """
    config = config_of(run)
    stand_in = {"kind": "random"}  # keeps the place in the lineups; never asked
    agents = {name: stand_in if name in from_journal else s for name, s in config.pool.agents.items()}
    pool = msgspec.structs.replace(config.pool, agents=agents)
    experiment = build_experiment(msgspec.structs.replace(config, pool=pool))
    differences = list(changed_rules(run.manifest, manifest_of(experiment)))
    if differences:
        version = run.manifest.get("cogeval", "unknown")
        raise InputError(
            f"{'; '.join(differences)}: nothing that it recorded can come out the same; play it again with "
            f"the code that recorded it, cogeval {version}"
        )
    return experiment


def _is_played_anew(described: dict[str, Any], settings: dict[str, Any]) -> bool:
    is_inline = described["kind"] in _ANEW_KINDS and settings.get("placement", "inline") == "inline"
    return is_inline and bool(described["deterministic"])


def _changed(run: RunDir, experiment: Experiment, from_journal: Collection[str]) -> list[tuple[str, str]]:
    """How agents differ from those that the run began with; of one that cannot be built, that."""
    settings = config_of(run).pool.agents
    now, unbuilt = [], []
    for agent in experiment.agents:
        if agent.name not in from_journal:
            now.append(agent.describe())
            continue
        try:
            now.append(build_agent(agent.name, experiment.game, settings[agent.name]).describe())
        except InputError as error:
            unbuilt.append((agent.name, f"it cannot be built here ({error})"))
    names = {name for name, _ in unbuilt}
    then = [agent for agent in run.manifest["agents"] if agent["name"] not in names]
    return [*changed_agents({"agents": then}, {"agents": now}), *unbuilt]


def _number(arguments: Arguments, flag: str, least: int | None = None) -> int | None:
    written = arguments.value(flag)
    if written is None:
        return None
    try:
        number = int(written)
    except ValueError:
        number = None
    if number is None or (least is not None and number < least):
        raise InputError(f"{flag}: expected a whole number{' from 1' if least else ''}, got {written!r}")
    return number


def _wanted(
    experiment: Experiment, recorded: list[int], most: int | None, seed: int | None
) -> frozenset[int] | None:
    """Which episodes to play; None: all that are recorded."""
    if most is None and seed is None:
        return None
    slots = (experiment.schedule[i] for i in recorded if i < len(experiment.schedule))
    chosen = [slot.index for slot in slots if seed is None or slot.seed == seed]
    if not chosen and seed is not None:
        raise InputError(
            f"--seed: expected the seed of a recorded episode, got {seed}; the first block has "
            f"{experiment.schedule.seed_of(0)}"
        )
    return frozenset(chosen[:most])


async def _play(
    run: RunDir, experiment: Experiment, wanted: frozenset[int] | None, outcome: Reproduction
) -> None:
    """Plays every wanted episode again, shard by shard."""
    anew = {
        agent.name: bound(agent.seated, Resources())
        for agent in experiment.agents
        if agent.name not in outcome.from_journal
    }
    rehearsal = Rehearsal(
        experiment.game,
        experiment.schedule,
        tuple(agent.name for agent in experiment.agents),
        anew,
        outcome.changed,
        experiment.fallback,
        experiment.deadlines,
    )
    for item in iter_recorded(run, experiment.game.action_from_wire, wanted):
        if isinstance(item, DamagedShard):
            outcome.damaged.append(item)
            continue
        again = await rehearsal.play(item)
        outcome.num_played += 1
        outcome.recorded_digests.append(bytes.fromhex(item.digest))
        if again.digest is not None:
            outcome.digests.append(bytes.fromhex(again.digest))
        if again.difference is not None:
            outcome.note(again.difference)
    outcome.settle()


def _report(outcome: Reproduction, run: RunDir, *, is_whole: bool, as_json: bool) -> None:
    warn(shard.message(called(run)) for shard in outcome.damaged)
    warn(_changed_line(name, how, outcome) for name, how in outcome.changed.items())
    if as_json:
        print_json(_facts(outcome, is_whole))
    else:
        show(*map(escaped, _lines(outcome, is_whole)))


def _changed_line(name: str, how: str, outcome: Reproduction) -> str:
    harmless = "; its seats answer from the journal all the same" if name in outcome.from_journal else ""
    return f"agent {name} changed since the run began: {how}{harmless}"


def _facts(outcome: Reproduction, is_whole: bool) -> dict[str, Any]:
    return {
        "run_id": outcome.run_id,
        "reproduced": outcome.is_reproduced,
        "whole": is_whole,
        "episodes": outcome.num_played,
        "equal": outcome.num_played - outcome.num_differing,
        "digest": run_digest(outcome.recorded_digests) if outcome.num_played else None,
        "digest_now": run_digest(outcome.digests) if outcome.digests else None,
        "recorded": outcome.num_recorded,
        "void": outcome.num_void,
        "missing": outcome.num_missing,
        "from_journal": list(outcome.from_journal),
        "changed_agents": outcome.changed,
        "damaged": [
            {"shard": d.shard_id, "file": d.file, "problem": d.problem, "episodes": d.num_episodes}
            for d in outcome.damaged
        ],
        "differences": [msgspec.to_builtins(difference) for difference in outcome.differences],
    }


def _lines(outcome: Reproduction, is_whole: bool) -> list[str]:
    equal = outcome.num_played - outcome.num_differing
    lines = [
        f"reproduced: {equal:,} of {counted(outcome.num_played, 'episode')}, {_digests(outcome, is_whole)}"
    ]
    if outcome.from_journal:
        lines.append(f"answered from the journal, nothing was called: {', '.join(outcome.from_journal)}")
    if outcome.num_void:
        lines.append(f"{counted(outcome.num_void, 'episode')} void: given up, nothing to play again")
    if outcome.num_missing:
        lines.append(f"{counted(outcome.num_missing, 'episode')} of the schedule not recorded")
    for difference in outcome.differences[:_SHOWN_DIFFERENCES]:
        place = f"episode {difference.index}, seed {difference.seed}"
        if difference.phase is not None:
            place += f", phase {difference.phase}, seat {difference.seat} ({difference.agent})"
        lines += ["", f"{place}:", f"  recorded  {difference.recorded}", f"  now       {difference.now}"]
        lines.append(f"  {difference.cause:<9} {difference.why}")
    more = outcome.num_differing - _SHOWN_DIFFERENCES
    if more > 0:
        lines += [
            "",
            f"and {counted(more, 'more episode')} that came out otherwise; --json lists the first 100",
        ]
    return lines


def _digests(outcome: Reproduction, is_whole: bool) -> str:
    if not outcome.num_played:
        return "nothing could be read" if outcome.damaged else "nothing is recorded"
    what = "run digest" if is_whole and not outcome.damaged else "digest of these"
    then = run_digest(outcome.recorded_digests)
    now = run_digest(outcome.digests) if outcome.digests else "none"
    return f"{what} equal {then}" if then == now else f"{what} recorded {then}, now {now}"
