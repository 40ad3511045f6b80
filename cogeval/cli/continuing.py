"""What to type to go on with a run that ended before its end.

Invariant: the command that is told plays on as this one did; where money ended it, under a cap that is higher
and may be enough.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable

from cogeval.cli.settings import called, config_of
from cogeval.config import Config
from cogeval.errors import InputError
from cogeval.store.run import RunDir


def resuming(run: RunDir, overrides: Iterable[str] = (), spend_usd: str | None = None) -> str:
    """The command that goes on as this one did: what it overrode is in no run, and would be forgotten.

    Args:
        run: the run.
        overrides: of this command.
        spend_usd: another spending cap; None: as it was.
    """
    dropped = ["run.root", *(["limits.spend_usd"] if spend_usd else [])]  # the run's name says where it is
    kept = [o for o in overrides if o.partition("=")[0].lstrip("+~") not in dropped]
    cap = [f"limits.spend_usd={spend_usd}"] if spend_usd else []
    return " ".join(["cogeval resume", called(run), *map(shlex.quote, [*kept, *cap])])


def elsewhere(address: str | None) -> str:
    """What to add to that command where the run's cluster is gone; nothing for one of this machine.

    Args:
        address: of the cluster that it played on.
    """
    if address is None:
        return ""
    return (
        f" (on the cluster at {address}, as before; where that is gone, add cluster.address=null to go on on "
        "this machine, or cluster.address=HOST:PORT of another cluster)"
    )


def where_it_played(run: RunDir) -> str:
    """What to add to that command for a run whose own configuration names a cluster, which may be gone."""
    try:
        address = config_of(run).cluster.address
    except InputError:  # it cannot be used, which `resume` tells better
        return ""
    return "" if address in ("auto", "local") else elsewhere(address)


def enough_usd(
    spent_usd: float, cap_usd: float, recorded: int, scheduled: int, expected_usd: float | None = None
) -> str:
    """A cap under which a paused run may end: what all of it costs at this rate, and a tenth more.

    Args:
        spent_usd: so far.
        cap_usd: that it paused at.
        recorded: episodes so far; with none, and nothing expected, all that can be said is what was spent
            doubled.
        scheduled: episodes.
        expected_usd: what all episodes are expected to cost; None: nobody knows.

    Returns:
        Dollars, rounded up to two digits, as a configuration has them.
    """
    whole_usd = spent_usd / recorded * scheduled if recorded else spent_usd + (expected_usd or spent_usd)
    usd = 1.1 * max(whole_usd, cap_usd)
    digits = 1 - math.floor(math.log10(usd)) if usd > 0 else 0
    return f"{math.ceil(usd * 10.0**digits) / 10.0**digits:.{max(0, digits)}f}"


def fewer_at_once(config: Config) -> str:
    """What to do when the money ended before any episode did."""
    at_once = config.cluster.episodes_in_flight
    if at_once == 1:
        return ""
    return (
        f"Up to {at_once:,} episodes a worker were under way at once, and none came to its end: with little "
        "money set cluster.episodes_in_flight=1. "
    )
