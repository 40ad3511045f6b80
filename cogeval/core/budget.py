"""The books behind a quota: rates, slots, penalties and money, as a state machine over an explicit `now`.

Invariant: what is granted in any minute stays within an account's limits, slots of an account never
exceed its concurrency, and nothing is granted once the spending cap is reached, so that the cap is
passed by no more than what was under way. First come, first served within an account; where the money
runs short, first those that `tabs` names. Must not know clocks, event loops or who carries the leases.

The rates are kept exactly: what the last minute let through is remembered, and a request waits until it
fits beside that. An account that was idle for a minute may spend a whole minute's allowance at once, as
services allow; no window of 60 s ever holds more than the limit.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cogeval.core.quota import Lease, Limits
from cogeval.core.tabs import Precedence, TabId, Tabs
from cogeval.core.window import Bin, Window

_MINUTE_S = 60.0
_SCOUTS = 4  # requests under way at once before it is known what an account's requests cost
_EPSILON = 1e-9

_FREE = Limits()


class Recent(NamedTuple):
    """What an account let through in the last minute, where it limits that."""

    requests: float
    tokens: float
    at: float  # when the last of it was


class _Demand:
    """A request that waits for its lease."""

    __slots__ = ("tab", "ticket", "tokens")

    def __init__(self, ticket: int, tab: TabId, tokens: int) -> None:
        self.ticket = ticket
        self.tab = tab
        self.tokens = tokens


class _Held:
    """A lease that is out."""

    __slots__ = ("granted_at", "holder", "lease", "request_bin", "token_bin")

    def __init__(self, lease: Lease, holder: str, granted_at: float) -> None:
        self.lease = lease
        self.holder = holder
        self.granted_at = granted_at
        self.request_bin: Bin | None = None
        self.token_bin: Bin | None = None


class _Account:
    """One account's limits, and what counts against them."""

    def __init__(self, limits: Limits, length_s: float) -> None:
        def window(limit: float | None) -> Window | None:
            return None if limit is None else Window(limit, length_s)

        self.concurrency = math.inf if limits.concurrency is None else limits.concurrency
        self.requests = window(limits.requests_per_minute)
        self.tokens = window(limits.tokens_per_minute)
        self.queue: deque[_Demand] = deque()
        self.num_held = 0
        self.held_tokens = 0
        self.closed_until = -math.inf
        self.known_usd = 0.0  # what settled requests cost
        self.known_tokens = 0  # and what they had been leased for

    @property
    def windows(self) -> tuple[Window, ...]:
        """Those that it has."""
        return tuple(w for w in (self.requests, self.tokens) if w is not None)

    @property
    def is_priced(self) -> bool:
        """True when some request has told what requests cost here."""
        return self.known_tokens > 0

    def estimate_usd(self, tokens: int) -> float:
        """What a request is expected to cost, from the mean of those before it."""
        return self.known_usd / self.known_tokens * tokens if self.known_tokens else 0.0

    def wait_s(self, tokens: int, now: float) -> float:
        """Seconds until rates and penalties let a request through."""
        wait_s = max(0.0, self.closed_until - now)
        if self.requests is not None:
            wait_s = max(wait_s, self.requests.wait_s(1, now))
        if self.tokens is not None:
            wait_s = max(wait_s, self.tokens.wait_s(tokens, now))
        return wait_s


class Budget:
    """The books of one run.

    Args:
        limits: name of an account -> what it allows; an account that is not named is unlimited.
        cap_usd: what the run may spend, in dollars; None: as much as it takes.
        spent_usd: what it has spent before.
        slack_s: longest time between a grant and its request; rates hold for the requests too.
        lease_s: age at which a lease that nobody settled lapses: its slot and its reserve come back.
        recorded: episodes that ended before, and what they cost together: what others will, too.
    """

    def __init__(
        self,
        limits: Mapping[str, Limits] | None = None,
        cap_usd: float | None = None,
        *,
        spent_usd: float = 0.0,
        slack_s: float = 0.0,
        lease_s: float = math.inf,
        recorded: tuple[int, float] = (0, 0.0),
    ) -> None:
        self.cap_usd = cap_usd
        self.spent_usd = spent_usd
        self._limits = dict(limits or {})
        self._length_s = _MINUTE_S + slack_s
        self._lease_s = lease_s
        self._accounts: dict[str, _Account] = {}
        self._held: dict[int, _Held] = {}  # in the order of their grants
        self._lapsed: set[int] = set()  # leases that were given up and may still be settled
        self._num_tickets = self._num_leases = 0
        self._is_spent = False
        self._spent_before_usd = spent_usd
        self._tabs = Tabs(None if cap_usd is None else cap_usd - spent_usd, *recorded)

    @property
    def expected_usd(self) -> float:
        """What the requests under way are expected to cost; 0 of an account that none was settled of."""
        return sum(account.estimate_usd(account.held_tokens) for account in self._accounts.values())

    @property
    def is_spent(self) -> bool:
        """True when the cap is reached: no lease is granted any more."""
        return self._is_spent

    @property
    def num_held(self) -> int:
        """Leases that are out."""
        return len(self._held)

    def ask(self, holder: str, account: str, tokens: int, episode: int = 0) -> int:
        """Queues a request.

        Args:
            holder: who asks, for `forget`.
            account: that it is made with.
            tokens: that it takes in and out, estimated.
            episode: that it is made for, a number of the holder's; 0: none.

        Returns:
            The ticket that `grant` names.
        """
        self._num_tickets += 1
        self._account(account).queue.append(_Demand(self._num_tickets, (holder, episode), max(0, tokens)))
        return self._num_tickets

    def withdraw(self, account: str, ticket: int) -> None:
        """Takes a request out of its queue, if it is still there."""
        queue = self._account(account).queue
        for demand in queue:
            if demand.ticket == ticket:
                queue.remove(demand)
                return

    def grant(self, now: float) -> list[tuple[int, Lease]]:
        """Lets through what may go now, in the order of asking; none once `is_spent`.

        Returns:
            Pairs of a ticket and its lease.
        """
        self._lapse(now)
        self._look_at_cap()
        granted: list[tuple[int, Lease]] = []
        for name, account in self._accounts.items():
            while (demand := self._next(account)) is not None and account.wait_s(demand.tokens, now) <= 0:
                account.queue.remove(demand)
                granted.append((demand.ticket, self._lend(name, account, demand, now)))
        self._look_for_end()
        return granted

    def wait_s(self, now: float) -> float | None:
        """Seconds until time alone may let a queued request through; None: something must happen first."""
        if self._is_spent:
            return None
        found = [(account, self._next(account)) for account in self._accounts.values()]
        waits = [account.wait_s(demand.tokens, now) for account, demand in found if demand is not None]
        if self._held and self._lease_s < math.inf:
            waits.append(next(iter(self._held.values())).granted_at + self._lease_s - now)
        return max(0.0, min(waits)) if waits else None

    def settle(self, lease: Lease, now: float, *, tokens: int, cost_usd: float, tab: TabId = ("", 0)) -> None:
        """Ends a lease: its slot is free, its tokens and its cost are what they really were.

        Args:
            lease: as granted.
            now: the time.
            tokens: that the request took; 0 of both when it failed.
            cost_usd: what it cost.
            tab: of the episode that it was made for: a lease may serve another than it was granted for.

        Raises:
            ValueError: the lease was settled before, or the figures are no amounts.
        """
        if not (tokens >= 0 and 0 <= cost_usd < math.inf):
            raise ValueError(f"expected tokens and a cost of 0 or more, got {tokens!r} and {cost_usd!r}")
        account = self._account(lease.account)
        if lease.id in self._lapsed:  # late, but paid for
            self._lapsed.remove(lease.id)
        else:
            held = self._release(lease.id)
            if account.tokens is not None and held.token_bin is not None:
                # More than was estimated counts from now on, as it has not been counted in time.
                if tokens <= lease.tokens:
                    account.tokens.take_back(lease.tokens - tokens, held.token_bin, now)
                else:
                    account.tokens.add(tokens - lease.tokens, now)
            self._tabs.charge(tab, cost_usd)
        self.spent_usd += cost_usd
        if tokens > 0:
            account.known_usd += cost_usd
            account.known_tokens += max(1, lease.tokens)
        self._look_at_cap()

    def give_back(self, lease: Lease, now: float) -> None:
        """Ends a lease that no request was made with: it counts for nothing."""
        if lease.id in self._lapsed:
            self._lapsed.remove(lease.id)
            return
        held, account = self._release(lease.id), self._account(lease.account)
        if account.requests is not None and held.request_bin is not None:
            account.requests.take_back(1, held.request_bin, now)
        if account.tokens is not None and held.token_bin is not None:
            account.tokens.take_back(lease.tokens, held.token_bin, now)

    def widen(self, slack_s: float) -> None:
        """Allows more time between a grant and its request: rates hold for those granted from now on."""
        self._length_s = max(self._length_s, _MINUTE_S + slack_s)
        for account in self._accounts.values():
            for window in account.windows:
                window.widen(self._length_s)

    def recent(self, now: float) -> dict[str, Recent]:
        """What counts for the rates of each account that has some, and had any requests of late."""
        found = {}
        for name, account in self._accounts.items():
            requests, tokens = (
                0.0 if w is None else w.total(now) for w in (account.requests, account.tokens)
            )
            if requests > 0 or tokens > 0:
                found[name] = Recent(requests, tokens, max(w.last_at for w in account.windows))
        return found

    def remember(self, recent: Mapping[str, Recent]) -> None:
        """Counts what earlier books let through, all of it when the last was, before anything is granted."""
        for name, (requests, tokens, at) in recent.items():
            account = self._account(name)
            for window, amount in ((account.requests, requests), (account.tokens, tokens)):
                if window is not None and amount > 0:
                    window.add(amount, at)

    def close(self, tab: TabId, *, complete: bool) -> None:
        """An episode is over: played to its end, or dropped."""
        self._tabs.close(tab, complete=complete)

    def penalize(self, account: str, wait_s: float, now: float) -> None:
        """Lets nobody of an account through for some seconds."""
        found = self._account(account)
        found.closed_until = max(found.closed_until, now + max(0.0, wait_s))

    def forget(self, holder: str) -> None:
        """A holder is gone: its slots and reserves come back, and it waits for nothing any more.

        Its requests may have been made, so they keep counting for the rates.
        """
        for account in self._accounts.values():
            account.queue = deque(d for d in account.queue if d.tab[0] != holder)
        self._tabs.forget(holder)
        self._give_up([i for i, held in self._held.items() if held.holder == holder])

    def validate(self) -> None:
        """Asserts that the books agree with themselves."""
        for name, account in self._accounts.items():
            held = [h.lease.tokens for h in self._held.values() if h.lease.account == name]
            assert (account.num_held, account.held_tokens) == (len(held), sum(held))
            assert 0 <= account.num_held <= account.concurrency
            for window in account.windows:
                window.validate()
        assert not self._lapsed & self._held.keys()

    def _account(self, name: str) -> _Account:
        if name not in self._accounts:
            self._accounts[name] = _Account(self._limits.get(name, _FREE), self._length_s)
        return self._accounts[name]

    def _next(self, account: _Account) -> _Demand | None:
        """The request that is next in an account, once its time comes; None: time alone helps nobody."""
        if self._is_spent or not account.queue or not self._has_slot(account):
            return None
        demand = self._first(account, self._precedence())
        return demand if demand is not None and self._affords(account, demand.tokens) else None

    def _first(self, account: _Account, rule: Precedence) -> _Demand | None:
        """The first in an account's queue that does not have to stand back."""
        return next((d for d in account.queue if self._tabs.admits(d.tab, rule)), None)

    def _precedence(self) -> Precedence:
        return self._tabs.precedence(self.spent_usd - self._spent_before_usd, self.expected_usd)

    def _look_for_end(self) -> None:
        """With nothing under way, what cannot be paid now never can: requests cost no less than was kept."""
        if self.cap_usd is None or self._held or self._is_spent:
            return
        rule = self._precedence()
        for account in self._accounts.values():
            if not account.queue:
                continue
            demand = self._first(account, rule)
            is_last = demand is None and self._tabs.num_open == 0  # no episode will end and make room
            if is_last or (demand is not None and not self._affords(account, demand.tokens)):
                self._is_spent = True

    def _has_slot(self, account: _Account) -> bool:
        return account.num_held < account.concurrency

    def _affords(self, account: _Account, tokens: int) -> bool:
        if self.cap_usd is None:
            return True
        if not account.is_priced and account.num_held >= _SCOUTS:
            return False
        expected_usd = self.expected_usd + account.estimate_usd(tokens)
        return self.spent_usd + expected_usd <= self.cap_usd + _EPSILON

    def _look_at_cap(self) -> None:
        if self.cap_usd is not None and self.spent_usd >= self.cap_usd - _EPSILON:
            self._is_spent = True

    def _lend(self, name: str, account: _Account, demand: _Demand, now: float) -> Lease:
        self._num_leases += 1
        lease = Lease(name, demand.tokens, self._num_leases)
        held = _Held(lease, demand.tab[0], now)
        self._tabs.charge(demand.tab, 0.0)
        if account.requests is not None:
            held.request_bin = account.requests.add(1, now)
        if account.tokens is not None:
            held.token_bin = account.tokens.add(demand.tokens, now)
        account.num_held += 1
        account.held_tokens += demand.tokens
        self._held[lease.id] = held
        return lease

    def _release(self, lease_id: int) -> _Held:
        if lease_id not in self._held:
            raise ValueError(f"expected a lease that is out, got number {lease_id}: it was settled before")
        held = self._held.pop(lease_id)
        account = self._account(held.lease.account)
        account.num_held -= 1
        account.held_tokens -= held.lease.tokens
        return held

    def _lapse(self, now: float) -> None:
        """Gives up leases that are too old."""
        old: list[int] = []
        for lease_id, held in self._held.items():
            if held.granted_at + self._lease_s > now:
                break
            old.append(lease_id)
        self._give_up(old)

    def _give_up(self, lease_ids: Iterable[int]) -> None:
        for lease_id in lease_ids:
            self._release(lease_id)
            self._lapsed.add(lease_id)
