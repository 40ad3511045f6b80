"""Makes `store_made` importable for these tests, under a name that no other folder uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from store_made import new_run

from cogeval.store.run import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run without shards."""
    return new_run(tmp_path / "runs")
