"""Tables are readable at 80 columns, without colour, in a pipe, and show names as they are."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from cogeval.ratings import Bound, Comparison, Effect, Ladder, LadderRow
from cogeval.report import FaultReason, RunSummary
from cogeval.report.cells import count, percent, signed
from cogeval.report.files import report_text
from cogeval.report.layout import IntervalBar, OneLine, escaped, make_console, to_text
from cogeval.report.tables import (
    comparison_table,
    effort_table,
    fault_table,
    ladder_table,
    score_table,
    seat_table,
)


def all_tables(summary: RunSummary) -> list[RenderableType]:
    assert summary.ladder is not None
    return [
        ladder_table(summary), score_table(summary), fault_table(summary), effort_table(summary),
        seat_table(summary.ladder),
    ]  # fmt: skip


def on_terminal(content: RenderableType, *, term: str = "xterm-256color", encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=file, force_terminal=True, width=80, markup=False, _environ={"TERM": term})
    console.print(content)
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("num_agents", [1, 2, 3, 12])
def test_every_table_fits_80_columns_in_plain_ascii(make_run, num_agents: int) -> None:
    summary = make_run(num_agents, fallbacks=0.3, void=3)
    for table in all_tables(summary):
        text = to_text(table)
        assert text.isascii()
        assert max(map(len, text.splitlines())) <= 80
        assert not any(line.endswith(" ") for line in text.splitlines())


@pytest.mark.parametrize("num_agents", [2, 12])
def test_large_numbers_are_not_cut(make_run, num_agents: int) -> None:
    names = [f"an-agent-of-some-length-{i}" for i in range(num_agents)]
    summary = make_run(names=names, half=1234.0)
    big = [a.__class__(**{**_fields(a), "num_episodes": 1_234_567}) for a in summary.agents]
    text = to_text(ladder_table(RunSummary(**{**_fields(summary), "agents": tuple(big)})))
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("1,234,567") == num_agents
    assert "…" not in text
    assert f"{signed(big[0].elo_low)}..{signed(big[0].elo_high)}" in text


def _fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in type(value).__slots__}


def test_the_ladder_shows_rank_rating_interval_and_results(make_run) -> None:
    text = to_text(ladder_table(make_run(3)))
    first = next(line for line in text.splitlines() if "assayer" in line)
    for piece in ("1 ", "+160", "+142..+178", "0.916", "30.2", "22..39", "200", "0.0%", "-o-"):
        assert piece in first
    assert "200 blocks, intervals by jackknife over blocks, 0 is the mean agent" in text


@pytest.mark.parametrize("name", ["[red]x[/red]", ":smile:", "[link=http://x]y[/link]", r"\[bold]"])
def test_names_show_literally_whatever_markup_they_hold(make_run, name: str) -> None:
    summary = make_run(names=[name, "other"], half=None, fallbacks=0.5)
    for table in all_tables(summary)[:4]:
        assert name in to_text(table)
        assert name in _without_style(on_terminal(table))


def _without_style(text: str) -> str:
    from rich.text import Text

    return Text.from_ansi(text).plain


def test_control_characters_of_names_never_reach_the_terminal(make_run) -> None:
    summary = make_run(names=["a\x1b[2Jb\x07", "c\u202ed\ne"], half=None)
    for table in all_tables(summary):
        text = to_text(table)
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "\u202e" not in text
    assert r"a\x1b[2Jb\x07" in to_text(ladder_table(summary))
    assert escaped("c\u202ed\ne") == r"c\u202ed\ne"
    assert escaped("naïve 名前 🙂") == "naïve 名前 🙂"


def test_a_terminal_gets_colour_and_lines_a_pipe_neither(make_run) -> None:
    table = ladder_table(make_run(3))
    assert "━●━" in on_terminal(table)
    assert "\x1b[" in on_terminal(table)
    pipe = io.StringIO()
    make_console(pipe).print(table)
    assert pipe.getvalue().isascii()
    assert "\x1b" not in pipe.getvalue()


def test_a_dumb_terminal_gets_plain_text(make_run) -> None:
    for table in all_tables(make_run(3, fallbacks=0.3)):
        text = on_terminal(table, term="dumb")
        assert "\x1b" not in text
        assert text.isascii()


def test_a_terminal_without_unicode_gets_ascii(make_run) -> None:
    text = on_terminal(ladder_table(make_run(3)), encoding="ascii")
    assert "-o-" in text


def test_a_missing_interval_is_explained_under_the_table(make_run) -> None:
    text = to_text(ladder_table(make_run(2, half=None)))
    assert "assayer, quack: no interval: 2 blocks, fewer than 5" in text


def test_a_one_sided_bound_is_told(make_run) -> None:
    row = LadderRow(
        "assayer", 300.0, None, None, 1.0, 20.0, 9, 9, 9, ("won every game",),
        (Bound("at least", 171.6, ("quack",), 9), Bound("at least", None, ("random",), 1)),
    )  # fmt: skip
    summary = make_run(1)
    assert summary.ladder is not None
    ladder = Ladder(**{**_fields(summary.ladder), "rows": (row,)})
    text = to_text(ladder_table(RunSummary(**{**_fields(summary), "ladder": ladder})))
    assert "assayer: no interval: won every game" in text
    assert "assayer is at least +172 Elo against quack (9 blocks)" in text
    assert "random" not in text


def test_fallbacks_above_one_per_cent_are_warned_of(make_run) -> None:
    text = to_text(ladder_table(make_run(3, fallbacks=0.3)))
    assert "3.0%!" in text
    assert "warning: random left 3.0% of its decisions to the fallback" in " ".join(text.split())
    assert "warning" not in to_text(ladder_table(make_run(3, fallbacks=0.05)))


def test_warnings_and_void_episodes_stand_under_the_ladder(make_run) -> None:
    text = to_text(ladder_table(make_run(3, void=3, warnings=["two groups never met"])))
    assert "warning: 3 episodes are void" in text
    assert "warning: two groups never met" in text


def test_faults_are_told_by_kind(make_run) -> None:
    text = to_text(fault_table(make_run(3, fallbacks=0.3)))
    assert "illegal" in text
    assert "timeout" not in text
    row = next(line for line in text.splitlines() if line.startswith("random"))
    assert row.split() == ["random", "2,000", "120", "120", "6.0%", "3.0%!"]
    assert "no faults" in to_text(fault_table(make_run(3)))


@pytest.mark.parametrize(
    "detail", ["no idea", "x" * 500, "名前" * 100, "a\x1b[2J\nb\u202ec", "[red]no[/red]", ""]
)
def test_the_reason_of_faults_takes_one_line_and_shows_as_it_is(make_run, detail: str) -> None:
    summary = make_run(3, fallbacks=0.3, reasons=[FaultReason(2, "illegal", detail, 120)])
    text = to_text(fault_table(summary))
    (row,) = [line for line in text.splitlines() if line.startswith("random ") and "illegal" in line]
    assert row.split()[:3] == ["random", "illegal", "120"]
    assert cell_len(row) <= 80
    whole = escaped(detail)
    assert row.endswith(whole) if cell_len(whole) < 40 else row.endswith("...")
    assert f"most often illegal: {whole[:20]}".strip() in " ".join(to_text(ladder_table(summary)).split())


@pytest.mark.parametrize("width", [0, 1, 3, 4, 10, 50])
def test_a_line_is_never_wider_than_its_space(width: int) -> None:
    for text in ("", "abc", "0123456789", "名前" * 30, "\x1b" * 40):
        assert cell_len(OneLine(text).within(width)) <= max(width, 3)


def test_no_ladder_yet_is_said(make_run) -> None:
    summary = make_run(2)
    text = to_text(ladder_table(RunSummary(**{**_fields(summary), "ladder": None})))
    assert "no ladder: no episode is recorded yet" in text


def test_a_ladder_without_seat_effects_says_so(make_run) -> None:
    ladder = make_run(2).ladder
    text = to_text(seat_table(Ladder(**{**_fields(ladder), "seat_effects": ()})))
    assert "no seat effects" in text


def test_a_comparison_shows_means_with_their_t_intervals() -> None:
    share = Effect(40, 0.25, 0.125, 0.375, 0.4, 0.625, 30, 8)
    score = Effect(40, -1.5, None, None, None, None, 10, 25)
    comparison = Comparison(
        "old", "[b]new[/b]", "head_to_head", 0.95, share, score, 88.7, 43.6, None, ("2 blocks left out",)
    )
    text = to_text(comparison_table(comparison))
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("[b]new[/b] against old")
    row = next(line for line in text.splitlines() if line.startswith("share"))
    assert row.split() == ["share", "+0.25", "+0.125..+0.375", "0.4", "+0.62", "30", "8", "40"]
    assert "+44..+inf" in text
    assert "2 blocks left out" in text


def test_the_report_holds_every_table(make_run) -> None:
    text = report_text(make_run(3))
    for title in ("Ladder of", "Scores", "Faults", "Effort", "Seat effects"):
        assert f"\n{title}" in f"\n{text}"


@pytest.mark.parametrize(
    ("low", "point", "high", "drawn"),
    [(-50.0, 0.0, 50.0, "  --o--  "), (None, 100.0, None, "    .   o"), (-100.0, -100.0, 100.0, "o--------")],
)
def test_interval_bars_are_drawn_to_scale(
    low: float | None, point: float, high: float | None, drawn: str
) -> None:
    bar = IntervalBar(point, low, high, -100.0, 100.0)
    assert bar.characters(9, fancy=False) == drawn


def test_an_axis_always_has_a_width() -> None:
    assert IntervalBar.axis([0.0, None]) == (-1.0, 1.0)
    assert IntervalBar.axis([5.0, 9.0]) == (0.0, 9.0)


def test_rates_that_are_not_zero_are_not_shown_as_zero() -> None:
    assert percent(0.0) == "0.0%"
    assert percent(0.0001) == "<0.1%"
    assert percent(None) == "-"
    assert signed(-0.3) == "+0"
    assert count(12_345_678) == "12M"
    assert count(np.int64(1234)) == "1,234"


def test_a_row_that_its_agent_did_not_play_is_warned_of_before_anything_else(make_run) -> None:
    summary = make_run(3, fallbacks=0.5)
    *others, last = summary.agents
    agents = (*others, dataclasses.replace(last, fallback_share=1.0))
    text = to_text(ladder_table(dataclasses.replace(summary, agents=agents)))
    notes = text.partition("\n\n")[2].partition("\n\n")[2]
    first = " ".join(notes.split()).partition(" note: ")[0]
    assert first.startswith("warning: ")
    assert "left 100.0% of its decisions to the fallback: none of its row is its own play" in first
    assert "its row is not all its own play" in " ".join(to_text(ladder_table(summary)).split())


def test_a_ladder_without_intervals_says_so_once_and_one_block_is_one(make_run) -> None:
    summary = make_run(3, half=None)
    assert summary.ladder is not None
    rows = tuple(dataclasses.replace(row, flags=()) for row in summary.ladder.rows)
    ladder = dataclasses.replace(summary.ladder, rows=rows, num_blocks=1)
    text = to_text(ladder_table(dataclasses.replace(summary, ladder=ladder)))
    assert "1 block, no intervals" in text
    assert "no interval:" not in text
