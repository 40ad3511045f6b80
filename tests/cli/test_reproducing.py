"""`cogeval reproduce` and `replay` on runs recorded here: equal where nothing changed, else found."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cogeval.cli.composing import Composer
from cogeval.cli.reproducing import answering_from_journal
from cogeval.cli.session import new_run
from cogeval.config import Experiment, build_experiment, conf_dir, read_config
from cogeval.core.clock import MonotonicClock
from cogeval.core.episode import play
from cogeval.core.record import Episode, canonical_json, episode_id, experiment_key
from cogeval.games.cogz.game import Cogz
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


class Ticking(MonotonicClock):
    """Each look at it takes a tenth of a second."""

    def __init__(self) -> None:
        self.time_s = 0.0

    def now(self) -> float:  # type: ignore[override]
        self.time_s += 0.1
        return self.time_s


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the agents and the runs of this module are."""
    place = tmp_path_factory.mktemp("reproduce")
    (place / f"{MODULE}.py").write_text(AGENTS)
    before = list(sys.path)
    yield place
    sys.path[:] = before
    sys.modules.pop(MODULE, None)


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
            [experiment.agents[i].seated for i in slot.lineup],
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


@pytest.fixture(scope="module", params=SMALL)
def run_of_a_game(request: pytest.FixtureRequest, place: Path) -> RunDir:
    return record(place, request.param, *SMALL[request.param])


@pytest.fixture(scope="module")
def cogz_run(place: Path) -> RunDir:
    return record(place, "shared", *SMALL["cogz"])


def test_every_game_comes_out_the_same_with_noise_in_a_seat(cogeval, run_of_a_game: RunDir) -> None:
    said = cogeval("reproduce", str(run_of_a_game.path))
    assert said.code == 0, said.out
    digest = cogeval("status", str(run_of_a_game.path), "--json").json["digest"]
    first, *rest = said.out.splitlines()
    assert first == f"reproduced: 6 of 6 episodes, run digest equal {digest}"
    assert rest == ["answered from the journal, nothing was called: fickle"]
    told = cogeval("reproduce", str(run_of_a_game.path), "--json").json
    assert (told["reproduced"], told["digest"], told["digest_now"]) == (True, digest, digest)
    assert (told["whole"], told["differences"], told["changed_agents"]) == (True, [], {})


@pytest.mark.parametrize("on_fault", ["baseline", "forfeit"])
def test_faults_and_what_decided_in_their_place_come_out_the_same(
    cogeval, place: Path, on_fault: str
) -> None:
    name = f"faulty-{on_fault}"
    faults = ("+pool.agents.fickle.faults=0.5", "deadlines.decision_s=0.02", "deadlines.retry_s=0.02")
    run = record(place, name, "game=cogz_4", *faults, f"deadlines.on_fault={on_fault}")
    assert cogeval("status", str(run.path), "--json").json["faults"] > 0
    said = cogeval("reproduce", str(run.path))
    assert said.code == 0, said.out
    assert said.out.startswith("reproduced: 6 of 6 episodes, run digest equal ")


def test_an_episode_that_its_clock_stopped_ends_at_the_same_place(cogeval, place: Path) -> None:
    stopped = []

    def look(_: int, episode: Episode) -> Episode:
        stopped.append(episode.stopped)
        return episode

    short = "deadlines.episode_timeout_s=15"
    run = record(
        place, "stopped", *SMALL["cogmud"], short, "deadlines.decision_s=10", change=look, ticking=True
    )
    assert any(stopped)
    said = cogeval("reproduce", str(run.path))
    assert said.code == 0, said.out


def test_some_episodes_only(cogeval, cogz_run: RunDir) -> None:
    told = cogeval("reproduce", str(cogz_run.path), "--episodes", "2", "--json").json
    assert (told["episodes"], told["whole"], told["reproduced"]) == (2, False, True)
    assert (
        "2 of 2 episodes, digest of these equal"
        in cogeval("reproduce", str(cogz_run.path), "--episodes=2").out
    )
    refused = cogeval("reproduce", str(cogz_run.path), "--seed", "5")
    assert refused.code == 2
    seed = refused.err.split()[-1]
    assert cogeval("reproduce", str(cogz_run.path), "--seed", seed, "--json").json["episodes"] == 1
    for flag, value in (("--episodes", "0"), ("--seed", "x")):
        assert f"{flag}: expected a whole number" in cogeval("reproduce", str(cogz_run.path), flag, value).err


CORNER = {"column": 0, "rotation": 0, "row": 0, "slot": 0}  # as JSON; no seat of these runs goes there


def _tampered(index: int, phase: int, names: list[str], action: object, model: str | None = None) -> Change:
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


def test_an_action_that_was_tampered_with_is_found_at_its_place(cogeval, place: Path) -> None:
    where: list[str] = []
    change = _tampered(3, 2, where, CORNER)
    run = record(place, "tampered", *SMALL["cogz"], "~pool.agents.fickle", change=change)
    said = cogeval("reproduce", str(run.path))
    assert said.code == 1
    assert said.out.startswith("reproduced: 5 of 6 episodes, run digest equal")
    (place_line,) = [line for line in said.out.splitlines() if line.startswith("episode ")]
    assert place_line.startswith("episode 3, seed ")
    assert f", {where[0]} (" in place_line
    assert f"  recorded  agent: {canonical_json(CORNER)}\n" in said.out
    assert "  record    the recorded actions and scores do not give the recorded digest" in said.out
    (told,) = cogeval("reproduce", str(run.path), "--json").json["differences"]
    assert (told["index"], told["cause"]) == (3, "record")


def test_a_recorded_reply_that_was_tampered_with_is_the_records_fault(cogeval, place: Path) -> None:
    change = _tampered(0, 1, [], CORNER, model="noise-1")
    pool = [f"~pool.agents.{name}" for name in ("balanced", "greedy_lowest", "lookahead", "random")]
    run = record(place, "retouched", *SMALL["cogz"], *pool, change=change)  # fickle sits in every episode
    said = cogeval("reproduce", str(run.path), "--json")
    assert said.code == 1
    assert [(told["index"], told["cause"]) for told in said.json["differences"]] == [(0, "record")]


def test_a_row_that_cannot_be_read_costs_its_own_episode(cogeval, place: Path) -> None:
    change = _tampered(2, 1, [], {"no": "action"})
    run = record(place, "unreadable", *SMALL["cogz"], change=change)
    said = cogeval("reproduce", str(run.path))
    assert said.code == 1
    assert said.out.startswith("reproduced: 5 of 6 episodes")
    assert "  record    episode 2, phase 1, seat " in said.out
    assert "cannot be read" in said.out


@pytest.mark.parametrize("harm", ["cut", "gone"])
def test_a_damaged_shard_is_named_and_the_others_go_on(cogeval, place: Path, harm: str) -> None:
    run = record(place, f"harmed-{harm}", *SMALL["cogz"], num=4)
    path = run.shards_path / "w0-0000.decisions.arrow"
    path.unlink() if harm == "gone" else path.write_bytes(path.read_bytes()[:-9])
    said = cogeval("reproduce", str(run.path))
    assert said.code == 1
    assert path.name in said.err
    assert said.out.startswith("reproduced: 2 of 2 episodes, digest of these equal")


def test_void_and_missing_episodes_are_counted(cogeval, place: Path) -> None:
    run = record(place, "partly", *SMALL["cogz"], num=4)
    (run.shards_path / "w1-0000.json").unlink()
    run.append_log({"event": "void", "index": 1, "reason": "boom"})
    run.close()
    said = cogeval("reproduce", str(run.path))
    assert said.code == 0
    assert "1 episode void: given up, nothing to play again" in said.out
    assert "1 episode of the schedule not recorded" in said.out
    told = cogeval("reproduce", str(run.path), "--json").json
    assert (told["recorded"], told["void"], told["missing"]) == (2, 1, 1)


def test_a_run_without_episodes_is_not_reproduced(cogeval, place: Path) -> None:
    run = record(place, "empty", *SMALL["cogz"], shards=0)
    said = cogeval("reproduce", str(run.path))
    assert said.code == 1
    assert said.out.startswith("reproduced: 0 of 0 episodes, nothing is recorded")


def test_changed_code_of_an_agent_is_named(cogeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "moving_agents.py"
    source.write_text(AGENTS)
    steady = [
        f"+pool.agents.{name}._target_=moving_agents.{name.capitalize()}" for name in ("steady", "shaky")
    ]
    source.write_text(AGENTS.replace("class Steady", "class Shaky(Fickle):\n    pass\n\n\nclass Steady"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{MODULE}.py").write_text(AGENTS)
    run = record(tmp_path, "moving", *SMALL["cogz"], *steady, "+pool.agents.steady.deterministic=true", num=8)
    assert cogeval("reproduce", str(run.path)).code == 0
    source.write_text(
        source.read_text().replace("next(iter(request.decision.legal))", "request.decision.default")
    )
    monkeypatch.delitem(sys.modules, "moving_agents")
    importlib.invalidate_caches()
    said = cogeval("reproduce", str(run.path))
    assert said.code == 1
    changed = [line for line in said.err.splitlines() if "changed since the run began" in line]
    assert len(changed) == 2
    assert "agent shaky changed" in changed[0]
    assert changed[0].endswith("; its seats answer from the journal all the same")
    assert "(steady):" in said.out
    assert "  agent     agent steady changed: fingerprint " in said.out
    source.unlink()
    monkeypatch.delitem(sys.modules, "moving_agents")
    assert "'moving_agents.Steady' cannot be imported" in cogeval("reproduce", str(run.path)).err


def test_a_deterministic_agent_in_a_process_of_its_own_answers_from_the_journal(place: Path) -> None:
    steady = [f"+pool.agents.steady.{key}" for key in ("deterministic=true", "placement=process")]
    target = f"+pool.agents.steady._target_={MODULE}.Steady"
    run = record(place, "apart", *SMALL["cogz"], target, *steady, shards=0)
    assert answering_from_journal(run) == ("fickle", "steady")


def test_another_version_of_the_game_is_refused_by_name(
    cogeval, cogz_run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = {**cogz_run.manifest["game"], "version": "0"}
    monkeypatch.setattr(RunDir, "manifest", {**cogz_run.manifest, "game": game})
    said = cogeval("reproduce", str(cogz_run.path))
    assert said.code == 2
    assert "game version changed since the run began: '0'" in said.err
    assert "play it again with the code that recorded it, cogeval " in said.err


def test_changed_rules_and_a_changed_baseline_are_told_apart(
    cogeval, cogz_run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Cogz.results

    def results(self: Cogz, state: Any) -> Any:
        found = real(self, state)
        seats = tuple(msgspec.structs.replace(seat, score=seat.score + 1) for seat in found.seats)
        return msgspec.structs.replace(found, seats=seats)

    with monkeypatch.context() as patched:
        patched.setattr(Cogz, "results", results)
        said = cogeval("reproduce", str(cogz_run.path))
    assert said.code == 1
    assert said.out.startswith("reproduced: 0 of 6 episodes")
    assert "  rules     the rules changed: the recorded actions lead to complete, scores " in said.out
    baseline = Cogz.baseline
    monkeypatch.setattr(Cogz, "baseline", lambda self, _, *rest: baseline(self, "greedy_lowest", *rest))
    told = cogeval("reproduce", str(cogz_run.path), "--json").json
    assert {difference["cause"] for difference in told["differences"]} == {"agent"}
    assert "its fingerprint is the same" in told["differences"][0]["why"]


def test_replay_shows_who_decided_what_and_what_came_of_it(cogeval, place: Path) -> None:
    pool = [f"~pool.agents.{name}" for name in ("balanced", "greedy_lowest", "lookahead", "random")]
    faults = ("+pool.agents.fickle.faults=0.5", "deadlines.decision_s=0.02", "deadlines.retry_s=0.02")
    run = record(place, "shown", *SMALL["cogz"], *pool, *faults, num=1, shards=1)
    said = cogeval("replay", str(run.path), "0")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("cogz 1, episode 0 in block 0, seed ")
    assert {"seat 0 fickle, seat 1 greedy_total", "seat 0 greedy_total, seat 1 fickle"} & set(lines)
    for start in (
        "phase 0",
        "    fault  ",
        "      so be it",
        "    took   ",
        "  event  swap ",
        "result (complete)",
    ):
        assert any(line.startswith(start) for line in lines), start
    assert any("  fallback (baseline)  {" in line for line in lines)
    assert any("10 tokens in (1 cached), 3 out, $0.2500; noise-1; finished by stop" in line for line in lines)
    told = cogeval("replay", str(run.path), "0", "--json").json
    assert lines[-1] == f"digest {told['digest']}"
    attempts = [attempt for phase in told["phases"] for attempt in phase["attempts"]]
    assert "so be it" in {attempt["text"] for attempt in attempts}
    assert all(phase["events"] for phase in told["phases"])
    assert len(told["scores"]) == 2


def test_replay_says_what_it_expected(cogeval, cogz_run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(cogz_run.path)
    assert "expected a RUN and an EPISODE" in cogeval("replay", path).err
    assert "expected EPISODE, a place in the schedule from 0, got 'x'" in cogeval("replay", path, "x").err
    assert "episode 99 of run shared is not recorded" in cogeval("replay", path, "99").err
    game = {**cogz_run.manifest["game"], "version": "0"}
    monkeypatch.setattr(RunDir, "manifest", {**cogz_run.manifest, "game": game})
    older = cogeval("replay", path, "0")
    assert older.code == 0
    assert "cogz is 1 now, was 0: events are left out" in older.err
    assert "  event  " not in older.out
