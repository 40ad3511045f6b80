"""How a run begins: its name, its directory, and its manifest last.

Invariant: what has a manifest has everything else that a run begins with, and no run is made twice.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cogeval.errors import InputError
from cogeval.store.places import Place, PlaceLike, place_at
from cogeval.store.roots import LATEST, MANIFEST, SHARDS, call
from cogeval.store.shards import SCHEMA_VERSION, checked_json

CONFIG: Final = "config.yaml"
_RUN_ID = re.compile(r"\w[\w.+@-]{0,99}")  # what every later command takes as it is


def new_run_id(config_digest: str) -> str:
    """A run id that no other run has and that sorts by time.

    Args:
        config_digest: hexadecimal digest of the resolved configuration.

    Returns:
        For example ``20250131T235959-1a2b3c4d-9f8e7d``: UTC time, digest prefix, random suffix.
    """
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{config_digest[:8]}-{secrets.token_hex(3)}"


def create_run(root: PlaceLike, run_id: str, manifest: Mapping[str, Any], config_yaml: str) -> Place:
    """Makes a new run; see `RunDir.create`.

    Raises:
        InputError: the run exists, or the root cannot be written.
        StoreFull: there is no room.
    """
    within = place_at(root)
    place = within.sub(run_id)
    if not _RUN_ID.fullmatch(run_id) or run_id == LATEST:
        raise InputError(
            f"expected a plain directory name as the run id, got {run_id!r}: 1 to 100 letters, digits "
            f"and . _ + @ -, with a letter, a digit or _ first, and not {LATEST!r}"
        )
    try:
        place.make(new=True)
        place.sub(SHARDS).make()
        config = config_yaml.encode()
        place.publish(CONFIG, config, replace=False)
        whole = {
            **manifest,
            "run_id": run_id,
            "created": datetime.now(UTC).isoformat(timespec="microseconds"),
            "schema_version": SCHEMA_VERSION,
            "config_sha256": hashlib.sha256(config).hexdigest(),
        }
        place.publish(MANIFEST, checked_json(whole), replace=False)
    except FileExistsError as error:
        if place.exists():
            raise InputError(
                f"run {run_id} exists in {within.where()} and is never overwritten; choose another id, "
                f"or go on with `cogeval resume {call(place)}`"
            ) from error
        raise _unwritable(within, error) from error
    except OSError as error:
        raise _unwritable(within, error) from error
    return place


def _unwritable(root: Place, error: OSError) -> InputError:
    return InputError(
        f"expected a directory that can be written as run.root, got {root.where()!r}: {error.strerror}; "
        "give another with run.root=DIR"
    )
