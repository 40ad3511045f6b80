"""What a run comes to, in numbers: one `AgentSummary` per agent and the ladder, from plain arrays.

Invariant: every number is computed here once, from the recorded seats, and tables, figures and tracking
only show it. It must not know of stores, files or MLflow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from cogeval.errors import InputError
from cogeval.ratings import Ladder, LadderRow, SeatEffect
from cogeval.ratings.table import FloatArray, IntArray
from cogeval.report.rows import AgentIdentity, DecisionTimes, FaultReason, SeatRows

__all__ = [
    "FALLBACK_WARNING",
    "AgentSummary",
    "RunSummary",
    "summarise",
]

FALLBACK_WARNING = 0.01
"""Share of decisions made by a fallback from which a ladder warns: the agent was not itself."""

_SCORE_POINTS = 2001  # of an agent's score distribution that are kept: enough for any figure


@dataclass(frozen=True, slots=True)
class AgentSummary:
    """One agent of a run. None marks what the data do not give (no episode, no interval, no opponent).

    Args:
        name: its name in the pool.
        version: as the agent declares it.
        fingerprint: hash of its code and parameters.
        elo: its rating, with `elo_low` and `elo_high` the ends of the interval.
        win_share: mean share over its seats, 0 .. 1.
        score_mean: over the seats that count, like `score_sd` (n - 1) and the quantiles.
        num_episodes: episodes that it sat in.
        num_seats: seats that it held.
        num_decisions: decisions that it had to make.
        num_faults: attempts with a fault.
        fault_rate: faults per decision; a retry that fails too counts, so it may exceed 1.
        fallback_share: share of its decisions that a fallback made, 0 .. 1.
        latency_p50: seconds of thinking per decision, median; `latency_p95` alike.
        cost_usd: of the whole run.
        faults: faults per kind, kinds without any left out; empty when the kinds were not looked up.
        fault_reasons: the most frequent details of each kind, most frequent kind and detail first.
        flags: what a reader must know before comparing its rating.
    """

    name: str
    version: str
    fingerprint: str
    elo: float | None
    elo_low: float | None
    elo_high: float | None
    win_share: float | None
    score_mean: float | None
    score_sd: float | None
    score_q05: float | None
    score_q25: float | None
    score_q50: float | None
    score_q75: float | None
    score_q95: float | None
    num_episodes: int
    num_seats: int
    num_decisions: int
    num_faults: int
    fault_rate: float | None
    fallback_share: float | None
    latency_p50: float | None
    latency_p95: float | None
    cost_usd: float
    tokens_in: int
    tokens_out: int
    faults: Mapping[str, int] = field(default_factory=dict)
    fault_reasons: tuple[FaultReason, ...] = ()
    flags: tuple[str, ...] = ()

    def score_quantiles(self) -> tuple[float, float, float, float, float]:
        """The quantiles at 5, 25, 50, 75 and 95 %; NaN without scores."""
        given = (self.score_q05, self.score_q25, self.score_q50, self.score_q75, self.score_q95)
        q05, q25, q50, q75, q95 = (math.nan if q is None else q for q in given)
        return q05, q25, q50, q75, q95

    def to_json(self) -> dict[str, Any]:
        """All fields as plain JSON."""
        plain = {f.name: _json(getattr(self, f.name)) for f in fields(self)}
        reasons = [
            {"kind": r.kind, "detail": r.detail, "num_attempts": r.num_attempts} for r in self.fault_reasons
        ]
        return {**plain, "faults": dict(self.faults), "fault_reasons": reasons, "flags": list(self.flags)}


@dataclass(frozen=True, slots=True, eq=False)
class RunSummary:
    """A run, recorded so far.

    Args:
        run_id: the run.
        digest: over its episode digests.
        scheduled: episodes of the schedule.
        recorded: episodes with a result.
        void: episodes given up, never scored.
        ladder: the rating; None before there is anything to rate.
        agents: in the order of the pool, which fixes their colours.
        scores: per agent, its scores in ascending order, thinned to a fixed number of evenly spaced
            quantiles when there are more; for figures only.
        warnings: what holds for the whole run, the ladder's own included.
    """

    run_id: str
    digest: str
    scheduled: int
    recorded: int
    void: int
    ladder: Ladder | None
    agents: tuple[AgentSummary, ...]
    scores: tuple[FloatArray, ...]
    warnings: tuple[str, ...] = ()

    @property
    def seat_effects(self) -> tuple[SeatEffect, ...]:
        """What each seat is worth; empty when the ladder has no such term."""
        return self.ladder.seat_effects if self.ladder else ()

    @property
    def num_faults(self) -> int:
        """Faults of all agents."""
        return sum(agent.num_faults for agent in self.agents)

    def ranked(self) -> tuple[AgentSummary, ...]:
        """The agents in ladder order, those that are not on the ladder last."""
        place = {row.name: i for i, row in enumerate(self.ladder.rows if self.ladder else ())}
        return tuple(sorted(self.agents, key=lambda agent: place.get(agent.name, len(place))))

    def to_json(self) -> dict[str, Any]:
        """The summary without the score samples, as plain JSON."""
        ladder = self.ladder
        return {
            "run_id": self.run_id,
            "digest": self.digest,
            "scheduled": self.scheduled,
            "recorded": self.recorded,
            "void": self.void,
            "faults": self.num_faults,
            "agents": [agent.to_json() for agent in self.ranked()],
            "seat_effects": [
                {f.name: _json(getattr(e, f.name)) for f in fields(e)} for e in self.seat_effects
            ],
            "rating": None
            if ladder is None
            else {
                "method": ladder.method,
                "confidence": ladder.confidence,
                "anchor": ladder.anchor,
                "num_blocks": ladder.num_blocks,
                "num_episodes": ladder.num_episodes,
                "intransitive": ladder.intransitive,
            },
            "warnings": list(self.warnings),
        }


def summarise(
    *,
    run_id: str,
    digest: str,
    scheduled: int,
    recorded: int,
    void: int,
    agents: Sequence[AgentIdentity],
    seats: SeatRows,
    ladder: Ladder | None,
    decisions: DecisionTimes | None = None,
    fault_kinds: Mapping[str, Sequence[int]] | None = None,
    fault_reasons: Sequence[FaultReason] = (),
    warnings: Sequence[str] = (),
) -> RunSummary:
    """Sums up a run.

    Args:
        run_id: the run.
        digest: over its episode digests.
        scheduled: episodes of the schedule.
        recorded: episodes with a result.
        void: episodes given up.
        agents: in the order of the pool; `seats.agent` indexes it.
        seats: the recorded seats.
        ladder: the rating of the same seats.
        decisions: think times of single decisions; without them the latencies are quantiles of the
            seats' mean think time per decision.
        fault_kinds: per kind of fault, how many each agent had, in the order of `agents`.
        fault_reasons: the most frequent details of them, in the order to show.
        warnings: of the caller; the ladder's are added.

    Raises:
        InputError: an agent index is out of range.
    """
    num = len(agents)
    wild = seats.agent[(seats.agent < 0) | (seats.agent >= num)]
    if len(wild):
        raise InputError(f"expected an agent index in 0..{num - 1}, got {int(wild[0])}")
    held = _by_agent(seats.agent, num)
    rows = {row.name: row for row in ladder.rows} if ladder else {}
    scores = [np.sort(seats.score[own[seats.scored[own]]]).astype(np.float64) for own in held]
    kinds = [_kinds(fault_kinds or {}, i) for i in range(num)]
    reasons = [tuple(r for r in fault_reasons if r.agent == i) for i in range(num)]
    return RunSummary(
        run_id=run_id,
        digest=digest,
        scheduled=scheduled,
        recorded=recorded,
        void=void,
        ladder=ladder,
        agents=tuple(
            _agent(identity, rows.get(identity.name), seats, own, score, latency, faults, why)
            for identity, own, score, latency, faults, why in zip(
                agents, held, scores, _latencies(seats, held, decisions, num), kinds, reasons, strict=True
            )
        ),
        scores=tuple(_thinned(score) for score in scores),
        warnings=(*warnings, *(ladder.warnings if ladder else ())),
    )


def _kinds(fault_kinds: Mapping[str, Sequence[int]], agent: int) -> dict[str, int]:
    """One agent's faults, kinds without any left out."""
    return {kind: int(counts[agent]) for kind, counts in fault_kinds.items() if counts[agent]}


def _by_agent(agent: IntArray, num: int) -> list[IntArray]:
    """Per agent, the positions of its entries."""
    order = np.argsort(agent, kind="stable")
    ends = np.searchsorted(agent[order], np.arange(num + 1))
    return [order[ends[i] : ends[i + 1]] for i in range(num)]


def _latencies(
    seats: SeatRows, held: Sequence[IntArray], decisions: DecisionTimes | None, num: int
) -> list[FloatArray]:
    """Per agent, seconds per decision: single decisions where known, else one mean per seat."""
    if decisions is not None:
        known = np.isfinite(decisions.think_s)
        think_s = decisions.think_s[known]
        return [think_s[own] for own in _by_agent(decisions.agent[known], num)]
    busy = [own[seats.num_decisions[own] > 0] for own in held]
    return [seats.think_s[own] / seats.num_decisions[own] for own in busy]


def _agent(
    identity: AgentIdentity,
    row: LadderRow | None,
    seats: SeatRows,
    own: IntArray,
    score: FloatArray,
    latency: FloatArray,
    faults: Mapping[str, int],
    fault_reasons: tuple[FaultReason, ...],
) -> AgentSummary:
    num_decisions = int(seats.num_decisions[own].sum())
    num_faults = int(seats.num_faults[own].sum())
    share = seats.share[own]
    share = share[np.isfinite(share)]
    q05, q25, q50, q75, q95 = _quantiles(score, (0.05, 0.25, 0.5, 0.75, 0.95))
    p50, p95 = _quantiles(latency, (0.5, 0.95))
    return AgentSummary(
        name=identity.name,
        version=identity.version,
        fingerprint=identity.fingerprint,
        elo=_finite(row.elo) if row else None,
        elo_low=_finite(row.elo_low) if row else None,
        elo_high=_finite(row.elo_high) if row else None,
        win_share=float(share.mean()) if len(share) else None,
        score_mean=float(score.mean()) if len(score) else None,
        score_sd=float(score.std(ddof=1)) if len(score) > 1 else None,
        score_q05=q05,
        score_q25=q25,
        score_q50=q50,
        score_q75=q75,
        score_q95=q95,
        num_episodes=len(np.unique(seats.episode[own])),
        num_seats=len(own),
        num_decisions=num_decisions,
        num_faults=num_faults,
        fault_rate=num_faults / num_decisions if num_decisions else None,
        fallback_share=int(seats.num_fallbacks[own].sum()) / num_decisions if num_decisions else None,
        latency_p50=p50,
        latency_p95=p95,
        cost_usd=float(seats.cost_usd[own].sum()),
        tokens_in=int(seats.tokens_in[own].sum()),
        tokens_out=int(seats.tokens_out[own].sum()),
        faults=faults,
        fault_reasons=fault_reasons,
        flags=row.flags if row else (),
    )


def _json(value: Any) -> Any:
    """The value, None for a number that JSON has no word for."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _quantiles(values: FloatArray, levels: tuple[float, ...]) -> list[float | None]:
    if not len(values):
        return [None] * len(levels)
    return [float(q) for q in np.quantile(values, levels)]


def _thinned(ascending: FloatArray) -> FloatArray:
    """The distribution in at most `_SCORE_POINTS` values, least and greatest kept."""
    num = len(ascending)
    if num <= _SCORE_POINTS:
        return ascending
    return ascending[np.linspace(0, num - 1, _SCORE_POINTS).round().astype(np.int64)]
