"""What a run has spent: the sum over its records, or what its drivers have booked, whichever is more.

Invariant: money that unfinished or superseded episodes cost counts too. The file `spent` has it to the last
reply that was booked, with what requests under way are expected to cost; when a driver is killed, they count.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Final

import msgspec

from cogeval.store.columns import to_numpy
from cogeval.store.read import read_tables, superseded_spend
from cogeval.store.run import RunDir

_FILE: Final = "spent"
_WIDTH: Final = 64  # of its one line, written over in place: no reader sees half of it


class SpendFile:
    """Keeps the money of a run up to date on disk; one process at a time has it open.

    Args:
        run_path: the run's directory.
    """

    __slots__ = ("_fd",)

    def __init__(self, run_path: str | Path) -> None:
        self._fd = os.open(Path(run_path) / _FILE, os.O_WRONLY | os.O_CREAT, 0o644)

    def write(self, spent_usd: float, expected_usd: float) -> None:
        """Writes what is spent, and what requests under way are expected to cost.

        A file that cannot be written keeps what it had: the log has what was spent some seconds ago.
        """
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, f"{spent_usd:.9f} {expected_usd:.9f}".ljust(_WIDTH - 1).encode() + b"\n", 0)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


def _filed_usd(run: RunDir) -> float:
    """What the file says, requests under way included; 0 when there is none."""
    try:
        spent, expected = (run.path / _FILE).read_text(encoding="ascii").split()
        return float(spent) + float(expected)
    except (OSError, ValueError):
        return 0.0


class Spend(msgspec.Struct, frozen=True):
    """The money of a run."""

    spent_usd: float
    cap_usd: float | None  # that it paused at; None: it did not, or it was resumed since
    booked_usd: float = 0.0  # as log and file have it: unfinished episodes included

    @property
    def is_paused(self) -> bool:
        """True when its last driver ended because the cap was reached."""
        return self.cap_usd is not None


def spent_entry(spent_usd: float) -> dict[str, Any]:
    """The log's entry for what a run has spent since it began."""
    return {"event": "spent", "usd": spent_usd}


def paused_entry(spent_usd: float, cap_usd: float) -> dict[str, Any]:
    """The log's entry for a run that the spending cap ended."""
    return {"event": "paused", "usd": spent_usd, "cap_usd": cap_usd}


def spend_of(run: RunDir) -> Spend:
    """Adds up what a run has spent."""
    seats = read_tables(run, ("seats",), ("cost_usd",)).seats
    recorded_usd = float(to_numpy(seats["cost_usd"]).sum()) + superseded_spend(run)["cost_usd"]
    booked_usd, cap_usd = _filed_usd(run), None
    for entry in run.log_lines():
        event = entry.get("event")
        if event in ("spent", "paused"):
            booked_usd = max(booked_usd, float(entry["usd"]))
        if event == "paused":
            cap_usd = float(entry["cap_usd"])
        elif event == "dispatch":  # somebody went on
            cap_usd = None
    return Spend(max(recorded_usd, booked_usd), cap_usd, booked_usd)
