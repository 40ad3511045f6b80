"""The tables of a run for a terminal or a text file: ladder, scores, faults, effort, seats.

Invariant: a number that is missing is shown as "-" and the notes under the table say why. It must not
compute anything but differences of layout: numbers come from `cogeval.report.summary` and the ratings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from cogeval.ratings import Comparison, Ladder, LadderRow
from cogeval.ratings.compare import Effect
from cogeval.report.cells import NONE, count, extent, number, percent, seconds, signed, span
from cogeval.report.layout import Column, Grid, IntervalBar, Note, OneLine, grid, literal, with_notes
from cogeval.report.summary import FALLBACK_WARNING, AgentSummary, RunSummary

__all__ = [
    "comparison_table",
    "effort_table",
    "fault_table",
    "ladder_table",
    "score_table",
    "seat_table",
    "seat_tables",
]

_AGENT = Column("agent", numeric=False, min_width=8)
_NOTE_DETAIL = 120  # characters of a fault's detail in a note under a table


def ladder_table(summary: RunSummary) -> Group:
    """The ladder: ratings with their intervals, results, and how much of it was the agents' own play."""
    ladder, agents = summary.ladder, summary.ranked()
    rated = {row.name: row for row in ladder.rows} if ladder else {}
    start, stop = IntervalBar.axis(v for a in agents for v in (a.elo, a.elo_low, a.elo_high))
    decimals = _decimals(agents, spare=True)
    level = f"{ladder.confidence:.0%}".replace("%", " %") if ladder else "95 %"
    columns = [
        Column("#"), _AGENT, Column("Elo"), Column(f"{level}\ninterval"), Column("", numeric=False, drop=6),
        Column("share", drop=1), Column("score\nmean", drop=3), Column("score\n5-95 %", drop=4),
        Column("epi-\nsodes", drop=5), Column("fall-\nback", drop=2),
    ]  # fmt: skip
    rows: list[list[RenderableType]] = []
    for place, agent in _places(summary):
        if place == 1 and rows:  # no games connect it with those above
            rows.append([Text()] * len(columns))
        bar: RenderableType = Text()
        if agent.elo is not None:
            bar = IntervalBar(agent.elo, agent.elo_low, agent.elo_high, start, stop)
        rows.append(
            [
                Text(NONE if place is None else str(place)),
                literal(agent.name, "bold"),
                Text(signed(agent.elo)),
                Text(span(agent.elo_low, agent.elo_high)),
                bar,
                Text(NONE if agent.win_share is None else f"{agent.win_share:.3f}"),
                Text(number(agent.score_mean, _decimals(agents))),
                Text(extent(agent.score_q05, agent.score_q95, decimals)),
                Text(count(agent.num_episodes)),
                _fallback(agent.fallback_share),
            ]
        )
    title = f"Ladder of {summary.run_id}: {summary.recorded:,} of {summary.scheduled:,} episodes"
    return with_notes(title, grid(columns, rows), _ladder_notes(summary, rated))


def _places(summary: RunSummary) -> list[tuple[int | None, AgentSummary]]:
    """The agents with their ranks, which count within each group that games connect; None: not rated."""
    if summary.ladder is None:
        return [(None, agent) for agent in summary.ranked()]
    group = {row.name: c for row, c in zip(summary.ladder.rows, summary.ladder.components, strict=True)}
    agents = sorted(summary.ranked(), key=lambda agent: group.get(agent.name, len(group)))
    num_above: Counter[int] = Counter()
    places: list[tuple[int | None, AgentSummary]] = []
    for agent in agents:
        if agent.name in group:
            num_above[group[agent.name]] += 1
        places.append((num_above[group[agent.name]] if agent.name in group else None, agent))
    return places


def score_table(summary: RunSummary) -> Group:
    """How each agent's scores are distributed, in ladder order."""
    agents = summary.ranked()
    decimals = _decimals(agents)
    columns = [_AGENT, Column("seats", drop=4), Column("mean"), Column("sd", drop=2)]
    drops = {5: 1, 25: 3, 50: 0, 75: 3, 95: 1}
    columns += [Column(f"{level} %", drop=drop) for level, drop in drops.items()]
    rows = []
    for a in agents:
        quantiles = (a.score_q05, a.score_q25, a.score_q50, a.score_q75, a.score_q95)
        numbers = [number(value, decimals) for value in (a.score_mean, a.score_sd, *quantiles)]
        rows.append([literal(a.name, "bold"), Text(count(a.num_seats)), *(_wide(n) for n in numbers)])
    notes = [Note("quantiles of the game's score over all seats that an agent held, forfeits left out")]
    return with_notes("Scores", grid(columns, rows), notes)


def fault_table(summary: RunSummary) -> Group:
    """Faults per agent and kind, the share of decisions that a fallback made, and what went wrong."""
    agents = summary.ranked()
    kinds = sorted({kind for agent in agents for kind in agent.faults})
    columns = [_AGENT, Column("decisions", drop=1), *(Column(kind, drop=2) for kind in kinds)]
    columns += [Column("faults"), Column("per\ndecision", drop=3), Column("fallback")]
    rows = [
        [
            literal(a.name, "bold"),
            Text(count(a.num_decisions)),
            *(_wide(count(a.faults.get(kind, 0))) for kind in kinds),
            _wide(count(a.num_faults)),
            _wide(percent(a.fault_rate)),
            _fallback(a.fallback_share),
        ]
        for a in agents
    ]
    notes = _fallback_notes(agents)
    if not summary.num_faults:
        notes.append(Note("no faults"))
    if summary.void:
        notes.append(_void_note(summary))
    table = with_notes("Faults", grid(columns, rows), notes)
    if not any(agent.fault_reasons for agent in agents):
        return table
    return Group(*table.renderables, Text(), _reason_table(agents))


def _reason_table(agents: Sequence[AgentSummary]) -> Grid:
    """The most frequent words of the faults, one line each."""
    columns = [
        _AGENT,
        Column("fault", numeric=False),
        Column("times"),
        Column("most frequent", numeric=False),
    ]
    return grid(
        columns,
        [
            [literal(a.name, "bold"), Text(r.kind), _wide(count(r.num_attempts)), OneLine(" " + r.detail)]
            for a in agents
            for r in a.fault_reasons
        ],
    )


def effort_table(summary: RunSummary) -> Group:
    """What each agent's decisions took: thinking time, tokens, money."""
    columns = [
        _AGENT, Column("decisions", drop=4), Column("think s\nmedian"), Column("think s\n95 %", drop=3),
        Column("tokens\nin", drop=2), Column("tokens\nout", drop=1), Column("cost\nUSD"),
    ]  # fmt: skip
    rows = [
        [
            literal(a.name, "bold"),
            Text(count(a.num_decisions)),
            _wide(seconds(a.latency_p50)),
            _wide(seconds(a.latency_p95)),
            _wide(count(a.tokens_in)),
            _wide(count(a.tokens_out)),
            _wide(f"{a.cost_usd:,.2f}"),
        ]
        for a in summary.ranked()
    ]
    return with_notes("Effort", grid(columns, rows), ())


def seat_tables(ladder: Ladder) -> list[Group]:
    """The table of seats, where it can say something: an agent alone in its pool is its own opponent."""
    return [seat_table(ladder)] if ladder.seat_effects or len(ladder.rows) > 1 else []


def seat_table(ladder: Ladder) -> Group:
    """What each seat is worth against the mean seat, whoever sits there."""
    effects = ladder.seat_effects
    start, stop = IntervalBar.axis(v for e in effects for v in (e.elo, e.elo_low, e.elo_high))
    columns = [Column("seat"), Column("Elo"), Column(f"{100 * ladder.confidence:g} % interval")]
    columns.append(Column("", numeric=False, drop=1))
    rows: list[list[RenderableType]] = [
        [
            Text(str(e.seat)),
            _wide(signed(e.elo)),
            _wide(span(e.elo_low, e.elo_high)),
            IntervalBar(e.elo, e.elo_low, e.elo_high, start, stop),
        ]
        for e in effects
    ]
    notes = [Note("Elo of a seat against the mean seat; the ladder's ratings are adjusted for it")]
    if not effects:
        notes = [Note("no seat effects: the episodes do not tell seats and agents apart; more blocks may")]
    elif any(e.elo_low is None for e in effects):
        notes += [Note(text) for text in ladder.warnings]
    return with_notes("Seat effects", grid(columns, rows), notes)


def comparison_table(comparison: Comparison) -> Group:
    """How B did beside A: one value per block, their mean and its t interval."""
    a, b, share, score = comparison.a, comparison.b, comparison.share, comparison.score
    level = f"{100 * comparison.confidence:g} %"
    columns = [
        Column("B less A", numeric=False), Column("mean"), Column(f"{level} t interval"),
        Column("sd of\nblocks", drop=4), Column("effect\ndz", drop=3), Column("blocks\nfor B", drop=2),
        Column("blocks\nfor A", drop=2), Column("blocks", drop=1),
    ]  # fmt: skip
    rows: list[list[RenderableType]] = [_effect_row("share", share), _effect_row("score", score)]
    if comparison.elo is not None:
        bounds = NONE
        if share.low is not None and share.high is not None:
            low = "-inf" if comparison.elo_low is None else signed(comparison.elo_low)
            high = "+inf" if comparison.elo_high is None else signed(comparison.elo_high)
            bounds = f"{low}..{high}"
        rows.append([Text("Elo"), _wide(signed(comparison.elo)), _wide(bounds), *[Text()] * 5])
    how = "in the same episodes" if comparison.estimand == "head_to_head" else "on the same blocks, apart"
    notes = [Note(f"A is {a}, B is {b}; they met {how}; each block counts once")]
    return with_notes(f"{b} against {a}", grid(columns, rows), notes + [Note(n) for n in comparison.notes])


def _effect_row(name: str, effect: Effect) -> list[RenderableType]:
    def figure(value: float | None) -> str:
        return NONE if value is None else f"{value:+.3g}"

    bounds = NONE if effect.low is None else f"{figure(effect.low)}..{figure(effect.high)}"
    deviation = NONE if effect.deviation is None else f"{effect.deviation:.3g}"
    numbers = (figure(effect.mean), bounds, deviation, NONE if effect.dz is None else f"{effect.dz:+.2f}")
    counts = (effect.num_above, effect.num_below, effect.num_blocks)
    return [Text(name), *(_wide(n) for n in numbers), *(_wide(count(n)) for n in counts)]


def _ladder_notes(summary: RunSummary, rated: dict[str, LadderRow]) -> list[Note]:
    """What a reader must know: how it was computed, why an interval is missing, what to doubt."""
    ladder, agents = summary.ladder, summary.ranked()
    notes = _fallback_notes(agents, reasons=True)  # first: what they are about is no play of the agent's
    if ladder is not None:
        zero = f"anchor {ladder.anchor}" if ladder.anchor else "0 is the mean agent"
        how = "no intervals" if ladder.method == "none" else f"intervals by {ladder.method} over blocks"
        notes.append(Note(f"{_blocks(ladder.num_blocks)}, {how}, {zero}"))
    else:
        notes.append(Note("no ladder: no episode is recorded yet"))
    if ladder is not None:
        notes += _row_notes(ladder)
    absent = [agent.name for agent in agents if ladder is not None and agent.name not in rated]
    if absent:
        notes.append(Note(f"not rated, no episode recorded: {', '.join(absent)}"))
    if summary.void:
        notes.append(_void_note(summary))
    return notes + [Note(text, warning=True) for text in summary.warnings]


def _row_notes(ladder: Ladder) -> list[Note]:
    """Why intervals are missing, agents with one reason together, and what else is flagged."""
    reasons: dict[str, list[str]] = {}
    for row in ladder.rows:
        missing = row.elo_low is None and row.name != ladder.anchor
        # Where nobody has an interval, the ladder itself says why, once.
        unsaid = "the data do not support one" if missing and ladder.method != "none" else ""
        reason = "; ".join(row.flags) or unsaid
        if reason:
            told = f"no interval: {reason}" if missing and not reason.startswith("no interval") else reason
            reasons.setdefault(told, []).append(row.name)
    notes = [Note(f"{', '.join(names)}: {reason}") for reason, names in reasons.items()]
    return notes + [Note(text) for row in ladder.rows for text in _bounds(row)]


def _blocks(num: int) -> str:
    return "1 block" if num == 1 else f"{num:,} blocks"


def _bounds(row: LadderRow) -> list[str]:
    return [
        f"{row.name} is {bound.side} {signed(bound.elo)} Elo against {', '.join(bound.versus)} "
        f"({_blocks(bound.num_blocks)})"
        for bound in row.bounds
        if bound.elo is not None
    ]


def _fallback_notes(agents: Sequence[AgentSummary], *, reasons: bool = False) -> list[Note]:
    """Who was not itself; on demand with the most frequent reason, where nothing else tells it."""
    notes = []
    for agent in agents:
        if agent.fallback_share is None or agent.fallback_share <= FALLBACK_WARNING:
            continue
        text = f"{agent.name} left {percent(agent.fallback_share)} of its decisions to the fallback: "
        own = "none of its row is" if agent.fallback_share >= 1 else "its row is not all"
        text += f"{own} its own play"
        if reasons and agent.fault_reasons:
            first = agent.fault_reasons[0]
            text += f"; most often {first.kind}: {OneLine(first.detail).within(_NOTE_DETAIL)}"
        notes.append(Note(text, warning=True))
    return notes


def _void_note(summary: RunSummary) -> Note:
    return Note(f"{summary.void:,} episodes are void: given up after our own failures, not scored", True)


def _fallback(share: float | None) -> Text:
    if share is not None and share > FALLBACK_WARNING:
        return Text(percent(share) + "!", style="bold yellow")
    return Text(percent(share) + " ")  # keeps the digits in line with those that carry a mark


def _wide(text: str) -> Text:
    """A number in a table with room to spare: two spaces from its neighbour."""
    return Text(" " + text)


def _decimals(agents: Sequence[AgentSummary], spare: bool = False) -> int:
    """Decimals that scores of this size need; one less where space is short."""
    known = [abs(v) for a in agents for v in (a.score_q05, a.score_q95, a.score_mean) if v is not None]
    top = max(known, default=0.0)
    decimals = 0 if top >= 1000 else 1 if top >= 10 else 2 if top >= 1 else 3
    return max(decimals - spare, 0)
