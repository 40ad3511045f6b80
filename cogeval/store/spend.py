"""What a run has spent: the sum over its records, or what its drivers have booked, whichever is more.

Invariant: money that unfinished or superseded episodes cost counts too. The log has it, to within the
seconds before a driver was killed; the records have all that was finished.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cogeval.store.columns import to_numpy
from cogeval.store.read import read_tables, superseded_spend
from cogeval.store.run import RunDir


class Spend(msgspec.Struct, frozen=True):
    """The money of a run."""

    spent_usd: float
    cap_usd: float | None  # that it paused at; None: it did not, or it was resumed since
    booked_usd: float = 0.0  # as the log has it: unfinished episodes included

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
    booked_usd, cap_usd = 0.0, None
    for entry in run.log_lines():
        event = entry.get("event")
        if event in ("spent", "paused"):
            booked_usd = max(booked_usd, float(entry["usd"]))
        if event == "paused":
            cap_usd = float(entry["cap_usd"])
        elif event == "dispatch":  # somebody went on
            cap_usd = None
    return Spend(max(recorded_usd, booked_usd), cap_usd, booked_usd)
