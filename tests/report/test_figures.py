"""Figures hold what they should, keep an agent's colour, and touch no global state."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from cogeval.report import RunSummary
from cogeval.report.figures import agent_figure, ladder_figure, save, score_figure, seat_figure
from cogeval.report.files import write_agent_files, write_run_files

FIGURES: tuple[Callable[[RunSummary], Figure], ...] = (
    ladder_figure, score_figure, seat_figure, lambda summary: agent_figure(summary, summary.agents[0].name),
)  # fmt: skip


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


@pytest.mark.parametrize(
    "options",
    [{"num_agents": 2}, {"num_agents": 12}, {"num_agents": 1, "half": None}, {"num_agents": 4, "equal": True},
     {"names": ["$x^", "w" * 90, "naïve", "\x1b[0m"]}],
    ids=["two", "twelve", "one", "all_equal", "odd_names"],
)  # fmt: skip
def test_every_figure_is_drawn_without_overlap_or_warning(make_run, options, tmp_path: Path) -> None:
    summary = make_run(**options)
    for i, draw in enumerate(FIGURES):
        figure = draw(summary)
        path = tmp_path / f"{i}.png"
        save(figure, path, dpi=50)
        assert path.read_bytes().startswith(b"\x89PNG")
        assert figure.get_size_inches()[0] == 7.0
        for axes in figure.axes:
            _assert_apart([label for label in axes.get_yticklabels() if label.get_text()], figure)


def _assert_apart(labels: list[Text], figure: Figure) -> None:
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.y0)
    for below, above in itertools.pairwise(boxes):
        assert below.y1 <= above.y0 + 1.0, "labels overlap"
    assert all(box.x0 >= 0.0 for box in boxes), "a label is cut off"


def test_an_agent_has_one_colour_in_every_figure(make_run) -> None:
    summary = make_run(12)
    ladder = {
        line.get_ydata()[0]: line.get_color()
        for line in ladder_figure(summary).axes[0].lines
        if line.get_marker() != "None"
    }
    ranked = [agent.name for agent in summary.ranked()]
    in_ladder = {ranked[int(place)]: colour for place, colour in ladder.items()}
    curves = [line for line in score_figure(summary).axes[1].lines if not line.get_label().startswith("_")]
    in_scores = {name: line.get_color() for name, line in zip(ranked, curves, strict=True)}
    assert in_ladder == in_scores
    looks = {(line.get_color(), line.get_linestyle()) for line in curves}
    assert len(looks) == 12, "twelve agents, twelve looks"


def test_the_ladder_is_sorted_with_the_best_on_top_and_marks_zero(make_run) -> None:
    axes = ladder_figure(make_run(3)).axes[0]
    bottom, top = axes.get_ylim()
    assert bottom > top
    assert [label.get_text() for label in axes.get_yticklabels()] == ["assayer", "quack", "random"]
    assert any(list(line.get_xdata()) == [0.0, 0.0] for line in axes.lines)
    assert "95 % interval" in axes.get_xlabel()


def test_a_rating_without_interval_is_hollow(make_run) -> None:
    axes = ladder_figure(make_run(2, half=None)).axes[0]
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert [dot.get_markerfacecolor() for dot in dots] == ["white", "white"]
    assert "hollow: none" in axes.get_xlabel()


def test_names_are_not_read_as_formulas(make_run) -> None:
    summary = make_run(names=["$x^$", "$\\frac$"])
    for draw in FIGURES[:2]:
        assert "$x^$" in texts(draw(summary))


def test_a_name_that_the_font_cannot_show_is_no_reason_to_fail(make_run, tmp_path: Path) -> None:
    save(ladder_figure(make_run(names=["名前", "other"])), tmp_path / "a.png", dpi=50)


def test_agents_figures_share_one_axis(make_run) -> None:
    summary = make_run(3)
    limits = {agent_figure(summary, agent.name).axes[0].get_xlim() for agent in summary.agents}
    assert len(limits) == 1


def test_what_is_missing_is_said_in_the_figure(make_run) -> None:
    summary = make_run(2)
    empty = RunSummary("r", "d", 9, 0, 0, None, summary.agents, ((), ()))  # type: ignore[arg-type]
    assert "no scores yet" in texts(score_figure(empty))
    assert any(text.startswith("no seat effects") for text in texts(seat_figure(empty)))
    unrated = RunSummary("r", "d", 9, 0, 0, None, (), ())
    assert "nothing to rate yet" in texts(ladder_figure(unrated))


def test_files_have_fixed_names(make_run, tmp_path: Path) -> None:
    write_run_files(make_run(2), tmp_path, dpi=50)
    assert {path.name for path in tmp_path.iterdir()} == {
        "ladder.txt", "ladder.json", "ladder.png", "scores.png", "seats.png",
    }  # fmt: skip
    (tmp_path / "agent").mkdir()
    write_agent_files(make_run(2), "quack", tmp_path / "agent", dpi=50)
    assert [path.name for path in (tmp_path / "agent").iterdir()] == ["scores.png"]


def test_pyplot_is_never_imported() -> None:
    code = "import sys, cogeval.report.files; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_package_alone_imports_neither_matplotlib_nor_rich() -> None:
    code = "import sys, cogeval.report; sys.exit('matplotlib' in sys.modules or 'rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
