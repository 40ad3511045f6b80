"""The books behind a quota: rates, slots, penalties and money, as a state machine over an explicit `now`.

Invariant: what is granted in any minute stays within an account's limits, slots of an account never
exceed its concurrency, and nothing is granted once the spending cap is reached, so that the cap is
passed by no more than what was under way. First come, first served within an account. Must not know
clocks, event loops or who carries the leases.

The rates are kept exactly: what the last minute let through is remembered, and a request waits until it
fits beside that. An account that was idle for a minute may spend a whole minute's allowance at once, as
services allow; no window of 60 s ever holds more than the limit.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping

from cogeval.core.quota import Lease, Limits
from cogeval.core.window import Bin, Window

_MINUTE_S = 60.0
_SCOUTS = 4  # requests under way at once before it is known what an account's requests cost
_EPSILON = 1e-9

_FREE = Limits()


class _Demand:
    """A request that waits for its lease."""

    __slots__ = ("holder", "ticket", "tokens")

    def __init__(self, ticket: int, holder: str, tokens: int) -> None:
        self.ticket = ticket
        self.holder = holder
        self.tokens = tokens


class _Held:
    """A lease that is out."""

    __slots__ = ("granted_at", "holder", "lease", "request_bin", "reserved_usd", "token_bin")

    def __init__(self, lease: Lease, holder: str, granted_at: float, reserved_usd: float) -> None:
        self.lease = lease
        self.holder = holder
        self.granted_at = granted_at
        self.reserved_usd = reserved_usd
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
        self.closed_until = -math.inf
        self.known_usd = 0.0  # what settled requests cost
        self.known_tokens = 0  # and what they had been leased for

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
    """

    def __init__(
        self,
        limits: Mapping[str, Limits] | None = None,
        cap_usd: float | None = None,
        *,
        spent_usd: float = 0.0,
        slack_s: float = 0.0,
        lease_s: float = math.inf,
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
        self._reserved_usd = 0.0
        self._is_spent = False

    @property
    def is_spent(self) -> bool:
        """True when the cap is reached: no lease is granted any more."""
        return self._is_spent

    @property
    def num_held(self) -> int:
        """Leases that are out."""
        return len(self._held)

    def ask(self, holder: str, account: str, tokens: int) -> int:
        """Queues a request.

        Args:
            holder: who asks, for `forget`.
            account: that it is made with.
            tokens: that it takes in and out, estimated.

        Returns:
            The ticket that `grant` names.
        """
        self._num_tickets += 1
        self._account(account).queue.append(_Demand(self._num_tickets, holder, max(0, tokens)))
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
        granted: list[tuple[int, Lease]] = []
        for name, account in self._accounts.items():
            while account.queue and self._admits(account, account.queue[0].tokens, now):
                demand = account.queue.popleft()
                granted.append((demand.ticket, self._lend(name, account, demand, now)))
        return granted

    def wait_s(self, now: float) -> float | None:
        """Seconds until time alone may let a queued request through; None: something must happen first."""
        if self._is_spent:
            return None
        waits = [
            account.wait_s(account.queue[0].tokens, now)
            for account in self._accounts.values()
            if account.queue and self._has_slot(account) and self._affords(account, account.queue[0].tokens)
        ]
        if self._held and self._lease_s < math.inf:
            waits.append(next(iter(self._held.values())).granted_at + self._lease_s - now)
        return max(0.0, min(waits)) if waits else None

    def settle(self, lease: Lease, now: float, *, tokens: int, cost_usd: float) -> None:
        """Ends a lease: its slot is free, its tokens and its cost are what they really were.

        Args:
            lease: as granted.
            now: the time.
            tokens: that the request took; 0 of both when it failed.
            cost_usd: what it cost.

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

    def penalize(self, account: str, wait_s: float, now: float) -> None:
        """Lets nobody of an account through for some seconds."""
        found = self._account(account)
        found.closed_until = max(found.closed_until, now + max(0.0, wait_s))

    def forget(self, holder: str) -> None:
        """A holder is gone: its slots and reserves come back, and it waits for nothing any more.

        Its requests may have been made, so they keep counting for the rates.
        """
        for account in self._accounts.values():
            account.queue = deque(d for d in account.queue if d.holder != holder)
        self._give_up([i for i, held in self._held.items() if held.holder == holder])

    def validate(self) -> None:
        """Asserts that the books agree with themselves."""
        for name, account in self._accounts.items():
            assert account.num_held == sum(h.lease.account == name for h in self._held.values())
            assert 0 <= account.num_held <= account.concurrency
            for window in (account.requests, account.tokens):
                if window is not None:
                    window.validate()
        reserved = sum(held.reserved_usd for held in self._held.values())
        assert math.isclose(self._reserved_usd, reserved, rel_tol=1e-9, abs_tol=1e-9)
        assert not self._lapsed & self._held.keys()

    def _account(self, name: str) -> _Account:
        if name not in self._accounts:
            self._accounts[name] = _Account(self._limits.get(name, _FREE), self._length_s)
        return self._accounts[name]

    def _admits(self, account: _Account, tokens: int, now: float) -> bool:
        self._look_at_cap()
        if self._is_spent or not self._has_slot(account):
            return False
        if not self._affords(account, tokens):
            # Requests under way may cost less than is kept for them; with none left, this is the end.
            self._is_spent = not self._held
            return False
        return account.wait_s(tokens, now) <= 0

    def _has_slot(self, account: _Account) -> bool:
        return account.num_held < account.concurrency

    def _affords(self, account: _Account, tokens: int) -> bool:
        if self.cap_usd is None:
            return True
        if not account.is_priced and account.num_held >= _SCOUTS:
            return False
        expected_usd = self.spent_usd + self._reserved_usd + account.estimate_usd(tokens)
        return expected_usd <= self.cap_usd + _EPSILON

    def _look_at_cap(self) -> None:
        if self.cap_usd is not None and self.spent_usd >= self.cap_usd - _EPSILON:
            self._is_spent = True

    def _lend(self, name: str, account: _Account, demand: _Demand, now: float) -> Lease:
        self._num_leases += 1
        lease = Lease(name, demand.tokens, self._num_leases)
        reserved_usd = 0.0 if self.cap_usd is None else account.estimate_usd(demand.tokens)
        held = _Held(lease, demand.holder, now, reserved_usd)
        if account.requests is not None:
            held.request_bin = account.requests.add(1, now)
        if account.tokens is not None:
            held.token_bin = account.tokens.add(demand.tokens, now)
        account.num_held += 1
        self._reserved_usd += reserved_usd
        self._held[lease.id] = held
        return lease

    def _release(self, lease_id: int) -> _Held:
        if lease_id not in self._held:
            raise ValueError(f"expected a lease that is out, got number {lease_id}: it was settled before")
        held = self._held.pop(lease_id)
        self._account(held.lease.account).num_held -= 1
        self._reserved_usd = self._reserved_usd - held.reserved_usd if self._held else 0.0
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
