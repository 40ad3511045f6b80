"""What each episode under way has spent, and whose requests go first when a run's money runs short.

Invariant: of the episodes under way the one that has spent most may always go on, so that what is left goes
into episodes that end. Must not know accounts, leases or who plays.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TypeAlias

import msgspec

TabId: TypeAlias = tuple[str, int]
"""Who plays the episode, and its number there."""

OnClose: TypeAlias = Callable[[int, bool], None]
"""Told of an episode's end: its number, and whether it was played to its end."""

_numbers = itertools.count(1)
_tab: ContextVar[Tab | None] = ContextVar("tab", default=None)


class Tab:
    """One episode, as its requests name it; it tells those who serve it of its end."""

    __slots__ = ("_listeners", "number")

    def __init__(self) -> None:
        self.number = next(_numbers)  # 1 or more, unique in the process
        self._listeners: dict[OnClose, None] = {}

    def close(self, *, complete: bool) -> None:
        """The episode is over."""
        for listener in self._listeners:
            listener(self.number, complete)
        self._listeners.clear()

    def tell(self, listener: OnClose) -> None:
        """Tells somebody of the end, once, however often they ask."""
        self._listeners[listener] = None


@contextlib.contextmanager
def opened_tab() -> Iterator[None]:
    """What is asked in here, and in tasks that begin in here, is asked for one episode."""
    tab, complete = Tab(), False
    around = _tab.get()
    _tab.set(tab)
    try:
        yield
        complete = True
    finally:
        _tab.set(around)
        tab.close(complete=complete)


def asking_episode(listener: OnClose | None = None) -> int:
    """Number of the episode that something is asked for; 0: of none.

    Args:
        listener: is told of its end.
    """
    tab = _tab.get()
    if tab is None:
        return 0
    if listener is not None:
        tab.tell(listener)
    return tab.number


class Precedence(msgspec.Struct, frozen=True):
    """Which episodes' requests may go now."""

    served: frozenset[TabId] | None = None  # of those under way; None: all
    may_begin: bool = True  # those that have not asked for anything yet, too


def precedence(
    tabs: Mapping[TabId, float],
    typical_usd: float | None,
    *,
    allowance_usd: float,
    spent_usd: float,
    reserved_usd: float,
) -> Precedence:
    """The rule. Those that have spent most go first: they need least to end.

    When it is known what an episode costs, each of those under way may go on while what it and those before
    it still need fits what is left, and another begins when a whole one more fits beside all of them. Until
    one has ended, all may spend the first half of the allowance; the other half is for the first of them.

    Args:
        tabs: what each episode under way has spent, in dollars, in the order in which they got that far.
        typical_usd: what an episode costs; None: none has ended.
        allowance_usd: what may be spent in all.
        spent_usd: of it, what is spent.
        reserved_usd: of it, what requests under way are expected to cost.
    """
    if typical_usd is None:
        if not tabs or 2 * (spent_usd + reserved_usd) <= allowance_usd:
            return Precedence()
        return Precedence(frozenset([max(tabs, key=tabs.__getitem__)]), may_begin=False)
    left_usd = allowance_usd - spent_usd
    if left_usd >= typical_usd * (len(tabs) + 1):
        return Precedence()
    served: list[TabId] = []
    for tab in sorted(tabs, key=tabs.__getitem__, reverse=True):
        left_usd -= max(0.0, typical_usd - tabs[tab])
        if left_usd < 0 and served:
            return Precedence(frozenset(served), may_begin=False)
        served.append(tab)
    return Precedence(frozenset(served), may_begin=left_usd >= typical_usd)


class Tabs:
    """The tabs of a run's episodes.

    Args:
        allowance_usd: what may be spent on them; None: as much as it takes, and no tab is kept.
        num_complete: episodes that ended before.
        complete_usd: what those cost together.
    """

    def __init__(self, allowance_usd: float | None, num_complete: int = 0, complete_usd: float = 0.0) -> None:
        self._allowance_usd = allowance_usd
        self._open: dict[TabId, float] = {}
        self._closed: set[TabId] = set()
        self._num_complete = num_complete
        self._complete_usd = complete_usd

    @property
    def num_open(self) -> int:
        """Episodes under way that have asked for something."""
        return len(self._open)

    def charge(self, tab: TabId, usd: float) -> None:
        """Puts an amount on a tab, and opens it when it is the first; 0: something was asked for."""
        if self._allowance_usd is not None and tab[1] and tab not in self._closed:
            # Of equals the one that got there first goes on: else they would take turns, and none would end.
            self._open[tab] = self._open.pop(tab, 0.0) + usd if usd else self._open.get(tab, 0.0)

    def close(self, tab: TabId, *, complete: bool) -> None:
        """An episode is over; what complete ones cost tells what others will."""
        if self._allowance_usd is None:
            return
        self._closed.add(tab)
        usd = self._open.pop(tab, None)
        if usd is not None and complete:
            self._num_complete += 1
            self._complete_usd += usd

    def forget(self, holder: str) -> None:
        """Whoever played them is gone."""
        self._open = {tab: usd for tab, usd in self._open.items() if tab[0] != holder}
        self._closed = {tab for tab in self._closed if tab[0] != holder}

    def precedence(self, spent_usd: float, reserved_usd: float) -> Precedence:
        """Who may go now; see the rule."""
        if self._allowance_usd is None:
            return Precedence()
        return precedence(
            self._open,
            self._complete_usd / self._num_complete if self._num_complete else None,
            allowance_usd=self._allowance_usd,
            spent_usd=spent_usd,
            reserved_usd=reserved_usd,
        )

    def admits(self, tab: TabId, rule: Precedence) -> bool:
        """True when a request for an episode may go; one for none, or for one that is over, always may."""
        if self._allowance_usd is None or not tab[1] or tab in self._closed:
            return True
        if tab in self._open:
            return rule.served is None or tab in rule.served
        return rule.may_begin
