"""Small runs for the tests of the cluster."""

from pathlib import Path

from cogeval.config import build_experiment, build_plan, config_from_plain, config_to_yaml
from cogeval.core.record import run_digest
from cogeval.store.read import read_tables
from cogeval.store.run import RunDir, new_run_id

FAULTY = str(Path(__file__).parent / "faulty")


def plain(agents, **changes):
    """A configuration as plain JSON; `changes` are whole groups or single options of a group."""
    whole = {
        "game": {"name": "cogchemists", "rounds": 3, "talk": True, "artifacts": True},
        "pool": {"agents": agents},
        "schedule": {"design": "rotations", "blocks": 4, "replicates": 1, "seeds": None},
        "deadlines": {
            "decision_s": 5.0,
            "retry_s": 5.0,
            "episode_timeout_s": 100.0,
            "play_fraction": 0.6,
            "min_batch_spacing_s": 0.0,
            "on_fault": "baseline",
            "fallback_baseline": None,
        },
        "cluster": {"address": None, "workers": 2, "episodes_in_flight": 8, "max_attempts": 3},
        "tracking": {"enabled": False, "uri": None, "experiment": "x", "every_s": 5.0},
        "rating": {"anchor": None, "anchor_elo": 0.0, "confidence": 0.95},
        "run": {"root": "runs", "id": None},
        "store": {"shard_mb": 64.0, "seal_every_s": 60.0},
        "seed": 0,
        "agent_paths": [FAULTY],
    }
    for group, options in changes.items():
        whole[group] = {**whole.get(group, {}), **options} if isinstance(options, dict) else options
    return whole


def baselines():
    return {
        "assayer": {"kind": "baseline", "baseline": "assayer"},
        "quack": {"kind": "baseline", "baseline": "quack"},
        "random": {"kind": "random"},
    }


def new_run(root, agents=None, **changes):
    """A new run directory and its plan."""
    config = config_from_plain(plain(agents or baselines(), **changes))
    experiment = build_experiment(config)
    run = RunDir.create(root, new_run_id(experiment.digest), {"agents": []}, config_to_yaml(config))
    return run, build_plan(experiment, run.run_id, run.place.resolved().uri)


def digest(run):
    return run_digest(read_tables(run, tables=("episodes",)).episodes["digest"].to_pylist())


def column(table, name):
    return table[name].to_pylist()
