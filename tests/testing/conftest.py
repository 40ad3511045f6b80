from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture(scope="session")
def golden_folder() -> Path:
    return GOLDEN


@pytest.fixture(scope="session")
def own_traces() -> Path:
    return GOLDEN / "cogchemists" / "traces.jsonl"


@pytest.fixture(scope="session")
def cogmud_traces() -> Path:
    return GOLDEN / "cogmud" / "traces.jsonl"


@pytest.fixture(scope="session")
def cogmud_records(cogmud_traces: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in cogmud_traces.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def own_records(own_traces: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in own_traces.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def recorded_folder() -> Path:
    folder = Path(os.environ.get("COGEVAL_TRACES", ROOT.parent / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip("recorded traces of the hosted games are not beside this checkout (set COGEVAL_TRACES)")
    return folder
