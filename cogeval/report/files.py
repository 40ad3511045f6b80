"""The files of a report: tables as text, numbers as JSON, figures as PNG.

Invariant: names are fixed, so that two runs' files can be held side by side.
"""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Group
from rich.text import Text

from cogeval.report.figures import agent_figure, ladder_figure, save, score_figure, seat_figure
from cogeval.report.layout import to_text
from cogeval.report.summary import RunSummary
from cogeval.report.tables import effort_table, fault_table, ladder_table, score_table, seat_tables

__all__ = ["report_text", "write_agent_files", "write_run_files"]


def report_text(summary: RunSummary, width: int = 80) -> str:
    """All tables of a run, one under another.

    Args:
        summary: the run.
        width: characters of a line.
    """
    tables = [ladder_table(summary), score_table(summary), fault_table(summary), effort_table(summary)]
    if summary.ladder is not None and summary.seat_effects:
        tables += seat_tables(summary.ladder)
    parts = [part for table in tables for part in (table, Text(), Text())]
    return to_text(Group(*parts), width)


def write_run_files(summary: RunSummary, folder: Path, dpi: int = 200) -> None:
    """Writes ladder.txt, ladder.json, ladder.png, scores.png and, where known, seats.png.

    Args:
        summary: the run.
        folder: an existing directory.
        dpi: pixels per inch of the figures, which are 7 inches wide.
    """
    (folder / "ladder.txt").write_text(report_text(summary), encoding="utf-8")
    numbers = json.dumps(summary.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / "ladder.json").write_text(numbers + "\n", encoding="utf-8")
    save(ladder_figure(summary), folder / "ladder.png", dpi)
    save(score_figure(summary), folder / "scores.png", dpi)
    if summary.seat_effects:
        save(seat_figure(summary), folder / "seats.png", dpi)


def write_agent_files(summary: RunSummary, name: str, folder: Path, dpi: int = 200) -> None:
    """Writes scores.png of one agent.

    Args:
        summary: the run.
        name: the agent.
        folder: an existing directory.
        dpi: pixels per inch of the figure, which is 7 inches wide.
    """
    save(agent_figure(summary, name), folder / "scores.png", dpi)
