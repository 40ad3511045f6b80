"""What can become of a file of a shard on a disk."""

from __future__ import annotations

from pathlib import Path

import pytest


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES = [
    pytest.param(truncate, id="truncated"),
    pytest.param(flip, id="flipped"),
    pytest.param(Path.unlink, id="missing"),
]
