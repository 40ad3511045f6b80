"""On a narrow terminal whole columns go; no digit and no name is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import RenderableType
from rich.text import Text

from cogeval.ratings import Ladder
from cogeval.report import RunSummary
from cogeval.report.layout import Column, IntervalBar, grid, literal, to_text
from cogeval.report.tables import effort_table, fault_table, ladder_table, score_table, seat_table


@pytest.mark.parametrize("width", [80, 64, 58, 50, 45])
def test_agents_ratings_and_intervals_are_whole_at_any_width(make_run, width: int) -> None:
    summary: RunSummary = make_run(names=["assayer-mk2-long", "quack", "random"], half=1234.0, fallbacks=0.3)
    text = to_text(ladder_table(summary), width)
    assert max(map(len, text.splitlines())) <= width
    for agent in summary.agents:
        (row,) = [line for line in text.splitlines() if f" {agent.name} " in line and ".." in line]
        assert f" {agent.elo:+.0f} " in row
        assert f"{agent.elo_low:+.0f}..{agent.elo_high:+.0f}" in row


@pytest.mark.parametrize("width", [80, 64, 58, 50, 45])
def test_every_table_fits_and_names_what_it_leaves_out(make_run, width: int) -> None:
    summary: RunSummary = make_run(12, fallbacks=0.3)
    assert summary.ladder is not None
    wide = [ladder_table(summary), score_table(summary), fault_table(summary), effort_table(summary)]
    for table in [*wide, seat_table(summary.ladder)]:
        text, whole = to_text(table, width), to_text(table, 200)
        assert max(map(len, text.splitlines())) <= width
        left_out = len(text.split("interval")[0].split()) < len(whole.split("interval")[0].split())
        assert "on a wider terminal also: " in text or not left_out or width == 80
    assert "on a wider terminal" not in to_text(ladder_table(summary), 200)


def columns_and_row(digits: int, name: str) -> tuple[list[Column], list[RenderableType]]:
    columns = [
        Column("name", numeric=False, min_width=8), Column("a"), Column("b", drop=1),
        Column("", numeric=False, drop=3), Column("c-\nd", drop=2),
    ]  # fmt: skip
    number = "7" * digits
    bar = IntervalBar(0.0, -1.0, 1.0, -1.0, 1.0)
    return columns, [literal(name), Text(number), Text(number), bar, Text(number)]


@given(st.integers(12, 100), st.integers(1, 20), st.integers(1, 40))
def test_no_character_is_lost_whatever_the_width(width: int, digits: int, length: int) -> None:
    columns, row = columns_and_row(digits, "n" * length)
    text = to_text(grid(columns, [row]), width)
    assert max(map(len, text.splitlines())) <= width
    body = text.split("on a wider terminal")[0]
    assert body.count("7") % digits == 0
    assert digits <= body.count("7") <= 3 * digits
    assert body.count("n") >= length


def test_the_highest_goes_first_and_is_named() -> None:
    columns, row = columns_and_row(10, "name")
    assert "c- " in to_text(grid(columns, [row]), 60) or "c-\n" in to_text(grid(columns, [row]), 60)
    text = to_text(grid(columns, [row]), 30)
    assert text.endswith("on a wider terminal also: cd\n")
    assert to_text(grid(columns, [row]), 20).replace("\n", " ").endswith("also: b, cd ")


def test_groups_that_no_games_connect_are_ranked_apart(make_run) -> None:
    summary: RunSummary = make_run(names=["one", "two", "three", "four"])
    assert summary.ladder is not None
    fields = {name: getattr(summary.ladder, name) for name in Ladder.__slots__}
    names = [row.name for row in summary.ladder.rows]
    apart = Ladder(**{**fields, "components": (0, 1, 0, 1)})
    whole = {name: getattr(summary, name) for name in RunSummary.__slots__}
    lines = to_text(ladder_table(RunSummary(**{**whole, "ladder": apart}))).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("-"))
    rows = [line.split()[:2] for line in lines[start + 1 : start + 6]]
    assert rows == [["1", names[0]], ["2", names[2]], [], ["1", names[1]], ["2", names[3]]]
