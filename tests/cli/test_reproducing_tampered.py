"""`cogeval reproduce` on rows that were changed after the fact, checksums and all."""

from __future__ import annotations

from pathlib import Path

from reproduced_runs import CORNER, SMALL, record, tampered

from cogeval.core.record import canonical_json


def test_an_action_that_was_tampered_with_is_found_at_its_place(cogeval, place: Path) -> None:
    where: list[str] = []
    change = tampered(3, 2, where, CORNER)
    run = record(place, "tampered", *SMALL["cogz"], "~pool.agents.fickle", change=change)
    said = cogeval("reproduce", str(run.path))
    assert said.code == 1
    assert said.out.startswith("reproduced: 5 of 6 episodes, run digest equal")
    (place_line,) = [line for line in said.out.splitlines() if line.startswith("episode ")]
    assert place_line.startswith("episode 3, seed ")
    assert f", {where[0]} (" in place_line
    assert f"  recorded  agent: {canonical_json(CORNER)}\n" in said.out
    assert "  record    the recorded actions and scores do not give the recorded digest" in said.out
    (told,) = cogeval("reproduce", str(run.path), "--json").json["differences"]
    assert (told["index"], told["cause"]) == (3, "record")


def test_a_recorded_reply_that_was_tampered_with_is_the_records_fault(cogeval, place: Path) -> None:
    change = tampered(0, 1, [], CORNER, model="noise-1")
    pool = [f"~pool.agents.{name}" for name in ("balanced", "greedy_lowest", "lookahead", "random")]
    run = record(place, "retouched", *SMALL["cogz"], *pool, change=change)  # fickle sits in every episode
    said = cogeval("reproduce", str(run.path), "--json")
    assert said.code == 1
    assert [(told["index"], told["cause"]) for told in said.json["differences"]] == [(0, "record")]


def test_a_row_that_cannot_be_read_costs_its_own_episode(cogeval, place: Path) -> None:
    change = tampered(2, 1, [], {"no": "action"})
    run = record(place, "unreadable", *SMALL["cogz"], change=change)
    said = cogeval("reproduce", str(run.path))
    assert said.code == 1
    assert said.out.startswith("reproduced: 5 of 6 episodes")
    assert "  record    episode 2, phase 1, seat " in said.out
    assert "cannot be read" in said.out
