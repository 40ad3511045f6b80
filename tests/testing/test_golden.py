"""Golden playthroughs: every game has them, and nothing changes in one unnoticed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cogeval.core.game import AnyGame
from cogeval.games import GAMES
from cogeval.testing import golden


def test_every_playthrough_comes_out_as_it_is_written(golden_folder):
    assert list(golden.differences(golden_folder)) == []


def test_every_game_has_playthroughs():
    assert {each.game for each in golden.playthroughs()} == set(GAMES)


def test_every_named_parameter_set_is_of_a_game():
    assert set(golden.PARAMETER_SETS) <= set(GAMES)


def test_a_game_without_golden_files_fails(golden_folder, monkeypatch):
    makers: dict[str, Callable[..., AnyGame]] = {**GAMES, "newcomer": GAMES["cogchemists"]}
    monkeypatch.setattr(golden, "GAMES", makers)
    found = list(golden.differences(golden_folder))
    assert len(found) == 3
    assert all("newcomer" in line and "make golden" in line for line in found)


def test_a_changed_missing_or_left_over_file_is_named(tmp_path, capsys):
    golden.write(tmp_path)
    changed = tmp_path / "cogchemists" / "default_baselines.jsonl"
    changed.write_text(changed.read_text().replace('"coin_delta": -1', '"coin_delta": -2', 1))
    (tmp_path / "cogchemists" / "default_random.jsonl").unlink()
    (tmp_path / "cogchemists" / "left_over.jsonl").write_text("{}\n")
    assert golden.main(["--folder", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert f"{changed}, line 2: expected ..." in out
    assert "default_random.jsonl: expected a golden file, got none" in out
    assert "left_over.jsonl" in out
    assert "3 golden files differ" in out


@pytest.mark.parametrize("cut", [-1, None])
def test_a_file_of_another_length_is_named(cut, tmp_path):
    golden.write(tmp_path)
    file = tmp_path / "cogchemists" / "default_stopped.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:cut] if cut else [*lines, lines[-1]]))
    (found,) = golden.differences(tmp_path)
    assert found.startswith(str(file))
