from __future__ import annotations

import io
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from cogeval.cli.output import counted, duration, size
from cogeval.cli.progress import (
    PLAIN_EVERY_S,
    STOPPING,
    LiveView,
    PlainView,
    drawn,
    live_elo,
    lost_words,
    words,
)
from cogeval.cli.session import _pace_words
from cogeval.cluster.driver import Outcome
from cogeval.cluster.tally import Tally
from cogeval.report.layout import to_text


@dataclass(frozen=True)
class State:
    """What a driver's progress has."""

    done: int
    total: int
    tally: Tally
    void: int = 0
    episodes_per_s: float = 0.0
    num_lost_workers: int = 0
    num_lost_seat_actors: int = 0
    recorded: int = 0
    stopping: bool = False
    spent_usd: float = 0.0
    names: tuple[str, ...] = ("strong", "[red]weak[/red]")


def state(done: int, **more: object) -> State:
    tally = Tally.empty(2)
    tally.wins = np.array([[0.0, 0.75 * done], [0.25 * done, 0.0]])
    tally.share_sum = np.array([0.75 * done, 0.25 * done])
    tally.num_seats = np.full(2, done)
    return State(done, 1000, tally, **more)  # type: ignore[arg-type]


def test_the_line_says_how_far_how_fast_and_what_went_wrong() -> None:
    assert words(state(0)) == ["0 of 1,000 episodes", "0 faults"]
    lost = state(500, episodes_per_s=20.0, void=3, num_lost_workers=1, spent_usd=2.5)
    lost.tally.faults[1] = 1
    lost.tally.cost_usd = 1.5  # this session's alone: what status calls spent is shown
    assert words(lost) == [
        "500 of 1,000 episodes", "20/s now", "0:25 to go", "1 fault", "3 void", "$2.50", "1 lost worker",
    ]  # fmt: skip


def test_what_was_lost_is_said_only_when_something_was() -> None:
    assert lost_words(state(5)) == []  # type: ignore[arg-type]
    assert words(state(5, num_lost_seat_actors=2))[-1] == "2 lost seat actors"  # type: ignore[arg-type]
    both = state(5, num_lost_workers=2, num_lost_seat_actors=1)
    assert words(both)[-2:] == ["2 lost workers", "1 lost seat actor"]  # type: ignore[arg-type]


def test_faults_are_the_whole_runs_as_episodes_and_dollars_are() -> None:
    here = state(500, recorded=400)
    here.tally.faults[0] = 2
    assert words(here, 40)[1] == "42 faults"
    lines: list[str] = []
    with PlainView(lines.append, num_faults=40) as view:
        view(here)
    assert lines[-1] == "500 of 1,000 episodes, 42 faults\n"
    with LiveView(num_faults=40) as live:
        live(here)
        assert "42 faults" in to_text(live._live.renderable)


@pytest.mark.parametrize(
    ("episodes", "seconds", "said"),
    [
        (0, 0.0, []),  # all came in one receipt
        (3, 60.0, []),
        (500, 0.2, []),
        (500, 2.0, ["250/s on average"]),
        (12, 5.0, ["2.4/s on average"]),
        (12, 1200.0, ["36 an hour on average"]),
    ],
)
def test_a_pace_is_said_where_it_means_something(episodes, seconds, said) -> None:
    outcome = Outcome(True, False, None, 1.0, episodes + 3, seconds, episodes)
    assert _pace_words(outcome) == said


def test_plain_lines_come_every_few_seconds_and_at_the_end() -> None:
    lines: list[str] = []
    now = 0.0
    view = PlainView(lines.append, lambda: now)
    with view:
        for now in np.arange(0.0, 2 * PLAIN_EVERY_S, 0.5):
            view(state(int(now)))  # type: ignore[arg-type]
    assert lines[0] == "starting workers\n"
    assert len(lines) == 1 + 1 + 1
    assert all(line.endswith("\n") and "\x1b" not in line for line in lines)


def test_a_stop_is_answered_at_once_and_once() -> None:
    lines: list[str] = []
    view = PlainView(lines.append, lambda: 0.0)
    with view:
        for _ in range(3):
            view(state(5, stopping=True))  # type: ignore[arg-type]
    assert lines == ["starting workers\n", f"{STOPPING}\n", "5 of 1,000 episodes, 0 faults\n"]


def test_a_terminal_is_told_of_a_stop_and_that_a_resumed_ladder_is_of_this_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with LiveView() as view:
        view(state(5, recorded=4))  # type: ignore[arg-type]
        assert "this session" in to_text(view._live.renderable)
        assert STOPPING not in screen.getvalue()
        view(state(5, recorded=4, stopping=True))  # type: ignore[arg-type]
        assert STOPPING in to_text(view._live.renderable)
    assert STOPPING not in to_text(view._live.renderable)
    with LiveView() as view:
        view(state(5))  # type: ignore[arg-type]
        assert "so far" in to_text(view._live.renderable)


def test_the_live_ladder_is_best_first_and_shows_names_literally() -> None:
    text = to_text(drawn(state(100)))  # type: ignore[arg-type]
    assert text.index("strong") < text.index("[red]weak[/red]")
    assert "10%" in text
    assert "so far" not in to_text(drawn(state(0)))  # type: ignore[arg-type]


def test_live_elo_of_three_wins_in_four_is_near_190() -> None:
    first, second = live_elo(np.array([[0.0, 75_000.0], [25_000.0, 0.0]]))
    assert first - second == pytest.approx(190.8, abs=0.1)
    assert first == -second


def test_numbers_are_said_as_people_say_them() -> None:
    assert [duration(s) for s in (0, 59.6, 3671)] == ["0:00", "1:00", "1:01:11"]
    assert [size(n) for n in (12, 1500, 64_000_000, 3.2e12)] == ["12 bytes", "1.5 KB", "64 MB", "3.2 TB"]
    assert [counted(1, "run"), counted(1200, "run")] == ["1 run", "1,200 runs"]
