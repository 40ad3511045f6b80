"""What goes in comes out, whatever agents put into it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_made import NAMES, action_text, add, lineup, made_episode, new_run, new_writer, write_shard

from cogeval.core.agent import Usage
from cogeval.core.game import Results, SeatResult
from cogeval.core.record import FAULTS, SOURCES, Attempt, Episode, seat_ranks, seat_shares
from cogeval.errors import RunError
from cogeval.store import columns
from cogeval.store.checks import check_run
from cogeval.store.read import iter_journals, read_tables
from cogeval.store.run import RunDir
from cogeval.store.schema import SCHEMAS
from cogeval.store.text import read_text, store_text

# Every code point, lone surrogates and the escape mark included; short, for hypothesis shrinks those.
texts = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x00\ud800\udfff\ufdd0"), max_size=12)
times = st.floats(0, 1e6)


@given(texts)
def test_text_comes_back_as_it_was(text: str) -> None:
    stored = store_text(text)
    stored.encode()
    assert read_text(stored) == text


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    num_seats, num_phases = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    attempts = []
    for phase in range(num_phases):
        for seat in range(num_seats):
            num = draw(st.integers(1, 3))
            for number in range(num):
                accepted = number == num - 1
                usage = draw(
                    st.none()
                    | st.builds(
                        Usage,
                        tokens_in=st.integers(0, 10**6),
                        tokens_out=st.integers(0, 10**6),
                        tokens_cached=st.integers(0, 9),
                        cost_usd=st.floats(0, 100),
                    )
                )
                action = draw(texts) if accepted else draw(st.none() | texts)
                attempts.append(
                    Attempt(
                        phase=phase,
                        seat=seat,
                        attempt=number,
                        kind=draw(texts),
                        source=draw(st.sampled_from(SOURCES)),
                        accepted=accepted,
                        action=action,
                        fault=None if accepted else draw(st.sampled_from(FAULTS)),
                        detail=None if accepted else draw(texts),
                        think_s=draw(times),
                        queue_s=draw(times),
                        usage=usage,
                        text=draw(st.none() | texts),
                        model=draw(st.none() | texts),
                        finish_reason=draw(st.none() | texts),
                        action_text=None if action is None else action_text(action),
                        stderr=draw(st.none() | texts),
                    )
                )
    forfeited = tuple(draw(st.booleans()) for _ in range(num_seats))
    scores = st.floats(allow_nan=True)
    keys = [(float(draw(st.integers(0, 2))),) for _ in range(num_seats)]
    seats = tuple(
        SeatResult(draw(scores), key, draw(st.dictionaries(texts, st.floats(-9, 9), max_size=3)))
        for key in keys
    )
    ranks = seat_ranks(keys, forfeited)
    return Episode(
        seed=7,
        replicate=draw(st.integers(0, 5)),
        results=Results(draw(texts), num_phases, seats),
        ranks=ranks,
        shares=seat_shares(ranks),
        forfeited=forfeited,
        attempts=tuple(attempts),
        stopped=draw(st.booleans()),
        wall_s=draw(times),
        digest=draw(st.binary(min_size=32, max_size=32)).hex(),
    )


def text_of(value: str | None) -> str | None:
    return None if value is None else read_text(value)


def assert_attempt(row: dict[str, Any], attempt: Attempt) -> None:
    usage = attempt.usage
    assert (row["phase"], row["seat"], row["attempt"]) == (attempt.phase, attempt.seat, attempt.attempt)
    assert (row["source"], row["accepted"], row["fault"]) == (attempt.source, attempt.accepted, attempt.fault)
    for column, value in (
        ("kind", attempt.kind),
        ("detail", attempt.detail),
        ("reply", attempt.text),
        ("stderr", attempt.stderr),
        ("model", attempt.model),
        ("finish_reason", attempt.finish_reason),
    ):
        assert text_of(row[column]) == value, column
    assert row["action"] == (None if attempt.action is None else action_text(attempt.action))
    assert row["think_s"] == np.float32(attempt.think_s)
    assert row["queue_s"] == np.float32(attempt.queue_s)
    for column in ("tokens_in", "tokens_out", "tokens_cached", "cost_usd"):
        assert row[column] == (None if usage is None else getattr(usage, column)), column


def assert_seat(row: dict[str, Any], seat: int, episode: Episode) -> None:
    result = episode.results.seats[seat]
    np.testing.assert_equal(row["score"], result.score)
    assert (row["seat"], row["rank"], row["share"]) == (seat, episode.ranks[seat], episode.shares[seat])
    assert row["forfeited"] == episode.forfeited[seat]
    assert {read_text(key): value for key, value in row["statistics"]} == result.statistics
    mine = [a for a in episode.attempts if a.seat == seat]
    assert row["num_decisions"] == episode.results.phases
    assert row["num_fallbacks"] == sum(a.accepted and a.source != "agent" for a in mine)
    assert row["num_faults"] == sum(a.fault is not None for a in mine)
    assert row["tokens_in"] == sum(a.usage.tokens_in for a in mine if a.usage)
    assert row["cost_usd"] == pytest.approx(sum(a.usage.cost_usd for a in mine if a.usage))
    assert row["think_s"] == pytest.approx(sum(a.think_s for a in mine))


@settings(max_examples=60, deadline=None)
@given(st.lists(episodes(), min_size=1, max_size=4), st.lists(texts, min_size=5, max_size=5), st.booleans())
def test_arbitrary_episodes_come_back_as_they_were(
    played: list[Episode], names: list[str], grouped: bool
) -> None:
    root = Path(tempfile.mkdtemp())
    try:
        run = new_run(root)
        writer = new_writer(run)
        writer = type(writer)(run.path, "w0-0000", agent_names=names, worker="w0")
        for index, episode in enumerate(played):
            writer.add(
                index=index,
                episode_id=f"{index:032x}",
                block=0,
                lineup=range(len(episode.ranks)),
                episode=episode,
            )
            if not grouped:
                writer.flush()
        sealed = writer.seal()
        run.commit(sealed, sealed.indexes)
        tables = read_tables(run)
        assert not tables.damaged
        decisions, seats = tables.decisions.to_pylist(), tables.seats.to_pylist()
        assert len(decisions) == sum(len(e.attempts) for e in played)
        for row, attempt in zip(decisions, (a for e in played for a in e.attempts), strict=True):
            assert_attempt(row, attempt)
        places = [(e, seat) for e in played for seat in range(len(e.ranks))]
        for row, (episode, seat) in zip(seats, places, strict=True):
            assert_seat(row, seat, episode)
            assert read_text(row["agent"]) == names[seat]
        for row, episode in zip(tables.episodes.to_pylist(), played, strict=True):
            assert row["digest"].hex() == episode.digest
            assert read_text(row["reason"]) == episode.results.reason
            assert row["clock_events"] == episode.has_clock_events
            assert (row["seed"], row["replicate"], row["phases"]) == (
                7,
                episode.replicate,
                episode.results.phases,
            )
        assert check_run(run) == []
        for journal, episode in zip(iter_journals(run), played, strict=True):
            assert list(journal.actions) == episode.journal()
    finally:
        shutil.rmtree(root)


def test_tables_have_the_documented_schema(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(5))
    write_shard(run, "w1-0000", range(5, 9), usage=True)
    tables = read_tables(run)
    for name, schema in SCHEMAS.items():
        assert getattr(tables, name).schema.equals(schema), name
    assert tables.seats["agent"].to_pylist()[:3] == [NAMES[a] for a in lineup(0)]


def test_null_cells_point_into_their_dictionary(run: RunDir) -> None:
    """Arrow's unification looks indexes of null cells up as well: outside, it would read foreign memory."""
    writer = new_writer(run)
    for index in range(6):
        add(writer, index, usage=index % 2 == 1)
        writer.flush()
    sealed = writer.seal()
    sources = dict.fromkeys(run.shards_path.glob("*.decisions.hot"), pa.ipc.open_stream)
    sources |= dict.fromkeys(run.shards_path.glob("*.decisions.arrow"), pa.ipc.open_file)
    num_null_columns = 0
    for path, opened in sources.items():
        for column in opened(path.read_bytes()).read_all().columns:
            if pa.types.is_dictionary(column.type):
                for chunk in column.chunks:
                    indexes = columns.to_numpy(chunk.indices)
                    num_null_columns += chunk.null_count == len(chunk)
                    assert indexes.min() >= 0
                    assert indexes.max() < len(chunk.dictionary)
    assert sealed.num_episodes == 6
    assert num_null_columns > 0


def test_huge_text_is_stored(run: RunDir) -> None:
    writer = new_writer(run)
    huge = "\u00e9\x00" * 2_000_000
    last = made_episode(0).attempts[-1]
    attempts = (*made_episode(0).attempts[:-1], type(last)(**{**_fields(last), "text": huge}))
    episode = made_episode(0)
    episode = type(episode)(**{**_fields(episode), "attempts": attempts})
    writer.add(index=0, episode_id="0" * 32, block=0, lineup=lineup(0), episode=episode)
    sealed = writer.seal()
    run.commit(sealed, sealed.indexes)
    assert read_tables(run, ["decisions"]).decisions["reply"].to_pylist()[-1] == huge


def _fields(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def test_values_of_the_wrong_type_cost_their_cell_only() -> None:
    assert columns.counts([1, None, "2", 1 << 80, -5, 2.0]).tolist() == [1, -1, -1, columns.MAX_COUNT, 0, 2]
    assert columns.floats([1, None, "x", 10**400]).tolist()[0::3] == [1.0, float("inf")]
    assert columns.name_column(["a", 3, ["b"], None]).to_pylist() == ["a", "<int>", "<list>", None]
    assert columns.text_column([b"a", None, "b"]).to_pylist() == ["<bytes>", None, "b"]
    assert columns.nullable_floats(
        np.array([1e300, np.nan]), SCHEMAS["decisions"].field("think_s").type
    ).to_pylist() == [
        float("inf"),
        None,
    ]


def test_an_index_is_added_once_and_a_lineup_fits(run: RunDir) -> None:
    writer = new_writer(run)
    add(writer, 3)
    with pytest.raises(ValueError, match="does not hold, got 3"):
        add(writer, 3)
    with pytest.raises(ValueError, match="expected 3 indexes of 3 agents"):
        writer.add(
            index=4,
            episode_id="",
            block=0,
            lineup=(0, 1, 3),
            episode=made_episode(4),
        )
    assert writer.num_episodes == 1
    assert writer.seal().indexes == (3,)
    with pytest.raises(RunError, match="closed"):
        add(writer, 5)


def test_an_empty_shard_is_not_sealed_and_leaves_no_file(run: RunDir) -> None:
    writer = new_writer(run)
    assert writer.flush() == 0
    with pytest.raises(RunError, match="at least one episode"):
        writer.seal()
    assert list(run.shards_path.iterdir()) == []


@pytest.mark.parametrize("shard_id", ["", "w0", "w0-1", "../w-0001", "w.0-0001", "w 0-0001"])
def test_shard_ids_are_worker_and_number(run: RunDir, shard_id: str) -> None:
    with pytest.raises(ValueError, match="expected a shard id like"):
        new_writer(run, shard_id)
