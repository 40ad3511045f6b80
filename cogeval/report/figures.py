"""Figures of a run: ladder, score distributions, seat effects.

Invariant: an agent has one colour, line and marker in every figure, given by its place in the pool; no
state of `pyplot` is touched, so that figures can be drawn anywhere. It must not know where they go.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from cogeval.ratings.table import FloatArray
from cogeval.report.layout import escaped
from cogeval.report.summary import AgentSummary, RunSummary

__all__ = ["agent_figure", "ladder_figure", "save", "score_figure", "seat_figure"]

# Okabe and Ito's palette, told apart with every common colour blindness; yellow is left out, since it
# vanishes on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_LINES = ("-", "--", ":", "-.")  # one per round through the colours
_MARKERS = ("o", "s", "^", "D")

_WIDTH = 7.0  # inches
_DPI = 200  # a page at rest; where a viewer shows pixels one to one (MLflow), half of it
_INK = "#333333"
_FAINT = "#BBBBBB"
_LABEL_CHARS = 22  # of a name on one line of an axis; two lines at most
_LEGEND_CHARS = 30


@dataclass(frozen=True, slots=True)
class _Look:
    colour: str
    line: str
    marker: str


def ladder_figure(summary: RunSummary) -> Figure:
    """Ratings with their intervals, the best on top."""
    looks = _looks(summary)
    agents = [agent for agent in summary.ranked() if agent.elo is not None]
    figure, axes = _canvas(1.25 + 0.4 * max(len(agents), 2))
    if not agents:
        return _empty(figure, axes, "nothing to rate yet")
    axes.axvline(0.0, color=_INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    anchor = summary.ladder.anchor if summary.ladder else None
    hollow = {agent.name for agent in agents if agent.elo_low is None and agent.name != anchor}
    for place, agent in enumerate(agents):
        assert agent.elo is not None
        look = looks[agent.name]
        if agent.elo_low is not None and agent.elo_high is not None:
            axes.plot((agent.elo_low, agent.elo_high), (place, place), color=look.colour, linewidth=2.2)
        # A hollow dot has no interval: it must not look like a certain one.
        face = "white" if agent.name in hollow else look.colour
        axes.plot(
            agent.elo, place, marker=look.marker, color=look.colour, markersize=7, markerfacecolor=face,
            markeredgewidth=1.5, zorder=3,
        )  # fmt: skip
    ends = [v for a in agents for v in (a.elo, a.elo_low, a.elo_high) if v is not None]
    _span(axes, [*ends, 0.0], least=20.0)
    _names(axes, [agent.name for agent in agents])
    level = f"{100 * summary.ladder.confidence:g} % interval" if summary.ladder else ""
    axes.set_xlabel(f"Elo, with {level}" + (" (hollow: none)" if hollow else ""))
    _title(axes, "Ladder", f"{summary.recorded:,} episodes")
    return figure


def score_figure(summary: RunSummary) -> Figure:
    """Score distributions: a histogram per agent with its quantiles, and all of them cumulated."""
    looks = _looks(summary)
    shown = _with_scores(summary)
    rows = 0.44 * max(len(shown), 2) + 0.5
    figure = _figure(rows + 3.3 + 0.11 * len(shown))
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(rows, 2.8))
    for axes in (top, bottom):
        _plain(axes)
    if not shown:
        bottom.set_visible(False)
        return _empty(figure, top, "no scores yet")
    edges = _edges([scores for _, scores in shown])
    for place, (agent, scores) in enumerate(shown):
        _ridge(top, agent, scores, edges, place, looks[agent.name])
    _names(top, [agent.name for agent, _ in shown], first=-0.85, last=len(shown) - 0.6)
    top.tick_params(labelbottom=True)
    _title(top, "Scores", "bar: middle half, thin line: 5-95 %, mark: median")
    for agent, scores in shown:
        steps = np.concatenate(([edges[0]], scores, [edges[-1]]))
        heights = np.concatenate(([0.0], np.arange(1, len(scores) + 1) / len(scores), [1.0]))
        look = looks[agent.name]
        bottom.step(
            steps, heights, where="post", color=look.colour, linestyle=look.line, linewidth=1.6,
            label=_short(agent.name, _LEGEND_CHARS),
        )  # fmt: skip
    bottom.set_xlim(edges[0], edges[-1])
    bottom.set_ylim(0.0, 1.02)
    bottom.grid(axis="y", color=_FAINT, linewidth=0.5)
    bottom.set_xlabel("score")
    bottom.set_ylabel("share of seats\nwith at most this score")
    _legend(figure)
    return figure


def agent_figure(summary: RunSummary, name: str) -> Figure:
    """One agent's scores, on the axis of the whole run so that agents can be held side by side.

    Args:
        summary: the run.
        name: the agent.
    """
    looks = _looks(summary)
    figure, axes = _canvas(3.2)
    shown = _with_scores(summary)
    found = [(agent, scores) for agent, scores in shown if agent.name == name]
    if not found:
        return _empty(figure, axes, "no scores yet")
    (agent, scores), edges = found[0], _edges([scores for _, scores in shown])
    heights = _histogram(scores, edges)
    axes.stairs(heights, edges, color=looks[name].colour, fill=True, alpha=0.35)
    axes.stairs(heights, edges, color=looks[name].colour, linewidth=1.4)
    q05, _, q50, _, q95 = agent.score_quantiles()
    for value, line in ((q05, ":"), (q50, "-"), (q95, ":")):
        axes.axvline(value, color=_INK, linewidth=0.9, linestyle=line)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0.0, max(float(heights.max()) * 1.08, 1e-9))
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    axes.set_xlabel(
        f"score of {agent.num_seats:,} seats, mean {agent.score_mean:,.4g} "
        "(solid line: median; dotted: 5 % and 95 %)"
    )
    axes.set_ylabel("share of seats")
    _title(axes, _short(name, 48), "")
    return figure


def seat_figure(summary: RunSummary) -> Figure:
    """What each seat is worth against the mean seat, with intervals."""
    effects = summary.seat_effects
    figure, axes = _canvas(1.25 + 0.4 * max(len(effects), 2))
    if not effects:
        return _empty(figure, axes, "no seat effects: the ladder was fitted without them")
    axes.axvline(0.0, color=_INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    for place, effect in enumerate(effects):
        if effect.elo_low is not None and effect.elo_high is not None:
            axes.plot((effect.elo_low, effect.elo_high), (place, place), color=_INK, linewidth=2.2)
        face = _INK if effect.elo_low is not None else "white"
        axes.plot(effect.elo, place, "o", color=_INK, markersize=7, markerfacecolor=face, zorder=3)
    ends = [v for e in effects for v in (e.elo, e.elo_low, e.elo_high) if v is not None]
    _span(axes, [*ends, 0.0], least=20.0)
    _names(axes, [f"seat {effect.seat}" for effect in effects])
    axes.set_xlabel("Elo against the mean seat")
    _title(axes, "Seat effects", "what a seat is worth, whoever sits there")
    return figure


def save(figure: Figure, path: Path, dpi: int = _DPI) -> None:
    """Writes a figure as PNG.

    Args:
        figure: one of this module's.
        path: the file.
        dpi: pixels per inch; a figure is 7 inches wide.
    """
    with warnings.catch_warnings():
        # A name in a script that the font lacks shows as boxes; that is no reason to fail or to chatter.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(path, dpi=dpi, format="png")


def _looks(summary: RunSummary) -> dict[str, _Look]:
    """The look of every agent, by its place in the pool."""
    looks = {}
    for i, agent in enumerate(summary.agents):
        lap, colour = divmod(i, len(_COLOURS))
        looks[agent.name] = _Look(_COLOURS[colour], _LINES[lap % len(_LINES)], _MARKERS[lap % len(_MARKERS)])
    return looks


def _with_scores(summary: RunSummary) -> list[tuple[AgentSummary, FloatArray]]:
    """The agents that have scores, in ladder order."""
    scores = {a.name: s for a, s in zip(summary.agents, summary.scores, strict=True)}
    return [(agent, scores[agent.name]) for agent in summary.ranked() if len(scores[agent.name])]


def _canvas(height: float) -> tuple[Figure, Axes]:
    figure = _figure(height)
    axes = figure.subplots()
    _plain(axes)
    return figure, axes


def _figure(height: float) -> Figure:
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    figure = Figure(figsize=(_WIDTH, height), dpi=_DPI, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_FAINT)
    axes.tick_params(colors=_INK, labelsize=10)
    axes.xaxis.label.set_color(_INK)
    axes.yaxis.label.set_color(_INK)
    axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))


def _empty(figure: Figure, axes: Axes, text: str) -> Figure:
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", color=_INK, transform=axes.transAxes)
    return figure


def _title(axes: Axes, left: str, right: str) -> None:
    axes.set_title(left, loc="left", fontsize=12, fontweight="bold", color=_INK, parse_math=False)
    axes.set_title(right, loc="right", fontsize=9, color=_INK, parse_math=False)


def _names(axes: Axes, names: Sequence[str], first: float = -0.6, last: float | None = None) -> None:
    """Names down the left side, the first on top."""
    axes.set_yticks(range(len(names)), [_label(name) for name in names], parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(len(names) - 0.4 if last is None else last, first)
    axes.grid(axis="x", color=_FAINT, linewidth=0.5)
    axes.set_axisbelow(True)


def _label(name: str) -> str:
    lines = textwrap.wrap(escaped(name), _LABEL_CHARS)
    if len(lines) > 2:
        lines = [lines[0], lines[1][: _LABEL_CHARS - 1] + "…"]
    return "\n".join(lines)


def _short(name: str, chars: int) -> str:
    text = escaped(name)
    return text if len(text) <= chars else text[: chars - 1] + "…"


def _span(axes: Axes, values: Sequence[float], least: float) -> None:
    """Limits that hold the values with room around them, never narrower than `least` on a side."""
    room = max(0.06 * (max(values) - min(values)), least / 4)
    axes.set_xlim(min(*values, -least / 2) - room, max(*values, least / 2) + room)


def _edges(samples: Sequence[FloatArray]) -> FloatArray:
    """Bins for all agents: one per whole score where scores are whole and few, else about 40."""
    low = min(float(scores[0]) for scores in samples)
    high = max(float(scores[-1]) for scores in samples)
    whole = all(bool(np.all(scores == np.round(scores))) for scores in samples)
    if high - low < (4.0 if whole else 1e-9):  # (nearly) all alike: bars, not a wall
        low, high = low - 2.0, high + 2.0
    if whole:
        step = max(1.0, float(np.ceil((high - low + 1) / 45)))
        num = int(np.floor((high - low) / step)) + 1
        return np.asarray(low - 0.5 + step * np.arange(num + 1), dtype=np.float64)
    return np.asarray(np.linspace(low, high, 41), dtype=np.float64)


def _histogram(scores: FloatArray, edges: FloatArray) -> FloatArray:
    """Shares of the sample per bin; they sum to 1."""
    counts, _ = np.histogram(scores, edges)
    return np.asarray(counts / len(scores), dtype=np.float64)


def _ridge(
    axes: Axes, agent: AgentSummary, scores: FloatArray, edges: FloatArray, place: int, look: _Look
) -> None:
    """A histogram standing on its row, and the quantiles below it."""
    heights = _histogram(scores, edges)
    tops = place - 0.78 * heights / max(float(heights.max()), 1e-9)
    axes.stairs(tops, edges, baseline=place, color=look.colour, fill=True, alpha=0.35)
    axes.plot((edges[0], edges[-1]), (place, place), color=look.colour, linewidth=0.6)
    below = place + 0.12
    q05, q25, q50, q75, q95 = agent.score_quantiles()
    axes.plot((q05, q95), (below, below), color=look.colour, linewidth=1.2)
    axes.plot((q25, q75), (below, below), color=look.colour, linewidth=4.5)
    axes.plot(
        q50, below, marker=look.marker, color="white", markeredgecolor=look.colour, markersize=6,
        markeredgewidth=1.5, zorder=4,
    )  # fmt: skip


def _legend(figure: Figure) -> None:
    legend = figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9, handlelength=2.6)
    for text in legend.get_texts():
        text.set_parse_math(False)
        text.set_color(_INK)
