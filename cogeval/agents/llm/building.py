"""From the settings of a pool to a model agent.

Invariant: the fingerprint covers what the model is asked and how (provider, server, model, prompt text,
sampling), and nothing that only says who pays or how long one waits.
"""

from __future__ import annotations

import math
import re
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from cogeval.agents.entry import AgentEntry, make_entry, take
from cogeval.agents.llm.agent import LlmSeat
from cogeval.agents.llm.connecting import KEYS, PROVIDERS
from cogeval.agents.llm.prices import price_of, read_price, read_prices
from cogeval.agents.llm.prompts import read_prompt
from cogeval.agents.llm.provider import JSON_STYLES, Endpoint
from cogeval.agents.llm.secrets import refuse_keys
from cogeval.core.agent import Price
from cogeval.core.game import AnyGame, Json
from cogeval.errors import InputError, unknown_name

_CODE: Final = "1"  # changes when the same settings would ask the model something else

_ALLOWED: Final[Mapping[str, tuple[type, Json]]] = {
    "provider": (str, None),
    "model": (str, None),
    "base_url": (str, None),
    "region": (str, None),
    "api_key_env": (str, None),
    "account": (str, None),
    "prompt": (str, None),
    "prompt_file": (str, None),
    "json": (str, None),
    "max_tokens": (int, 1024),
    "temperature": (float, None),
    "top_p": (float, None),
    "seed": (int, None),
    "extra": (dict, None),
    "max_retries": (int, 6),
    "price": (dict, None),
    "prices_file": (str, None),
    "version": (str, "1"),
}
_OURS: Final = ("model", "messages", "system", "max_tokens", "max_completion_tokens", "stream", "n")
_SAMPLING: Final = ("temperature", "top_p", "seed")


def llm_agent(name: str, game: AnyGame, settings: Mapping[str, Json]) -> AgentEntry:
    """A model behind an API. Parameters: provider, model, base_url, prompt, max_tokens, temperature, ...

    The table of them is in docs/models.md.
    """
    place = f"pool.agents.{name}"
    values = _taken(name, settings)
    provider, model = values["provider"], values["model"]
    prompt = read_prompt(place, values["prompt"], values["prompt_file"], game.spec.name)
    if values["prompt_file"] is not None:  # the manifest keeps its text
        refuse_keys(f"{place}.prompt_file", msgspec.structs.asdict(prompt))
    sampling = _sampling(place, provider, values)
    endpoint = _endpoint(place, provider, values)
    json_style = _json_style(place, provider, values["json"])
    parameters = {
        "provider": provider,
        "model": model,
        "base_url": endpoint.base_url,
        "region": endpoint.region,
        "json": json_style,
        "max_tokens": values["max_tokens"],
        "sampling": sampling,
        "prompt": msgspec.structs.asdict(prompt),
    }
    own, listed = _prices(place, model, values)
    seat = LlmSeat(
        place=place,
        game=game,
        endpoint=endpoint,
        model=model,
        account=values["account"] or _account(endpoint),
        prompt=prompt,
        json_style=json_style,
        max_tokens=values["max_tokens"],
        sampling=sampling,
        max_retries=values["max_retries"],
        price=own,
        listed_price=listed,
    )
    return make_entry(
        name, "llm", seat, code=_CODE, version=values["version"], parameters=parameters,
        deterministic=False, is_model=True,
    )  # fmt: skip


def _taken(name: str, settings: Mapping[str, Json]) -> dict[str, Json]:
    """The settings, with their types checked; a null is a setting that is not there."""
    place = f"pool.agents.{name}"
    given = {key: value for key, value in settings.items() if value is not None or key not in _ALLOWED}
    for key in ("temperature", "top_p"):
        if type(given.get(key)) is int:
            given[key] = float(given[key])
    allowed = dict(_ALLOWED)
    if isinstance(given.get("prompt"), dict):
        allowed["prompt"] = (dict, None)
    values = take(name, "llm", given, allowed)
    for key, value in values.items():
        refuse_keys(f"{place}.{key}", value)
    if values["provider"] not in PROVIDERS:
        if values["provider"] is None:
            raise InputError(f"{place}: expected provider: NAME, one of {', '.join(PROVIDERS)}; got none")
        raise unknown_name(f"provider in {place}.provider:", values["provider"], PROVIDERS)
    if not (values["model"] or "").strip():
        raise InputError(f"{place}: expected model: NAME, as the service calls it; got {values['model']!r}")
    for key, least in (("max_tokens", 1), ("max_retries", 0)):
        if values[key] < least:
            raise InputError(f"{place}.{key}: expected {least} or more, got {values[key]!r}")
    for key in ("temperature", "top_p"):
        if values[key] is not None and not 0 <= values[key] < math.inf:
            raise InputError(f"{place}.{key}: expected a number, 0 or more; got {values[key]!r}")
    return values


def _sampling(place: str, provider: str, values: Mapping[str, Json]) -> dict[str, Json]:
    """Fields that go into the body of every request."""
    if values["seed"] is not None and provider != "openai":
        raise InputError(f"{place}.seed: provider {provider} takes no seed; leave it out")
    extra = values["extra"] or {}
    for key in extra:
        if key in _OURS:
            raise InputError(f"{place}.extra.{key}: cogeval fills this field in; take it out")
    return {**{key: values[key] for key in _SAMPLING if values[key] is not None}, **extra}


def _endpoint(place: str, provider: str, values: Mapping[str, Json]) -> Endpoint:
    base_url, key = values["base_url"], values["api_key_env"]
    if values["region"] is not None and provider != "bedrock":
        raise InputError(f"{place}.region: only provider bedrock has regions; leave it out")
    # Not quoted, and capitals only: it may be the key itself, and some keys are identifiers.
    if key is not None and not (key.isascii() and key.isidentifier() and key == key.upper()):
        raise InputError(
            f"{place}.api_key_env: expected the name of an environment variable in capitals, such as "
            f"MY_API_KEY; got {len(key)} characters that are none. A key never goes into a pool"
        )
    if base_url is not None:
        parts = urllib.parse.urlsplit(base_url)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InputError(
                f"{place}.base_url: a run keeps its configuration, so no credentials may be in it, nor a "
                "query; put the key into an environment variable and name that one: api_key_env: MY_KEY"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                f"{place}.base_url: expected a URL such as http://localhost:8000/v1, got {base_url!r}"
            )
    elif key is None:
        key = KEYS[provider]  # the provider's own server; no other one is ever sent that key unasked
    return Endpoint(provider, base_url, key, values["region"])


def _account(endpoint: Endpoint) -> str:
    if endpoint.base_url is None:
        return endpoint.provider
    server = urllib.parse.urlsplit(endpoint.base_url).netloc
    return re.sub(r"\W+", "_", server)  # a key that the command line can override


def _json_style(place: str, provider: str, style: str | None) -> str:
    known = JSON_STYLES if provider == "openai" else ("schema", "none")
    if style is None:
        return "none" if provider == "bedrock" else "schema"
    if style not in known:
        raise unknown_name(f"json style of provider {provider} in {place}.json:", style, known)
    return style


def _prices(place: str, model: str, values: Mapping[str, Json]) -> tuple[Price | None, Price | None]:
    """The pool's own price of the model and the listed one."""
    listed = price_of(model, read_prices())
    if values["price"] is not None:
        return read_price(f"{place}.price", values["price"]), listed
    if values["prices_file"] is None:
        return None, listed
    own = price_of(model, read_prices(Path(values["prices_file"])))
    return own, listed
