"""Runs made up for the reports: what `summarise` would give after a real one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from cogeval.ratings import Ladder, LadderRow, SeatEffect
from cogeval.report import AgentIdentity, FaultReason, RunSummary, SeatRows, summarise

MakeRun = Callable[..., RunSummary]

NAMES = (
    "assayer", "quack", "random", "gpt-mini v3 (temperature 0.7)", "scholar", "hoarder", "gambler",
    "mirror", "auctioneer", "pacifist", "x", "an-agent-with-quite-a-long-name-2026-11-30",
)  # fmt: skip


def seat_rows(names: Sequence[str], scores: np.ndarray, fallbacks: float = 0.0) -> SeatRows:
    """`scores` float [num_agents, num_seats_each]; episode i holds seat i of every agent."""
    num_agents, each = scores.shape
    num = num_agents * each
    below = (scores[:, None, :] > scores[None, :, :]).sum(axis=1)
    ties = (scores[:, None, :] == scores[None, :, :]).sum(axis=1) - 1
    share = (below + ties / 2) / max(num_agents - 1, 1)
    illegal = np.zeros((num_agents, each), np.int64)
    illegal[-1, : round(each * fallbacks)] = 1
    return SeatRows(
        agent=np.repeat(np.arange(num_agents), each),
        episode=np.tile(np.arange(each), num_agents),
        score=scores.ravel().astype(np.float64),
        share=share.ravel(),
        scored=np.ones(num, np.bool_),
        num_decisions=np.full(num, 10),
        num_fallbacks=illegal.ravel(),
        num_faults=2 * illegal.ravel(),
        think_s=np.linspace(0.01, 2.0, num),
        cost_usd=np.full(num, 0.001),
        tokens_in=np.full(num, 300),
        tokens_out=np.full(num, 60),
    )


def ladder(names: Sequence[str], elos: Sequence[float], half: float | None = 18.0) -> Ladder:
    order = sorted(range(len(names)), key=lambda i: -elos[i])
    rows = tuple(
        LadderRow(
            name=names[i],
            elo=elos[i],
            elo_low=None if half is None else elos[i] - half * (1 + i / 4),
            elo_high=None if half is None else elos[i] + half * (1 + i / 4),
            win_share=0.5,
            score_mean=20.0,
            num_episodes=200,
            num_seats=200,
            num_blocks=200,
            flags=("2 blocks, fewer than 5",) if half is None else (),
        )
        for i in order
    )
    effects = tuple(
        SeatEffect(s, e, None if half is None else e - 9, None if half is None else e + 9)
        for s, e in enumerate((22.0, 3.0, -6.0, -19.0))
    )
    return Ladder(
        rows=rows, seat_effects=effects, num_blocks=200, num_episodes=200, confidence=0.95, anchor=None,
        method="none" if half is None else "jackknife", warnings=(), covariance=None,
        components=(0,) * len(rows), strong_components=(0,) * len(rows), degrees=199, intransitive=0.0,
    )  # fmt: skip


@pytest.fixture
def make_run() -> MakeRun:
    """A run of `num_agents` agents; `equal`: every score alike; `half` None: no intervals."""

    def make(
        num_agents: int = 3,
        *,
        names: Sequence[str] | None = None,
        equal: bool = False,
        half: float | None = 18.0,
        fallbacks: float = 0.0,
        void: int = 0,
        reasons: Sequence[FaultReason] = (),
        warnings: Sequence[str] = (),
    ) -> RunSummary:
        names = names or NAMES[:num_agents]
        num_agents = len(names)
        rng = np.random.default_rng(7)
        centres = np.linspace(31.0, 14.0, num_agents)[:, None]
        scores = np.round(rng.normal(centres, 6.0, (num_agents, 200))).clip(0)
        if equal:
            scores[:] = 12.0
        elos = [0.0] * num_agents if equal or num_agents == 1 else list(np.linspace(160, -160, num_agents))
        return summarise(
            run_id="20261130T101500-1f3a9c-k2",
            digest="ab" * 32,
            scheduled=200 + void,
            recorded=200,
            void=void,
            agents=[AgentIdentity(name, "1", f"{i:02d}ffee" * 5) for i, name in enumerate(names)],
            seats=seat_rows(names, scores, fallbacks),
            ladder=ladder(names, elos, half),
            fault_kinds={
                "timeout": [0] * num_agents,
                "illegal": [0] * (num_agents - 1) + [round(400 * fallbacks)],
            },
            fault_reasons=reasons,
            warnings=warnings,
        )

    return make
