"""Reading gives the accepted rows, once, in the form that ratings and replays want."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from store_made import NAMES, add, lineup, made_episode, new_writer, write_shard

from cogeval.errors import InputError
from cogeval.store.read import (
    episode_journal,
    iter_journals,
    read_tables,
    recorded_indexes,
)
from cogeval.store.run import RunDir
from cogeval.store.totals import spend_facts, totals_of

HERE = Path(__file__).parent


def write_with_copies(run: RunDir) -> None:
    """Two shards; episodes 2 and 3 of the second are second copies."""
    write_shard(run, "w0-0000", range(4), usage=True)
    writer = new_writer(run, "w1-0000")
    for index in (3, 7, 2, 5):
        add(writer, index, usage=True)
    sealed = writer.seal()
    run.commit(sealed, [7, 5], [3, 2])


def test_superseded_rows_are_never_read(run: RunDir) -> None:
    write_with_copies(run)
    tables = read_tables(run)
    assert tables.episodes["index"].to_pylist() == [0, 1, 2, 3, 7, 5]
    for table in (tables.seats, tables.decisions):
        assert sorted(set(table["index"].to_pylist())) == [0, 1, 2, 3, 5, 7]
    assert tables.seats.num_rows == 18
    assert recorded_indexes(run)[0].tolist() == [0, 1, 2, 3, 5, 7]
    assert sorted(j.index for j in iter_journals(run)) == [0, 1, 2, 3, 5, 7]


def test_superseded_episodes_count_in_the_spend(run: RunDir) -> None:
    write_with_copies(run)
    spend = spend_facts(totals_of(run).superseded)
    used = [a.usage for i in (2, 3) for a in made_episode(i, usage=True).attempts if a.usage]
    assert spend["num_episodes"] == 2
    assert spend["tokens_in"] == sum(u.tokens_in for u in used)
    assert spend["cost_usd"] == pytest.approx(sum(u.cost_usd for u in used))


def test_a_shard_without_a_record_does_not_exist(run: RunDir) -> None:
    write_shard(run, "w0-0000", range(4))
    write_shard(run, "w1-0000", range(4, 8), commit=False)
    assert read_tables(run).episodes.num_rows == 4
    assert recorded_indexes(run)[0].tolist() == [0, 1, 2, 3]


def test_tables_columns_and_shards_can_be_chosen(run: RunDir) -> None:
    write_with_copies(run)
    tables = read_tables(run, ["seats"], ["score", "agent"], shards=["w1-0000"])
    assert tables.seats.column_names == ["agent", "score"]
    assert tables.seats.num_rows == 6
    assert tables.episodes.num_columns == 0
    with pytest.raises(InputError, match="unknown column 'scores'; known, closest first: score"):
        read_tables(run, ["seats"], ["scores"])
    with pytest.raises(InputError, match="unknown table 'seat'; known, closest first: seats"):
        read_tables(run, ["seat"])


def test_a_run_without_shards_reads_as_empty(run: RunDir) -> None:
    tables = read_tables(run)
    assert (tables.episodes.num_rows, tables.seats.num_rows, tables.decisions.num_rows) == (0, 0, 0)
    assert list(iter_journals(run)) == []


def test_journals_hold_what_a_replay_needs(run: RunDir) -> None:
    write_with_copies(run)
    journal = episode_journal(run, 5)
    episode = made_episode(5, usage=True)
    assert list(journal.actions) == episode.journal()
    assert journal.agents == tuple(NAMES[a] for a in lineup(5))
    assert (journal.seed, journal.digest, journal.stopped) == (episode.seed, episode.digest, False)
    with pytest.raises(InputError, match="episode 6 of run run-1 is not recorded"):
        episode_journal(run, 6)


def test_the_journal_of_a_damaged_shard_names_the_shard(run: RunDir) -> None:
    write_with_copies(run)
    (run.shards_path / "w0-0000.seats.arrow").unlink()
    with pytest.raises(InputError, match="shard w0-0000 is damaged"):
        episode_journal(run, 1)
    assert [j.index for j in iter_journals(run)] == [7, 5]


def test_digests_are_kept_as_bytes(run: RunDir) -> None:
    write_with_copies(run)
    digests = read_tables(run, ["episodes"], ["digest"]).episodes["digest"].to_pylist()
    assert digests == [bytes.fromhex(made_episode(i, usage=True).digest) for i in (0, 1, 2, 3, 7, 5)]


def test_neither_writing_nor_reading_imports_pandas(tmp_path: Path) -> None:
    """Where it is installed, pyarrow imports it on the least occasion: a second and 60 MB per worker."""
    code = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from pathlib import Path
from store_made import new_run, write_shard
from cogeval.store.checks import check_run
from cogeval.store.read import iter_journals, read_tables
run = new_run(Path({str(tmp_path)!r}))
write_shard(run, "w0-0000", range(4), usage=True)
assert read_tables(run).episodes.num_rows == 4
assert len(list(iter_journals(run))) == 4
assert check_run(run) == []
assert "pandas" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
