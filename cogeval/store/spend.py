"""What a run has spent: the sum over its records, or what its drivers have booked, whichever is more.

Invariant: money that unfinished or superseded episodes cost counts too. The file `spent` has it to the last
reply that was booked, with what requests under way are expected to cost; when a driver is killed, they count.
It also says what counted for the rates of each account then, so that no minute around `resume` holds more.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from cogeval.core.budget import Recent
from cogeval.store.marks import has_streams, put_mark
from cogeval.store.places import PlaceLike, place_at
from cogeval.store.roots import naming_gone
from cogeval.store.run import RunDir
from cogeval.store.spool import make_spool, spool_of, spools_of
from cogeval.store.totals import Totals, totals_of

_FILE: Final = "spent"
_WIDTH: Final = 64  # at least, of its one line, written over in place: no reader sees half of it


class SpendFile:
    """Keeps the money of a run up to date on disk; one process at a time has it open.

    Args:
        run_path: the run's place.

    Raises:
        RunError: the run's directory is gone.
    """

    __slots__ = ("_fd", "_width")

    def __init__(self, run_path: PlaceLike) -> None:
        place = place_at(run_path)
        directory = place.path or spool_of(place)
        if place.path is None:  # found again wherever the temporary directory is then
            put_mark(place, directory, is_emptied=not has_streams(directory))
            make_spool(directory)
        with naming_gone(place):
            self._fd = os.open(directory / _FILE, os.O_WRONLY | os.O_CREAT, 0o644)
        self._width = max(_WIDTH, os.fstat(self._fd).st_size)

    def write(
        self,
        spent_usd: float,
        expected_usd: float,
        recent: Mapping[str, Recent] | None = None,
        now: float = 0.0,
    ) -> None:
        """Writes what is spent, what requests under way are expected to cost, and what counts for rates.

        A file that cannot be written keeps what it had: the log has what was spent some seconds ago.
        """
        line = f"{spent_usd:.9f} {expected_usd:.9f}"
        if recent:
            past_s = time.time() - now  # by the clock that others have too
            line += f" {json.dumps({name: (*of[:2], of.at + past_s) for name, of in recent.items()})}"
        self._width = max(self._width, len(line) + 1)
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, line.ljust(self._width - 1).encode() + b"\n", 0)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


def filed_usd(run_path: PlaceLike) -> float:
    """What the file says is spent, requests under way included; 0 when there is none."""
    most = 0.0
    for fields in _filed(run_path):
        with contextlib.suppress(ValueError):
            spent, expected = fields[:2]
            most = max(most, float(spent) + float(expected))
    return most


def recent_of(run_path: PlaceLike, now: float) -> dict[str, Recent]:
    """What the file says that counted for rates, by account; nothing when it does not say.

    Args:
        run_path: the run's place.
        now: as the clock says whose times are wanted.
    """
    latest: dict[str, Recent] = {}
    for fields in _filed(run_path):
        with contextlib.suppress(ValueError, msgspec.MsgspecError):
            (said,) = fields[2:]
            for name, of in msgspec.json.decode(said, type=dict[str, Recent]).items():
                if name not in latest or of.at > latest[name].at:
                    latest[name] = of
    past_s = time.time() - now
    return {name: of._replace(at=min(now, of.at - past_s)) for name, of in latest.items()}


def _filed(run_path: PlaceLike) -> list[list[str]]:
    """The fields of the file; of every one there is of a run in an object store, where it may lie anywhere.

    It is beside the manifest, or, of a run in an object store, with its open shards.
    """
    place, found = place_at(run_path), []
    for directory in spools_of(place) if place.path is None else [place.path]:
        with contextlib.suppress(OSError, ValueError):
            found.append((directory / _FILE).read_text(encoding="ascii").split(maxsplit=2))
    return found


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


def spend_of(
    run: RunDir, totals: Totals | None = None, log: Iterable[Mapping[str, Any]] | None = None
) -> Spend:
    """Adds up what a run has spent.

    Args:
        run: the run.
        totals: what its records add up to; None: they are read.
        log: the events of its log; None: they are read.
    """
    totals = totals or totals_of(run)
    recorded_usd = totals.sums.cost_usd + totals.superseded.cost_usd
    booked_usd, cap_usd = filed_usd(run.place), None
    for entry in run.log_lines() if log is None else log:
        event = entry.get("event")
        if event in ("spent", "paused"):
            booked_usd = max(booked_usd, float(entry["usd"]))
        if event == "paused":
            cap_usd = float(entry["cap_usd"])
        elif event == "dispatch":  # somebody went on
            cap_usd = None
    return Spend(max(recorded_usd, booked_usd), cap_usd, booked_usd)


def recorded_cost(run: RunDir) -> tuple[int, float]:
    """How many episodes are recorded and what they cost together; none where that was nothing."""
    sums = totals_of(run).sums
    return (sums.episodes, sums.cost_usd) if sums.cost_usd > 0 else (0, 0.0)
