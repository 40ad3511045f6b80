"""The accounts and prices of a configuration, checked one by one, as the values that a run shares.

Invariant: what is refused is named with its account or model. The validator of the whole configuration
cannot do that: it names no key of a mapping.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from cogeval.agents import AgentEntry
from cogeval.agents.llm import read_price
from cogeval.config.schema import AccountConfig, LimitsConfig
from cogeval.core.agent import Price
from cogeval.core.quota import Limits
from cogeval.errors import InputError, unknown_name

_WHOLE = ("concurrency",)  # counts; the others may be fractions


def check_accounts(limits: Any) -> None:
    """Checks `limits.accounts` and `limits.prices`, when there are any.

    Args:
        limits: the group as plain JSON, of any shape.

    Raises:
        InputError: an account is no mapping, or has an unknown key or a value that limits nothing; a price
            is none.
    """
    prices = limits.get("prices") if isinstance(limits, dict) else None
    for model, price in prices.items() if isinstance(prices, dict) else ():
        if not isinstance(model, str) or not model.strip():
            raise InputError(f"limits.prices: expected text as a model, got {model!r}; write it in quotes")
        read_price(f"limits.prices.{model}", price)
    accounts = limits.get("accounts") if isinstance(limits, dict) else None
    if not isinstance(accounts, dict):
        return  # the validator says what is wrong with it
    known = AccountConfig.__struct_fields__
    for name, account in accounts.items():
        place = f"limits.accounts.{name}"
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"limits.accounts: expected text as a name, got {name!r}; write it in quotes")
        if not isinstance(account, dict):
            example = "{requests_per_minute: 50, concurrency: 4}"
            raise InputError(f"{place}: expected a mapping, as {example}, got {account!r}")
        for key, value in account.items():
            if key not in known:
                raise unknown_name(f"{place} key", key, known)
            _check_limit(f"{place}.{key}", value, whole=key in _WHOLE)


def _check_limit(place: str, value: Any, *, whole: bool) -> None:
    if value is None:
        return
    wanted = "a whole number of 1 or more" if whole else "a finite number of 1 or more"
    is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not is_number or not 1 <= value < math.inf:
        raise InputError(f"{place}: expected {wanted}, or null for no limit, got {value!r}")


def accounts_of(agents: Iterable[AgentEntry]) -> list[str]:
    """The accounts that a pool's agents ask with, each once."""
    found = (getattr(entry.seated.agent, "account", None) for entry in agents)
    return list(dict.fromkeys(name for name in found if isinstance(name, str)))


def check_used(limits: LimitsConfig, used: Sequence[str], overrides: Iterable[str]) -> list[str]:
    """Compares the accounts that are limited with those that a pool asks with.

    A name that was typed is a mistake when nobody asks with it; one that stands in a file may be there for
    another pool.

    Args:
        limits: of the configuration.
        used: accounts that agents ask with.
        overrides: of the command line.

    Returns:
        What to warn of: accounts of files that limit nothing here.

    Raises:
        InputError: a typed one limits nothing.
    """
    unused = [name for name in account_limits(limits) if name not in used]
    keys = [override.partition("=")[0].lstrip("+") for override in overrides]
    for name in unused:
        place = f"limits.accounts.{name}"
        if any(key == place or key.startswith(f"{place}.") for key in keys):
            raise unknown_name("account in limits.accounts that agents of the pool use:", name, used)
    if not unused:
        return []
    asked = f"they use {', '.join(used)}" if used else "none of them asks a service"
    return [f"limits.accounts: no agent of the pool uses {', '.join(unused)}; {asked}"]


def account_limits(limits: LimitsConfig) -> dict[str, Limits]:
    """What each account allows, those that allow everything left out."""
    plain = {name: msgspec.structs.asdict(account) for name, account in limits.accounts.items()}
    return {name: Limits(**of) for name, of in plain.items() if any(v is not None for v in of.values())}


def run_prices(limits: LimitsConfig) -> dict[str, Price]:
    """What models cost in this run, before the list that comes with cogeval."""
    return {model: read_price(f"limits.prices.{model}", price) for model, price in limits.prices.items()}
