"""Runs to be played again, recorded here without Ray: with a fickle agent, a model and a program."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from cogeval.agents.llm.reading import first_object
from cogeval.agents.process.reading import json_object, read_answer
from cogeval.cli.composing import Composer
from cogeval.cli.session import new_run
from cogeval.config import Experiment, build_experiment, conf_dir, read_config
from cogeval.core.agent import Agent, Reply, Request, Seated, Usage
from cogeval.core.clock import MonotonicClock
from cogeval.core.episode import play
from cogeval.core.record import Episode, canonical_json, episode_id, experiment_key
from cogeval.core.rng import Stream
from cogeval.games import make_game
from cogeval.games.cogz.reply import write_reply
from cogeval.store.run import RunDir
from cogeval.store.write import ShardWriter

AGENTS = '''
import asyncio
import random

from cogeval.core.agent import Reply, Usage
from cogeval.core.rng import stream


class Fickle:
    """Noise from outside of its stream, and faults of all kinds."""

    def __init__(self, faults=0.0):
        self.faults = faults

    async def decide(self, request):
        await asyncio.sleep(0)
        legal = request.decision.legal
        action = legal.sample(stream(random.getrandbits(32), "noise"))
        if random.random() < self.faults:
            kind = random.choice(("timeout", "exception", "unreadable", "illegal"))
            if kind == "timeout":
                await asyncio.sleep(3600)
            if kind == "exception":
                raise ValueError("so much noise")
            if kind == "unreadable":
                return Reply(text="mumble", model="noise-1")
            action = self.illegal(action, legal)
        usage = Usage(10, 3, 1, 0.25)
        return Reply(action, usage=usage, text="so be it", model="noise-1", finish_reason="stop")

    @staticmethod
    def illegal(action, legal):
        cells = ((row, column) for row in range(5) for column in range(5))
        tried = (type(action)(action.slot, action.rotation, *cell) for cell in cells)
        return next((one for one in tried if one not in legal), action)


class Steady:
    def decide(self, request):
        return Reply(next(iter(request.decision.legal)))
'''

MODULE = "reproduced_agents"
SMALL = {
    "cogchemists": ("game=cogchemists", "game.rounds=3"),
    "cogmud": ("game=cogmud", "game.turns=6"),
    "cogz": ("game=cogz",),
}
Change = Callable[[int, Episode], Episode]


CORNER = {"column": 0, "rotation": 0, "row": 0, "slot": 0}  # as JSON; no seat of these runs goes there
SPEAKERS = (
    "+pool.agents.model={kind: llm, provider: openai, base_url: 'http://localhost:1', model: m}",
    "+pool.agents.program={kind: process, command: [python3, -c, '0']}",
    *(f"~pool.agents.{name}" for name in ("balanced", "greedy_lowest", "lookahead", "random")),
)  # of cogz: a model and a program beside fickle and one baseline


class Ticking(MonotonicClock):
    """Each look at it takes a tenth of a second."""

    def __init__(self) -> None:
        self.time_s = 0.0

    def now(self) -> float:  # type: ignore[override]
        self.time_s += 0.1
        return self.time_s


class Speaker:
    """Legal swaps of cogz, swaps that are not, and no swap at all, in words."""

    def __init__(self, rng: Stream) -> None:
        self.rng = rng
        self.numbers = itertools.count()

    def swap(self, request: Request) -> Any:
        """None: none."""
        legal, number = request.decision.legal, next(self.numbers)
        action = legal.sample(self.rng)
        if number % 5 == 1:
            return None
        if number % 5 == 3:
            cells = ((row, column) for row in range(5) for column in range(5))
            tried = (type(action)(action.slot, action.rotation, *cell) for cell in cells)
            return next(one for one in tried if one not in legal)
        return action


class Model(Speaker):
    """Answers as a seat of kind llm does."""

    async def decide(self, request: Request) -> Reply:
        swap = self.swap(request)
        legal: Any = request.decision.legal
        text = "I pass." if swap is None else f"So be it: {json.dumps(write_reply(legal, swap))}"
        return Reply(
            payload=first_object(text),
            usage=Usage(10, 3, 1, 0.25),
            text=text,
            model="m-1",
            finish_reason="stop",
        )


class Program(Speaker):
    """Answers as a seat of kind process does."""

    game = make_game("cogz")

    async def decide(self, request: Request) -> Reply:
        swap = self.swap(request)
        said: dict[str, Any] = {"type": "action", "usage": {"tokens_in": 7, "cost_usd": 0.5}, "model": "p-1"}
        if swap is not None:
            said["action"] = self.game.action_to_wire(swap)
        line = json.dumps({**said, "finish_reason": "stop"})
        return read_answer(self.game, json_object(line.encode()) or {}, line)


def model(seat: int, rng: Stream) -> Agent:
    return Model(rng)


def program(seat: int, rng: Stream) -> Agent:
    return Program(rng)


STAND_INS: dict[str, Callable[[int, Stream], Agent]] = {"model": model, "program": program}


def record(
    place: Path,
    name: str,
    *overrides: str,
    num: int = 6,
    shards: int = 2,
    change: Change = lambda _, episode: episode,
    ticking: bool = False,
) -> RunDir:
    """Records a run with a fickle agent among the baselines."""
    given = [
        "tracking=off", f"run.root={place}/runs", f"run.id={name}", f"agent_paths=[{place}]",
        f"schedule.blocks={num}", f"+pool.agents.fickle._target_={MODULE}.Fickle", *overrides,
    ]  # fmt: skip
    experiment = build_experiment(read_config(Composer(conf_dir()).compose(given)))
    run = new_run(experiment)
    for shard in range(shards):
        _record_shard(run, experiment, f"w{shard}-0000", range(shard, num, shards), change, ticking)
    return run


def _record_shard(
    run: RunDir, experiment: Experiment, shard_id: str, indexes: Iterable[int], change: Change, ticking: bool
) -> None:
    names = [agent.name for agent in experiment.agents]
    key = experiment_key(experiment.game, experiment.rules_of_play())
    writer = ShardWriter(run.path, shard_id, agent_names=names, worker=shard_id.rpartition("-")[0])
    for index in indexes:
        slot = experiment.schedule[index]
        playing = play(
            experiment.game,
            slot.seed,
            [_seated(experiment, i) for i in slot.lineup],
            fallback=experiment.fallback,
            deadlines=experiment.deadlines,
            clock=Ticking() if ticking else None,
            replicate=slot.replicate,
        )
        who = [f"{experiment.agents[i].name}:{experiment.agents[i].fingerprint}" for i in slot.lineup]
        writer.add(
            index=index,
            episode_id=episode_id(key, slot.seed, who, slot.replicate),
            block=slot.block,
            lineup=slot.lineup,
            episode=change(index, asyncio.run(playing)),
        )
    sealed = writer.seal()
    run.commit(sealed, sealed.indexes)


def _seated(experiment: Experiment, number: int) -> Seated:
    """Who plays: for a model and a program, who answers as they do."""
    seated = experiment.agents[number].seated
    stand_in = STAND_INS.get(seated.name)
    return seated if stand_in is None else Seated(seated.name, stand_in, deterministic=False)


def tampered(index: int, phase: int, names: list[str], action: object, model: str | None = None) -> Change:
    """Another action in place of the recorded one, in all else the episode as it was."""

    def change(i: int, episode: Episode) -> Episode:
        if i != index:
            return episode
        attempts = list(episode.attempts)
        where = next(
            k for k, a in enumerate(attempts) if a.phase >= phase and a.accepted and a.model == model
        )
        names.append(f"phase {attempts[where].phase}, seat {attempts[where].seat}")
        attempts[where] = msgspec.structs.replace(
            attempts[where], action=action, action_text=canonical_json(action)
        )
        return msgspec.structs.replace(episode, attempts=tuple(attempts))

    return change
