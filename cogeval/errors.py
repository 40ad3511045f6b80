"""The exception tree, by blast radius: what stops when one of these is raised.

`SeatError` costs one seat its decision, `EpisodeError` one episode (it is played again elsewhere),
`RunError` the run. Each is caught in exactly one place: the episode loop, the episode actor and the
command line. `InputError` is the run error whose cause is the user's input.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

__all__ = [
    "ActionError",
    "EpisodeError",
    "HostError",
    "InputError",
    "RecordedFaultError",
    "RunError",
    "SeatError",
    "UnmadeError",
    "closest_first",
    "few",
    "unknown_name",
]


class SeatError(Exception):
    """One seat's decision failed; the seat's fallback decides, everybody else plays on."""


class ActionError(SeatError):
    """A reply could not be read as an action.

    Args:
        hint: one sentence for the agent that says what to write instead; it is shown on the retry.
    """

    def __init__(self, hint: str) -> None:
        super().__init__(hint)
        self.hint = hint


class RecordedFaultError(SeatError):
    """What an agent raises that stands for a recorded one: the same fault again.

    Args:
        fault: one of the kinds of faults of a seat.
        detail: what the fault was, for people.
    """

    def __init__(self, fault: str, detail: str | None = None) -> None:
        super().__init__(detail or fault)
        self.fault = fault
        self.detail = detail


class UnmadeError(SeatError):
    """The seat's agent could not be made where it plays: no decision of its failed."""


class EpisodeError(Exception):
    """One episode failed through no fault of its seats; it is played again, then recorded void."""


class HostError(EpisodeError):
    """The machine that plays lacks what a seat's agent needs: descriptors, processes, memory, disk."""


class RunError(Exception):
    """The run cannot go on; what is committed stays intact. The command exits with code 1."""

    exit_code = 1


class InputError(RunError):
    """The user's input is wrong; the message quotes it and names the way out. Exit code 2."""

    exit_code = 2


def closest_first(name: str, known: Iterable[str]) -> list[str]:
    """Orders the known names by their likeness to `name`, the closest first, ties by alphabet."""
    return sorted(
        known,
        key=lambda k: (-difflib.SequenceMatcher(None, name.lower(), k.lower()).ratio(), k),
    )


def few(names: Sequence[str], most: int | None) -> str:
    """Lists the first names, and how many more there are.

    Args:
        names: in order.
        most: how many to list at most; None: all.
    """
    shown = names[:most]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def unknown_name(what: str, name: object, known: Iterable[str], *, most: int | None = None) -> InputError:
    """Builds the error for a name that is in no table.

    Args:
        what: the kind of thing, as the user knows it ("game", "pool", "agent").
        name: what the user wrote.
        known: every name that would have been accepted.
        most: how many of them to list at most; None: all.

    Returns:
        An `InputError` that quotes the name and lists the known ones, the closest first.
    """
    listed = few(closest_first(str(name), known), most) or "none"
    return InputError(f"unknown {what} {str(name)!r}; known, closest first: {listed}")
