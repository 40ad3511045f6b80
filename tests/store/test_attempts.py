"""Recorded episodes come back with every attempt as it was handed in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from store_made import NAMES, add, lineup, made_attempt, made_episode, write_shard

from cogeval.core.record import Attempt
from cogeval.errors import InputError
from cogeval.store.attempts import RecordedEpisode, iter_recorded, recorded_episode
from cogeval.store.run import RunDir
from cogeval.store.shards import DamagedShard
from cogeval.store.write import ShardWriter


def same(value: Any) -> Any:
    return value


def rounded(attempt: Attempt) -> Attempt:
    """As the store keeps it: times in single precision."""
    return msgspec.structs.replace(
        attempt, think_s=pytest.approx(attempt.think_s), queue_s=pytest.approx(attempt.queue_s)
    )


def test_every_attempt_comes_back(run: RunDir) -> None:
    write_shard(run, "w0-0000", (5, 1, 3), usage=True)
    write_shard(run, "w1-0000", (0, 2))
    found = list(iter_recorded(run, same))
    assert [episode.index for episode in found if isinstance(episode, RecordedEpisode)] == [1, 3, 5, 0, 2]
    for episode in found:
        assert isinstance(episode, RecordedEpisode)
        made = made_episode(episode.index, usage=episode.index in (1, 3, 5))
        assert list(episode.attempts) == [rounded(attempt) for attempt in made.attempts]
        assert episode.agents == tuple(NAMES[i] for i in lineup(episode.index))
        assert episode.scores == tuple(seat.score for seat in made.results.seats)
        assert (episode.seed, episode.digest, episode.stopped) == (made.seed, made.digest, made.stopped)
        assert (episode.num_phases, episode.damage) == (4, None)


def test_only_those_that_are_wanted_are_read(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(6))
    assert [e.index for e in iter_recorded(run, same, {4, 2, 99}) if isinstance(e, RecordedEpisode)] == [2, 4]
    assert recorded_episode(run, 3, same).index == 3
    with pytest.raises(InputError, match=r"episode 9 of run .* is not recorded; `cogeval status"):
        recorded_episode(run, 9, same)


def test_a_damaged_shard_is_named_and_the_next_is_read(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(2))
    write_shard(run, "w1-0000", range(2, 4))
    (run.shards_path / "w0-0000.seats.arrow").unlink()
    damaged, *rest = iter_recorded(run, same)
    assert isinstance(damaged, DamagedShard)
    assert [episode.index for episode in rest if isinstance(episode, RecordedEpisode)] == [2, 3]
    with pytest.raises(InputError, match="is damaged"):
        recorded_episode(run, 1, same)


def test_an_action_that_cannot_be_read_damages_its_own_episode(run: RunDir) -> None:
    def refusing(value: Any) -> Any:
        if value == ["fly"]:
            raise ValueError("expected an action, got fly")
        return value

    writer = ShardWriter(run.path, "w0-0000", agent_names=NAMES, worker="w0")
    good = made_episode(0)
    bad = [*good.attempts[:2], made_attempt(["fly"], phase=0, seat=2, kind="lab"), *good.attempts[3:]]
    writer.add(
        index=0, episode_id="0" * 32, block=0, lineup=lineup(0),
        episode=msgspec.structs.replace(good, attempts=tuple(bad)),
    )  # fmt: skip
    add(writer, 1)
    sealed = writer.seal()
    run.commit(sealed, sealed.indexes)
    first, second = iter_recorded(run, refusing)
    assert isinstance(first, RecordedEpisode)
    assert isinstance(second, RecordedEpisode)
    assert len(first.attempts) == 2
    assert first.damage is not None
    assert first.damage.startswith(
        "episode 0, phase 0, seat 2, attempt 0: its action '[\"fly\"]' cannot be read"
    )
    assert second.damage is None


def test_text_of_every_sort_and_times_that_are_no_numbers(run: RunDir) -> None:
    nasty = "\ud800 \ufdd0 \x00"
    odd = made_attempt(
        ["brew"], phase=0, seat=0, kind="lab", text=nasty, model=nasty, think_s=1e300, queue_s=float("nan")
    )
    made = made_episode(0, num_phases=0)
    writer = ShardWriter(run.path, "w0-0000", agent_names=NAMES, worker="w0")
    writer.add(
        index=0, episode_id="0" * 32, block=0, lineup=lineup(0),
        episode=msgspec.structs.replace(made, attempts=(odd,)),
    )  # fmt: skip
    sealed = writer.seal()
    run.commit(sealed, sealed.indexes)
    (attempt,) = recorded_episode(run, 0, same).attempts
    assert attempt == msgspec.structs.replace(odd, think_s=0.0, queue_s=0.0)


@pytest.mark.parametrize(
    ("number", "change"),
    [(3, {"seat": 0}), (3, {"seat": 1}), (2, {"attempt": 1}), (0, {"phase": 7}), (2, {"phase": -1})],
)
def test_a_row_that_is_out_of_order_damages_its_own_episode(
    run: RunDir, number: int, change: dict[str, int]
) -> None:
    made = made_episode(0)
    attempts = list(made.attempts)
    attempts[number] = msgspec.structs.replace(attempts[number], **change)
    writer = ShardWriter(run.path, "w0-0000", agent_names=NAMES, worker="w0")
    add(writer, 1)
    writer.add(
        index=0, episode_id="0" * 32, block=0, lineup=lineup(0),
        episode=msgspec.structs.replace(made, attempts=tuple(attempts)),
    )  # fmt: skip
    sealed = writer.seal()
    run.commit(sealed, sealed.indexes)
    first, second = iter_recorded(run, same)
    assert isinstance(first, RecordedEpisode)
    assert isinstance(second, RecordedEpisode)
    assert first.damage is not None
    assert "expected a row in the order phase, seat, attempt, without gaps" in first.damage
    assert len(first.attempts) == number
    assert second.damage is None
