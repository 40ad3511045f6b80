"""Makes the helpers of this folder importable, and looks after what its tests start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cogeval.agents.process.child import close_nurseries

sys.path.insert(0, str(Path(__file__).parent))

from process_stage import Stage, alive


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    assert not alive(made.mark), "a process was left behind"


@pytest.fixture(scope="session", autouse=True)
def _nurseries_end() -> Iterator[None]:
    yield
    close_nurseries()
    assert not psutil.Process().children(recursive=True), "a supervisor was left behind"
