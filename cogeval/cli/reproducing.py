"""`cogeval reproduce`: plays a run again from what it recorded, and says where it comes out otherwise.

Invariant: writes nothing and calls nobody: agents that are not deterministic, and those that live in
processes of their own, answer from the journal. Damaged shards are named and the others go on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec
import numpy as np

from cogeval.agents import build_agent
from cogeval.agents.recorded import readers
from cogeval.cli.arguments import Arguments
from cogeval.cli.environment import check_packages
from cogeval.cli.progress import doing
from cogeval.cli.recorded import scheduled, void_reasons
from cogeval.cli.reproduced import Reproduction, report
from cogeval.cli.resuming import changed_agents, changed_rules
from cogeval.cli.session import manifest_of
from cogeval.cli.settings import called, config_of
from cogeval.cli.status import one_run
from cogeval.config import Experiment, build_experiment, make_importable
from cogeval.core.agent import Resources, bound
from cogeval.core.ranges import from_ranges
from cogeval.core.record import episode_id, experiment_key
from cogeval.errors import InputError
from cogeval.report.reproduction import Difference, Rehearsal
from cogeval.schedule.designs import Slot
from cogeval.store.attempts import iter_recorded
from cogeval.store.run import RunDir
from cogeval.store.shards import DamagedShard

_ANEW_KINDS: Final = ("baseline", "python", "random")  # of agents that this process can be


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
    report(outcome, called(run), is_whole=wanted is None, as_json=arguments.switch("--json"))
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
        readers(run.manifest["agents"], experiment.game),
        outcome.changed,
        experiment.fallback,
        experiment.deadlines,
        _identity(run, experiment),
    )
    found: Counter[int] = Counter()
    for item in iter_recorded(run, experiment.game.action_from_wire, wanted):
        if isinstance(item, DamagedShard):
            outcome.damaged.append(item)
            continue
        again = await rehearsal.play(item)
        found[item.index] += 1
        outcome.played.add(item.index)
        outcome.recorded_digests.append(bytes.fromhex(item.digest))
        if again.digest is not None:
            outcome.digests.append(bytes.fromhex(again.digest))
        if again.difference is not None:
            outcome.note(again.difference)
    damaged = {shard.shard_id for shard in outcome.damaged}
    for record in run.records():
        if record.shard_id not in damaged:
            listed = from_ranges(record.accepted).tolist()
            for index in (i for i in listed if found[i] != 1 and (wanted is None or i in wanted)):
                outcome.played.add(index)
                outcome.note(_listed(experiment, record.shard_id, index, found[index]))
    outcome.settle()


def _identity(run: RunDir, experiment: Experiment) -> Callable[[Slot], str]:
    """What gives the identities of a run's episodes, from its agents as they were when it began."""
    key = experiment_key(experiment.game, experiment.rules_of_play())
    prints = {agent["name"]: agent["fingerprint"] for agent in run.manifest["agents"]}
    names = [f"{agent.name}:{prints[agent.name]}" for agent in experiment.agents]
    return lambda slot: episode_id(key, slot.seed, [names[i] for i in slot.lineup], slot.replicate)


def _listed(experiment: Experiment, shard_id: str, index: int, num: int) -> Difference:
    """An episode that a shard's record lists and its files do not hold once."""
    slot = experiment.schedule[index] if index < len(experiment.schedule) else None
    return Difference(
        index=index,
        block=-1 if slot is None else slot.block,
        seed=0 if slot is None else slot.seed,
        phase=None,
        seat=None,
        column="episodes.index",
        agent=None,
        recorded=f"one episode, in the record of shard {shard_id}",
        now=f"{num or 'no'} rows of that index",
        cause="record",
        why="the rows are not those that the shard's record lists",
    )
