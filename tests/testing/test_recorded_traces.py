"""The rules are the hosted game's: its recorded episodes replay with no difference."""

from __future__ import annotations

import pytest

from cogeval.testing import traces

FILES = ("cogchemists*.jsonl.gz", "cogmud*.jsonl.gz", "nim_*.json", "heap_order.json")


@pytest.mark.parametrize("pattern", FILES)
def test_recorded_files_replay_with_no_difference(pattern, recorded_folder, capsys):
    files = sorted(recorded_folder.glob(pattern))
    assert files, f"no {pattern} in {recorded_folder}"
    code = traces.main([str(file) for file in files])
    assert code == 0, capsys.readouterr().out
