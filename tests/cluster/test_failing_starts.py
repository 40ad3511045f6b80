"""Workers that die before they can play: when that ends a run, and when it is a node's affair."""

from types import SimpleNamespace

import pytest
from ray.exceptions import RayActorError

from cogeval.cluster.driver import _START_ATTEMPTS, _Driver
from cogeval.cluster.grounds import Grounds

NEVER_RAN = RayActorError(error_msg="The actor never ran - it was cancelled before it started running.")
DIED = RayActorError(error_msg="The actor died: no module named cogeval.cluster")


class Starting(_Driver):
    """A driver of workers that only start, and die."""

    def __init__(self, *, num_ready):
        self.crew = [SimpleNamespace(ready=n < num_ready) for n in range(num_ready + 1)]
        self.grounds = Grounds(1)
        self.line = SimpleNamespace(look=lambda: False)  # nobody says on which node they were
        self.fatal = None
        self.num_unready = self.num_lost = 0

    def lose(self, worker, error):
        self.num_lost += 1


@pytest.mark.parametrize(("error", "num_ready"), [(DIED, 0), (DIED, 1), (NEVER_RAN, 0)])
def test_a_few_in_a_row_end_the_run_with_the_reason(error, num_ready):
    driver = Starting(num_ready=num_ready)
    for number in range(_START_ATTEMPTS):
        assert driver.fatal is None, number
        driver.lose_unready(SimpleNamespace(id="w", actor=None), error)
    assert str(error) in driver.fatal


def test_mishaps_beside_workers_that_play_end_nothing():
    driver = Starting(num_ready=1)
    for _ in range(100):
        driver.lose_unready(SimpleNamespace(id="w", actor=None), NEVER_RAN)
    assert driver.fatal is None
    assert driver.num_lost == 100
