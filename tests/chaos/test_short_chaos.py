"""The short form of `make chaos`: processes only, on one node, one schedule written by hand."""

import asyncio

import pytest
from chaos_cluster import Machines
from chaos_run import Ordeal, Scene
from chaos_schedule import ENDINGS, NODES, PROCESSES, SEATS, Step, Stretch, draw_schedule

from cogeval.cli.settings import config_of
from cogeval.config import build_experiment, build_plan
from cogeval.core.episode import play
from cogeval.core.record import run_digest

STRETCHES = (
    Stretch(
        (Step(0.1, "kill worker", 1), Step(0.2, "kill worker at a touch", 8)),
        Step(0.4, "kill driver at a seal", 0),
    ),
    Stretch((), Step(0.4, "kill driver at a touch", 11)),  # in the middle of taking stock
    Stretch((Step(0.6, "kill worker at a seal", 0), Step(0.8, "kill all workers", 0)), None),
)


def played_in_one_process(run):
    """The digest of the same schedule without driver, workers or store."""
    plan = build_plan(build_experiment(config_of(run, [])), run.run_id, str(run.path))
    plays = [
        play(
            plan.game,
            slot.seed,
            plan.seats(slot.lineup),
            fallback=plan.fallback,
            deadlines=plan.deadlines,
            replicate=slot.replicate,
        )
        for slot in plan.schedule
    ]

    async def gathered():
        return await asyncio.gather(*plays)

    return run_digest([bytes.fromhex(episode.digest) for episode in asyncio.run(gathered())])


@pytest.mark.cluster
def test_kill_9_of_workers_and_driver_at_any_moment_loses_and_doubles_no_episode(tmp_path):
    with Machines(num_nodes=1, head_cpus=2) as machines:
        ordeal = Ordeal(Scene(machines, tmp_path, num_episodes=150, decision_s=0.04), seed=0)
        report = ordeal.go(STRETCHES)
    assert report.problems == []
    done = " ".join(report.actions)
    assert all(step.action in done for stretch in STRETCHES for step in stretch.steps)
    assert report.num_resumes >= 2
    assert report.digest == played_in_one_process(ordeal.run_dir())


def test_a_seed_means_one_schedule():
    drawn = [draw_schedule(seed) for seed in range(50)]
    assert drawn == [draw_schedule(seed) for seed in range(50)]
    assert len(set(drawn)) == 50


def test_fifty_seeds_draw_every_action():
    schedules = [draw_schedule(seed, seats=True) for seed in range(50)]
    drawn = {step.action for stretches in schedules for stretch in stretches for step in stretch.actions}
    assert drawn == {*PROCESSES, *NODES, *SEATS, *ENDINGS}
    assert all(any(stretch.actions for stretch in stretches) for stretches in schedules)
    assert all(stretches[-1].ending is None for stretches in schedules)
