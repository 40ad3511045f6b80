"""Commands run in this process, and runs recorded without Ray."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cogeval.cli import main
from cogeval.cli.composing import Composer
from cogeval.cli.session import new_run
from cogeval.config import Experiment, build_experiment, conf_dir, read_config
from cogeval.core.episode import play
from cogeval.store.run import RunDir
from cogeval.store.write import ShardWriter

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
sys.path.insert(0, str(Path(__file__).parent))

import reproduced_runs


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Exactly one JSON object, or the test fails."""
        assert self.out.count("\n") == 1, self.out
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Command = Callable[..., Answer]


@pytest.fixture
def cogeval(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs one command; the working directory is a fresh one."""
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()

    def run(*argv: str) -> Answer:
        code = main(list(argv))
        out, err = capsys.readouterr()
        return Answer(code, out, err)

    return run


def experiment_of(*overrides: str) -> Experiment:
    return build_experiment(read_config(Composer(conf_dir()).compose(list(overrides))))


def record(experiment: Experiment, run: RunDir, indexes: Iterable[int], shard_id: str) -> None:
    """Plays some episodes of a run here and commits them as one shard."""
    names = [agent.name for agent in experiment.agents]
    writer = ShardWriter(run.path, shard_id, agent_names=names, worker=shard_id.rpartition("-")[0])
    for index in indexes:
        slot = experiment.schedule[index]
        seats = [experiment.agents[i].seated for i in slot.lineup]
        episode = asyncio.run(
            play(experiment.game, slot.seed, seats, replicate=slot.replicate, fallback=experiment.fallback)
        )
        writer.add(
            index=index,
            episode_id=_episode_id(experiment, index),
            block=slot.block,
            lineup=slot.lineup,
            episode=episode,
        )
    sealed = writer.seal()
    run.commit(sealed, sealed.indexes)


def _episode_id(experiment: Experiment, index: int) -> str:
    from cogeval.core.record import episode_id, experiment_key

    slot = experiment.schedule[index]
    who = [f"{experiment.agents[i].name}:{experiment.agents[i].fingerprint}" for i in slot.lineup]
    return episode_id(
        experiment_key(experiment.game, experiment.rules_of_play()), slot.seed, who, slot.replicate
    )


MakeRun = Callable[..., RunDir]


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRun:
    """Records a run under ``tmp_path/runs``: `done` of its episodes, in two shards."""
    monkeypatch.chdir(tmp_path)

    def make(*overrides: str, done: int | None = None, name: str | None = None) -> RunDir:
        given = ["schedule.blocks=8", "game.rounds=3", "tracking=off", *overrides]
        experiment = experiment_of(*given, *([f"run.id={name}"] if name else []))
        run = new_run(experiment)
        total = len(experiment.schedule) if done is None else done
        half = total // 2
        if half:
            record(experiment, run, range(half), "w0-0000")
        if total - half:
            record(experiment, run, range(half, total), "w1-0000")
        return run

    return make


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the agents and the runs of a module are that plays runs again."""
    place = tmp_path_factory.mktemp("reproduce")
    (place / f"{reproduced_runs.MODULE}.py").write_text(reproduced_runs.AGENTS)
    before = list(sys.path)
    yield place
    sys.path[:] = before
    sys.modules.pop(reproduced_runs.MODULE, None)


@pytest.fixture(scope="module")
def cogz_run(place: Path) -> RunDir:
    """A run with fickle among the baselines of cogz."""
    return reproduced_runs.record(place, "shared", *reproduced_runs.SMALL["cogz"])
