"""What agents may ask of an outside service: requests, tokens and money, shared by a whole run.

Invariant: nobody calls a service without a lease, and every lease is settled once. Must not know how the
book is kept: one object, or an actor that a cluster shares.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from cogeval.errors import RunError


class QuotaError(RunError):
    """Nothing will be asked of a service any more: that is the run's end, and no fault of a seat."""


class BudgetSpentError(QuotaError):
    """The run's spending cap is reached: it pauses, and can be resumed with a higher one. Exit code 3."""

    exit_code = 3


class BooksLostError(QuotaError):
    """Whoever keeps the books is gone: nobody may spend without them."""


class ServiceRefusedError(QuotaError):
    """A service refuses whatever an agent asks, since it began: its key, model or address is wrong."""


class Limits(msgspec.Struct, frozen=True):
    """What an account allows; None: as much as one likes."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    concurrency: int | None = None  # requests under way at once


class Lease(msgspec.Struct, frozen=True, gc=False):
    """The right to make one request."""

    account: str
    tokens: int  # that it was taken for, an estimate
    id: int = 0  # in the books that it was taken from


class Quota(Protocol):
    """Hands out leases; shared by all agents of a run."""

    async def lease(self, account: str, tokens: int) -> Lease:
        """Waits until the account allows one request more.

        Args:
            account: name of the account, a key of the run's limits; an unknown one has none.
            tokens: that the request will take in and out, estimated.

        Raises:
            BudgetSpentError: when the run's spending cap is reached.
            BooksLostError: when whoever keeps the books is gone.
        """

    async def settle(self, lease: Lease, *, tokens: int, cost_usd: float) -> None:
        """Gives a lease back: what the request really took, and what it cost; 0 of both when it failed."""

    async def penalize(self, account: str, wait_s: float) -> None:
        """Holds every request of the account back for some seconds, as a service asked for."""


class Unlimited:
    """The quota of an agent that nobody limits: every lease is granted at once."""

    async def lease(self, account: str, tokens: int) -> Lease:
        """Grants it."""
        return Lease(account, tokens)

    async def settle(self, lease: Lease, *, tokens: int, cost_usd: float) -> None:
        """Keeps no books."""

    async def penalize(self, account: str, wait_s: float) -> None:
        """Holds nobody back: whoever was told to wait does so by itself."""


UNLIMITED: Quota = Unlimited()
