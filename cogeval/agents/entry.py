"""One agent of a pool, ready to sit down anywhere: what the run records of it, and its seat.

Invariant: an entry is a value that pickles; the agents themselves are born in the episode.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cogeval.core.agent import SeatAgent, Seated
from cogeval.core.game import Json
from cogeval.core.record import canonical_json
from cogeval.errors import InputError, unknown_name


class AgentEntry(msgspec.Struct, frozen=True):
    """One agent of a pool."""

    name: str  # in the pool
    kind: str  # a key of AGENTS
    version: str  # the user's own label, or the code's
    fingerprint: str  # 16 hexadecimal digits
    parameters: Mapping[str, Json]  # resolved
    seated: Seated

    def describe(self) -> dict[str, Json]:
        """What the manifest keeps of the agent."""
        return {
            "name": self.name,
            "kind": self.kind,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "parameters": dict(self.parameters),
            "deterministic": self.seated.deterministic,
        }


def make_entry(
    name: str,
    kind: str,
    agent: SeatAgent,
    *,
    code: str,
    version: str,
    parameters: Mapping[str, Json],
    deterministic: bool,
    is_model: bool = False,
) -> AgentEntry:
    """Makes an entry and its fingerprint.

    Args:
        name: in the pool.
        kind: a key of AGENTS.
        agent: what sits in the seat.
        code: identity of the code that decides (a version or a source digest).
        version: the user's own label.
        parameters: resolved parameters, JSON values.
        deterministic: equal requests give equal replies.
        is_model: calls a model.
    """
    identity = canonical_json([kind, code, version, dict(parameters)])
    return AgentEntry(
        name=name,
        kind=kind,
        version=version,
        fingerprint=hashlib.sha256(identity.encode()).hexdigest()[:16],
        parameters=parameters,
        seated=Seated(name, agent, deterministic, is_model),
    )


def take(
    name: str, kind: str, settings: Mapping[str, Json], allowed: Mapping[str, tuple[type, Json]]
) -> dict[str, Json]:
    """Reads the settings of an entry, with defaults.

    Args:
        name: in the pool, for messages.
        kind: of the agent, for messages.
        settings: what the user wrote.
        allowed: parameter -> (type, default).

    Returns:
        Every allowed parameter with its value.

    Raises:
        InputError: an unknown parameter or a value of another type.
    """
    for key in settings:
        if key not in allowed:
            raise unknown_name(f"parameter of agent kind {kind} in pool.agents.{name}:", key, allowed)
    values: dict[str, Json] = {}
    for key, (kind_of, default) in allowed.items():
        value = settings.get(key, default)
        if type(value) is not kind_of and (value is not None or key in settings):
            raise InputError(f"pool.agents.{name}.{key}: expected {kind_of.__name__}, got {value!r}")
        values[key] = value
    return values


def source_digest(path: Path) -> str:
    """Hashes the Python sources of a module's package: what the code version of an agent is.

    Args:
        path: the module's file; one in a package counts with the whole of the topmost package.

    Returns:
        16 hexadecimal digits.
    """
    root = path.parent
    if (root / "__init__.py").exists():
        while (root.parent / "__init__.py").exists():
            root = root.parent
        files = sorted(root.rglob("*.py"))
    else:
        files = [path]
    total = hashlib.sha256()
    for file in files:
        total.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return total.hexdigest()[:16]
