"""Whole machines: a node that is lost, one with another cogeval, and the head of the cluster itself."""

import os
import subprocess
import sys
import time

import pytest
from chaos_cluster import Machines
from chaos_run import Ordeal, Scene, cogeval
from chaos_schedule import Step, Stretch
from test_short_chaos import played_in_one_process

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def machines():
    with Machines(num_nodes=2) as started:
        yield started


def test_a_node_that_is_lost_in_mid_run_costs_no_episode(machines, tmp_path):
    ordeal = Ordeal(Scene(machines, tmp_path, num_episodes=100, decision_s=0.05), seed=0)
    report = ordeal.go((Stretch((Step(0.2, "kill node", 0),), None),))
    assert report.problems == []
    assert report.actions == ["kill node (20%)"]
    assert report.num_resumes == 0
    assert report.digest == played_in_one_process(ordeal.run_dir())


def test_a_node_with_another_cogeval_is_refused_and_both_versions_are_named(machines, tmp_path):
    (tmp_path / "cogeval").mkdir()
    (tmp_path / "cogeval" / "__init__.py").write_text('__version__ = "0.0.7"\n')
    machines.add_node(env_vars={"PYTHONPATH": str(tmp_path)})
    try:
        words = ["run", f"run.root={tmp_path}/runs", f"cluster.address={machines.address}", "tracking=off"]
        done = subprocess.run(  # not in a checkout, which the node would import from
            [sys.executable, "-m", "cogeval", *words],
            capture_output=True, text=True, check=False, timeout=250, cwd=tmp_path.parent,
        )  # fmt: skip
    finally:
        machines.kill_node(-1)
    assert done.returncode == 2
    assert "runs cogeval 0.0.7, the driver " in done.stderr.splitlines()[-1]
    assert list((tmp_path / "runs").iterdir()) == []  # nothing was begun


def test_a_cluster_that_asks_for_a_token_is_said_to_do_so(machines, tmp_path):
    words = ["run", f"run.root={tmp_path}/runs", f"cluster.address={machines.address}", "tracking=off"]
    env = {**os.environ, "HOME": str(tmp_path), "RAY_AUTH_MODE": "token"}
    env.pop("RAY_AUTH_TOKEN", None)
    done = subprocess.run(
        [sys.executable, "-m", "cogeval", *words],
        capture_output=True, text=True, check=False, timeout=120, env=env,
    )  # fmt: skip
    assert done.returncode == 2
    assert "RAY_AUTH_TOKEN" in done.stderr.splitlines()[-1]
    assert "does not let this process in" in done.stderr.splitlines()[-1]


def test_without_its_head_a_run_says_so_in_seconds_and_goes_on_elsewhere(machines, tmp_path):
    ordeal = Ordeal(Scene(machines, tmp_path, num_episodes=100, decision_s=0.05), seed=0)
    ordeal.root.mkdir()
    ordeal.start(None)
    assert ordeal.wait_for(0.2)
    began = time.monotonic()
    machines.kill_head()
    assert ordeal.driver.wait(60) == 1
    assert time.monotonic() - began < 30
    assert "has ended" in ordeal.last_words()
    assert "cogeval resume " in ordeal.last_words()
    resumed = cogeval("resume", "latest", "--json", f"run.root={ordeal.root}", "cluster.address=null")
    assert resumed["complete"]
    assert 0 < resumed["played"] <= 85  # what was flushed was kept
    ordeal.prove()
    assert ordeal.report.problems == []
    assert ordeal.report.digest == played_in_one_process(ordeal.run_dir())
