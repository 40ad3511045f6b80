"""`cogeval reproduce` on runs recorded here: equal where nothing changed, and told what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from reproduced_runs import MODULE, SMALL, record

from cogeval.cli.reproducing import answering_from_journal
from cogeval.core.record import Episode
from cogeval.store.run import RunDir


@pytest.fixture(scope="module", params=SMALL)
def run_of_a_game(request: pytest.FixtureRequest, place: Path) -> RunDir:
    return record(place, request.param, *SMALL[request.param])


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


def test_a_deterministic_agent_in_a_process_of_its_own_answers_from_the_journal(place: Path) -> None:
    steady = [f"+pool.agents.steady.{key}" for key in ("deterministic=true", "placement=process")]
    target = f"+pool.agents.steady._target_={MODULE}.Steady"
    run = record(place, "apart", *SMALL["cogz"], target, *steady, shards=0)
    assert answering_from_journal(run) == ("fickle", "steady")
