"""From YAML to a checked `Config`, with messages that name the key as the user writes it.

Invariant: nothing leaves here unchecked; a value that is wrong is quoted with its key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from cogeval.config.accounts import check_accounts
from cogeval.config.schema import Config
from cogeval.core.episode import ON_FAULT
from cogeval.errors import InputError, unknown_name
from cogeval.store.addresses import check_address, is_address
from cogeval.tracking.flat import is_secret

_MOST_LOCAL_WORKERS = 1024  # processes; a machine that has fewer cores gains nothing by more


def read_config(composed: DictConfig) -> Config:
    """Checks a composed configuration.

    Raises:
        InputError: a missing or misspelt key or a value of another type; the message names the key.
    """
    try:
        plain = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise InputError(str(error).splitlines()[0]) from error
    return config_from_plain(plain)


def config_from_yaml(text: str) -> Config:
    """Reads the configuration that a run directory keeps."""
    return read_config(OmegaConf.create(text))  # type: ignore[arg-type]  # YAML that holds a mapping


def config_to_yaml(config: Config) -> str:
    """The resolved configuration, as the run directory keeps it."""
    return OmegaConf.to_yaml(OmegaConf.create(msgspec.to_builtins(config)))


_UNFIT = re.compile(r"[=\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # in the name of an agent
_UNKNOWN = re.compile(r"Object contains unknown field `(.+?)`(?: - at `\$\.?(.*)`)?")
_WRONG = re.compile(r"Expected `(.+?)`, got `(.+?)`(?: - at `\$\.?(.*)`)?")
_MISSING = re.compile(r"Object missing required field `(.+?)`(?: - at `\$\.?(.*)`)?")


def config_from_plain(plain: Any) -> Config:
    """Checks a configuration given as plain JSON."""
    agents = plain.get("pool", {}).get("agents") if isinstance(plain.get("pool"), dict) else None
    for name in agents if isinstance(agents, dict) else ():
        if not isinstance(name, str):
            raise InputError(f"pool.agents: expected text as a name, got {name!r}; write it in quotes")
    check_accounts(plain.get("limits"))
    try:
        config = msgspec.convert(plain, Config)
    except msgspec.ValidationError as error:
        raise _readable(str(error), plain) from error
    _check_values(config)
    return config


def _readable(message: str, plain: Any) -> InputError:
    """Words a validation error with the key as the user writes it, and the value."""
    if found := _UNKNOWN.fullmatch(message):
        key, place = found[1], found[2] or ""
        fields = _fields_at(place)
        return unknown_name(f"{place} key" if place else "key", key, fields)
    if found := _WRONG.fullmatch(message):
        place, value = _found_at(found[3] or "configuration", plain)
        if value is None and place in ("pool", "pool.agents"):
            return _no_agents()
        wanted = found[1].replace(" | null", " or null").replace("object", "a mapping")
        return InputError(f"{place}: expected {wanted}, got {value!r}")
    if found := _MISSING.fullmatch(message):
        key = f"{found[2]}.{found[1]}" if found[2] else found[1]
        if key in ("pool", "pool.agents"):
            return _no_agents()
        return InputError(f"{key}: expected a value, got none; set it with {key}=VALUE")
    return InputError(message)


def _no_agents() -> InputError:
    return InputError("pool.agents: expected at least one agent, got none; name a pool, as pool=random")


def _found_at(place: str, plain: Any) -> tuple[str, Any]:
    """A place as the user writes it, and the value there; the validator names no key of a mapping."""
    value = plain
    for part in re.findall(r"\.\.\.|[^.\[\]]+", place):
        if isinstance(value, list):
            value = value[int(part)]
        elif isinstance(value, dict):
            # "...": some member of pool.agents, the first that is no mapping.
            key = (
                next((k for k, v in value.items() if not isinstance(v, dict)), "") if part == "..." else part
            )
            place = place.replace("[...]", f".{key}", 1) if part == "..." else place
            value = value.get(key)
    return place, value


def _fields_at(place: str) -> Sequence[str]:
    kind: Any = Config
    for part in filter(None, place.split(".")):
        kind = next(f.type for f in msgspec.structs.fields(kind) if f.name == part)
    return [f.name for f in msgspec.structs.fields(kind)]


def _check_values(config: Config) -> None:
    """What a type does not say."""
    _check_numbers(config)
    on_fault, anchor = config.deadlines.on_fault, config.rating.anchor
    if on_fault not in ON_FAULT:
        raise unknown_name("deadlines.on_fault", on_fault, ON_FAULT)
    if anchor is not None and anchor not in config.pool.agents:
        raise unknown_name("agent in rating.anchor:", anchor, config.pool.agents)
    if is_address(config.run.root):
        check_address(config.run.root)
    for name, settings in config.pool.agents.items():
        if not name.strip() or len(name) > 80 or name[0] == "-" or _UNFIT.search(name):
            raise InputError(
                "pool.agents: expected a name of 1 to 80 characters without =, control characters and line "
                f"ends, and no - first, got {name!r}"
            )
        _refuse_secrets(f"pool.agents.{name}", settings)


def _check_numbers(config: Config) -> None:
    d, c, rating = config.deadlines, config.cluster, config.rating
    positive = {
        "deadlines.decision_s": d.decision_s,
        "deadlines.retry_s": d.retry_s,
        "deadlines.episode_timeout_s": d.episode_timeout_s,
        "cluster.workers": c.workers,
        "cluster.episodes_in_flight": c.episodes_in_flight,
        "cluster.max_attempts": c.max_attempts,
        "tracking.every_s": config.tracking.every_s,
        "store.shard_mb": config.store.shard_mb,
        "store.seal_every_s": config.store.seal_every_s,
        "limits.spend_usd": config.limits.spend_usd,
    }
    for key, value in positive.items():
        if value is not None and not 0 < value < math.inf:
            raise InputError(f"{key}: expected a finite number above 0, got {value!r}")
    if c.address is None and c.workers is not None and c.workers > _MOST_LOCAL_WORKERS:
        raise InputError(
            f"cluster.workers: expected at most {_MOST_LOCAL_WORKERS} on one machine, got {c.workers}; more "
            "belong on a cluster: cluster.address=ADDRESS"
        )
    if not 0 < d.play_fraction <= 1:
        raise InputError(f"deadlines.play_fraction: expected a number in (0, 1], got {d.play_fraction!r}")
    if not 0 <= d.min_batch_spacing_s < math.inf:
        raise InputError(f"deadlines.min_batch_spacing_s: expected 0 or more, got {d.min_batch_spacing_s!r}")
    if not math.isfinite(rating.anchor_elo):
        raise InputError(f"rating.anchor_elo: expected a finite number, got {rating.anchor_elo!r}")
    if not 0 < rating.confidence < 1:
        raise InputError(f"rating.confidence: expected a number in (0, 1), got {rating.confidence!r}")


def _refuse_secrets(place: str, settings: Mapping[str, Any]) -> None:
    """A run keeps its configuration: a key in it would lie on disk and in MLflow for ever."""
    for key, value in settings.items():
        inner = value if isinstance(value, list) else [value]
        for item in inner:
            if isinstance(item, Mapping):
                _refuse_secrets(f"{place}.{key}", item)
        if isinstance(value, Mapping):
            continue
        if is_secret(str(key), value):
            raise InputError(
                f"{place}.{key}: a run keeps its configuration, so no secret may be in it; put the value "
                f"into an environment variable and name that one: {key}_env: MY_{str(key).upper()}"
            )
