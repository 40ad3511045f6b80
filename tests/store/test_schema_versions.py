"""Runs of schema version 1, which had no column for stderr, are read and recovered."""

from __future__ import annotations

import pyarrow as pa
import pytest
from store_made import add, new_writer, write_shard

from cogeval.store import batches, recover, schema, write
from cogeval.store.attempts import RecordedEpisode, iter_recorded
from cogeval.store.read import read_tables
from cogeval.store.run import RunDir
from cogeval.store.schema import DECISIONS, SCHEMAS, conformed
from cogeval.store.shards import check_schema_version

BEFORE = pa.schema([field for field in DECISIONS if field.name != "stderr"], metadata=DECISIONS.metadata)


@pytest.fixture
def old_writer(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Writes decisions as version 1 did, until it is undone."""
    made = batches._Columns._decisions_batch

    def without_stderr(self: object, attempts: object) -> object:
        rows = made(self, attempts)
        return pa.RecordBatch.from_arrays(rows.columns[:-1], schema=BEFORE)

    monkeypatch.setattr(batches._Columns, "_decisions_batch", without_stderr)
    monkeypatch.setattr(write, "SCHEMAS", {**SCHEMAS, "decisions": BEFORE})
    return monkeypatch


def test_old_and_new_shards_of_a_run_are_read_together(run: RunDir, old_writer: pytest.MonkeyPatch) -> None:
    write_shard(run, "w0-0000", range(6))
    old_writer.undo()
    write_shard(run, "w0-0001", range(6, 9))
    tables = read_tables(run)
    assert not tables.damaged
    assert tables.decisions.schema == DECISIONS
    assert tables.decisions["stderr"].null_count == tables.decisions.num_rows
    recorded = list(iter_recorded(run, lambda action: action))
    assert len(recorded) == 9
    assert all(isinstance(each, RecordedEpisode) and each.damage is None for each in recorded)


def test_an_open_shard_of_an_old_worker_is_recovered(run: RunDir, old_writer: pytest.MonkeyPatch) -> None:
    writer = new_writer(run)
    for index in range(4):
        add(writer, index)
    writer.flush()
    writer.close()
    old_writer.undo()
    (sealed,) = recover.recover(run.path)
    run.commit(sealed, sealed.indexes)
    assert read_tables(run).decisions["stderr"].null_count == read_tables(run).decisions.num_rows


def test_both_versions_are_read_and_no_others() -> None:
    for version in (1, 2):
        check_schema_version(version, "here")
    for version in (True, 1.0, 3):
        with pytest.raises(Exception, match="expected schema version 2"):
            check_schema_version(version, "here")


def test_a_column_that_may_not_be_null_must_be_there() -> None:
    rows = pa.table({"phase": pa.array([1], pa.int32())})
    with pytest.raises(ValueError, match="has no column index"):
        conformed(rows, DECISIONS)
    assert schema.SCHEMA_VERSION == 2
