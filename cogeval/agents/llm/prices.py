"""What models cost.

Invariant: a price comes from the first place that names the model: the pool, the run, the list that comes
with cogeval. A model that nobody prices costs nothing, and that is said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from cogeval.core.agent import Price, Usage
from cogeval.core.game import Json
from cogeval.errors import InputError
from cogeval.files import conf_dir

_DATE = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")
_BEDROCK = re.compile(r"^([a-z\-]+\.)?anthropic\.|-v\d+(:\d+)?$")


def read_prices(path: Path | None = None) -> dict[str, Price]:
    """Reads a price list.

    Args:
        path: YAML, ``model: {input: 3, output: 15, cached_input: 0.3}`` in dollars a million tokens; None:
            the list that comes with cogeval.

    Raises:
        InputError: a file that cannot be read or is no price list.
    """
    path = path or conf_dir() / "prices.yaml"
    try:
        prices = msgspec.yaml.decode(path.read_bytes())
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise InputError(f"cannot read prices from {str(path)!r}: {error}") from error
    if not isinstance(prices, dict):
        raise InputError(f"{str(path)!r}: expected a mapping of models, got {type(prices).__name__}")
    return {str(model): read_price(f"{str(path)!r}: {model}", price) for model, price in prices.items()}


def read_price(place: str, price: Json) -> Price:
    """Reads one price.

    Raises:
        InputError: not a price; the message names the place.
    """
    form = "{input: DOLLARS, output: DOLLARS, cached_input: DOLLARS} a million tokens, the last optional"
    fields = Price.__struct_fields__
    if not isinstance(price, dict) or not {"input", "output"} <= set(price) <= set(fields):
        raise InputError(f"{place}: expected {form}; got {price!r}")
    for key, value in price.items():
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise InputError(f"{place}.{key}: expected dollars, 0 or more; got {value!r}")
    return Price(**{key: float(value) for key, value in price.items()})


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of a model by its name, or by that name without date, vendor and cloud; None: not listed."""
    return next((prices[name] for name in _names(model) if name in prices), None)


def _names(model: str) -> Iterator[str]:
    yield model
    bare = model.rpartition("/")[2]  # routers: "anthropic/claude-..."
    yield bare
    bare = _BEDROCK.sub("", _BEDROCK.sub("", bare))
    yield bare
    yield _DATE.sub("", bare)


def cost_usd(price: Price | None, usage: Usage) -> float:
    """What a reply cost; 0 without a price."""
    if price is None:
        return 0.0
    cached = min(usage.tokens_cached, usage.tokens_in)
    cached_input = price.input if price.cached_input is None else price.cached_input
    dollars = (
        (usage.tokens_in - cached) * price.input + cached * cached_input + usage.tokens_out * price.output
    )
    return dollars / 1e6
