"""Makes the helpers of this folder importable, and ends what a placed agent started."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogeval.agents.process.child import close_nurseries

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def _nurseries_end() -> Iterator[None]:
    yield
    close_nurseries()
