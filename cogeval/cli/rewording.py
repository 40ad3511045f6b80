"""Hydra's and OmegaConf's errors in the user's words: what was written, what is known, the way out.

Invariant: one line, and the override at fault is quoted. Must not know what the keys mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from hydra.errors import MissingConfigException, OverrideParseException

from cogeval.errors import InputError, unknown_name
from cogeval.tracking.places import without_password

_NO_KEY = re.compile(r"Could not override '(?P<key>[^']+)'")
_NO_DELETE = re.compile(r"Could not delete from config\. '(?P<key>[^']+)'")
_SEVERAL = re.compile(r"Ambiguous value for argument '(?P<override>.+)'")
_TWICE = re.compile(r"Multiple values for (?P<group>\S+)\.|Could not append to config")
_NO_TEXT_KEY = re.compile(r"Incompatible key type '\w+'\s+full_key: (?P<place>\S*)")
_MISSING_FILE = re.compile(r"Cannot find primary config '(?P<name>[^']+)'")


class Source(Protocol):
    """What the re-wording asks of a `Composer`."""

    def composed(self, overrides: Sequence[str]) -> Any:
        """Composes, with Hydra's own errors."""

    def options(self, group: str) -> list[str]:
        """The names that a group can take."""

    def groups(self) -> list[str]:
        """The names of the groups."""


def reword(error: Exception, overrides: Sequence[str], source: Source) -> InputError:
    """The error for the user.

    Args:
        error: as Hydra, OmegaConf or the YAML reader raised it.
        overrides: what the user wrote.
        source: composes what is not at fault, to know the keys.
    """
    if isinstance(error, InputError):
        return error
    text = str(error)
    if isinstance(error, MissingConfigException):
        return _missing_option(error, source)
    if isinstance(error, OverrideParseException):
        return _unreadable(error)
    if (mark := getattr(error, "problem_mark", None)) is not None:  # of the YAML reader
        problem = getattr(error, "problem", None) or "it breaks YAML's grammar"
        return InputError(f"{mark.name}, line {mark.line + 1}: cannot be read as YAML: {problem}")
    if found := _SEVERAL.match(text):
        written = found["override"]
        key, _, value = written.partition("=")
        return InputError(
            f"{written} names several values: add -m to play one run for each, or write '{key}=[{value}]' "
            "for a list"
        )
    culprit = _culprit(overrides, source)
    if found := _NO_KEY.match(text) or _NO_DELETE.match(text):
        return _unknown_key(found["key"], culprit, overrides, source)
    if _TWICE.match(text) and culprit and culprit.startswith("+"):
        return InputError(f"{culprit}: it is there already; write {culprit.lstrip('+')} to change it")
    place = f"{culprit}: " if culprit else ""
    if found := _NO_TEXT_KEY.match(str(error.__cause__)):
        return InputError(f"{place}{found['place']}: expected text as each key, got none or another type")
    if isinstance(error, UnicodeDecodeError):
        return InputError(f"{place}expected a file in UTF-8, got other bytes")
    first = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    if "Config group override must be" in text:
        if culprit and culprit.startswith("="):
            return InputError(f"expected KEY=VALUE, got {culprit!r}; for example seed=0")
        return InputError(f"{place}expected the name of an option after the =; see cogeval run --cfg job")
    return InputError(f"{place}the configuration cannot be composed: {first}")


def _missing_option(error: MissingConfigException, source: Source) -> InputError:
    """A group's option, or a primary configuration, that no file gives."""
    if found := _MISSING_FILE.search(str(error)):
        return unknown_name("configuration in --config-name:", found["name"], source.options(""))
    written = error.missing_cfg_file or ""
    within = [group for group in source.groups() if written.startswith(f"{group}/")]
    group = max(within, key=len, default="")
    name = written.removeprefix(f"{group}/") if group else written
    return unknown_name(group or "configuration", name, source.options(group))


def _unreadable(error: OverrideParseException) -> InputError:
    """An override that breaks Hydra's grammar."""
    if "=" not in error.override:
        return InputError(f"expected KEY=VALUE, got {error.override!r}; for example seed=0")
    key = error.override.partition("=")[0].lstrip("+~").strip()
    written = without_password(error.override)
    return InputError(
        f"expected KEY=VALUE, got {written!r}, whose value cannot be read; a number or word is "
        f"written {key}=3, a list '{key}=[1,2]', a text with other signs \"{key}='a, b'\""
    )


def _culprit(overrides: Sequence[str], source: Source) -> str | None:
    """The first override with which composing fails; None when it fails without any."""
    for i in range(len(overrides) + 1):
        try:
            source.composed(overrides[:i])
        except Exception:  # noqa: BLE001 - any failure is what is looked for
            return overrides[i - 1] if i else None
    return None


def _unknown_key(key: str, culprit: str | None, overrides: Sequence[str], source: Source) -> InputError:
    """A key that the configuration does not have: names those of the same place."""
    before = list(overrides[: overrides.index(culprit)]) if culprit in overrides else []
    config = source.composed(before)
    place: list[str] = []
    for part in key.split("."):
        if not hasattr(config, "keys"):
            return InputError(f"{'.'.join(place)} is a single value and has no key {part!r}")
        if part not in config:
            known = [str(k) for k in config]
            if not place:
                known = sorted({*known, *source.groups()})
            error = unknown_name(f"{'.'.join(place)} key".strip(), part, known)
            if place[:2] == ["pool", "agents"] and culprit and culprit[0] != "~":
                return InputError(f"{error}; to add one: +{culprit.lstrip('+')}")
            return error
        config = config[part]
        place.append(part)
    return InputError(f"{culprit or key}: the configuration cannot be composed")
