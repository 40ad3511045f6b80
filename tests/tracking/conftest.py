"""A small run to track: 3 agents, some of what they lack left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cogeval.ratings import Ladder, LadderRow, SeatEffect
from cogeval.report import AgentIdentity, RunSummary, SeatRows, summarise
from cogeval.tracking import RunDescription

NAMES = ("assayer", "[red]quack[/red]", "random")
SECRET = "sk-do-not-write-me-anywhere"

MakeSummary = Callable[..., RunSummary]
MakeRun = Callable[[str], RunDescription]


def _ladder(num_episodes: int) -> Ladder:
    rows = (
        LadderRow("random", 90.5, 60.0, 121.0, 0.7, 12.0, num_episodes, num_episodes, num_episodes),
        LadderRow("assayer", -10.5, -40.0, 19.0, 0.5, 10.0, num_episodes, num_episodes, num_episodes),
        LadderRow(NAMES[1], -80.0, None, None, 0.2, 8.0, num_episodes, num_episodes, num_episodes),
    )
    return Ladder(
        rows=rows, seat_effects=(SeatEffect(0, 5.0, 1.0, 9.0), SeatEffect(1, -5.0, -9.0, -1.0)),
        num_blocks=num_episodes, num_episodes=num_episodes, method="jackknife", confidence=0.95, anchor=None,
        warnings=(), covariance=None, components=(0, 0, 0), strong_components=(0, 0, 1),
        degrees=num_episodes - 1, intransitive=None,
    )  # fmt: skip


@pytest.fixture(scope="session")
def make_summary() -> MakeSummary:
    def make(run_id: str, recorded: int = 40, scheduled: int = 40) -> RunSummary:
        num = 3 * recorded
        return summarise(
            run_id=run_id,
            digest="0123456789abcdef" * 4,
            scheduled=scheduled,
            recorded=recorded,
            void=0,
            agents=[AgentIdentity(name, "2", f"{i}" * 40) for i, name in enumerate(NAMES)],
            seats=SeatRows(
                agent=np.repeat(np.arange(3), recorded),
                episode=np.tile(np.arange(recorded), 3),
                score=np.arange(num, dtype=np.float64) % 17,
                share=np.full(num, 0.5),
                scored=np.ones(num, np.bool_),
                num_decisions=np.full(num, 4),
                num_fallbacks=np.zeros(num, np.int64),
                num_faults=np.zeros(num, np.int64),
                think_s=np.full(num, 0.2),
                cost_usd=np.full(num, 0.01),
                tokens_in=np.full(num, 100),
                tokens_out=np.full(num, 20),
            ),
            ladder=_ladder(recorded),
        )

    return make


@pytest.fixture(scope="session")
def make_description() -> MakeRun:
    def make(run_id: str) -> RunDescription:
        return RunDescription(
            run_id=run_id,
            config={
                "game": {"name": "cogchemists", "rounds": 6},
                "seed": 0,
                "pool": [{"name": "assayer", "api_key": SECRET}],
                "llm": {"api_key_env": "OPENAI_API_KEY", "password": SECRET, "max_tokens": 512},
                "tracking": {"uri": f"postgresql://me:{SECRET}@host/db"},
                "notes": "x" * 10_000,
            },
            data_uri=f"s3://me:{SECRET}@bucket/runs/{run_id}/shards",
            tags={"game": "cogchemists", "code_version": "0.1.0"},
            agent_parameters={"assayer": {"depth": 3, "token": SECRET}},
            created_ms=1_790_000_000_000,
        )

    return make
