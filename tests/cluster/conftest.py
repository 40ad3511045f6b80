"""Makes the helpers of this folder importable, here and in workers; and one Ray for a whole module."""

import sys
from pathlib import Path

import pytest

from cogeval.cluster.connection import connected
from cogeval.cluster.plan import ClusterOptions

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def own_ray():
    """Two workers' Ray: starting it takes seconds."""
    with connected(ClusterOptions(workers=2)):
        yield
