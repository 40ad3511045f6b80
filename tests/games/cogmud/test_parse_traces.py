"""Recorded sentences and tables of characters: what differs from our reading is found at its place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cogeval.testing.compare import plain
from cogeval.testing.trace_files import Record
from cogeval.testing.traces import check_record, kind_of


def case(sentence: str, **context: Any) -> dict[str, Any]:
    return {
        "context": {
            "names": ["Tinker", "Gasket", "Bolt", "Rivet", "Widget", "Piston"],
            "rooms": [3, 1, 2, 3, 4, 5],
            "turn": 4,
            "seat": 0,
            "offers": [
                {"from": 2, "to": 0, "postedTurn": 3},
                {"from": 3, "to": 0, "postedTurn": 4},
                {"from": 4, "to": 1, "postedTurn": 3},
            ],
        }
        | context,
        "sentence": sentence,
    }


def rebuilt(record: dict[str, Any]) -> dict[str, Any]:
    kind = kind_of(Path("made"), Record("line 1", record))
    return plain(kind.rebuild(record))


def differences(record: Any) -> list[str]:
    kind = kind_of(Path("made"), Record("line 1", record))
    return [what.field for what in check_record(Record("line 1", record), kind, Counter())]


def test_a_case_is_read_in_its_context() -> None:
    whole = rebuilt(case('I accept. "Done!"'))
    assert (whole["rest"], whole["tokens"]) == ("I accept.  ", ["i", "accept"])
    assert whole["intent"]["other"] == 2  # the only offer that was posted last turn
    assert (whole["intent"]["room"], whole["intent"]["spoken"]) == (3, "Done!")
    assert not differences(whole)


@pytest.mark.parametrize(
    ("part", "field", "wrong"),
    [
        (None, "rest", "I accept"),
        (None, "tokens", ["i", "agree"]),
        ("intent", "kind", "say"),
        ("intent", "coin", 1),
        ("intent", "reason", "no_verb"),
    ],
)
def test_a_difference_is_found_at_its_place(part: str | None, field: str, wrong: object) -> None:
    whole = rebuilt(case("I accept."))
    (whole[part] if part else whole)[field] = wrong
    assert [path.split("[")[0] for path in differences(whole)] == [f"{part}.{field}" if part else field]


@pytest.mark.parametrize(
    ("context", "field"),
    [
        ({"seat": 6}, "context.seat"),
        ({"seat": "0"}, "context.seat"),
        ({"rooms": [9, 1, 2, 3, 4, 5]}, "context.rooms[0]"),
        ({"names": ["Tinker"]}, "context.names[1]"),
        ({"offers": [{"from": 7, "to": 0, "postedTurn": 3}]}, "context.offers[0].from"),
        ({"offers": [{}]}, "context.offers[0].to"),
        ({"turn": None}, "context.turn"),
    ],
)
def test_an_unusable_context_is_named(context: dict[str, Any], field: str) -> None:
    assert differences(case("I wait.", **context)) == [field]


def test_the_tables_of_characters_are_compared_whole() -> None:
    tables = rebuilt({"isAlpha": []})
    assert not differences(tables)
    assert tables["isWhiteSpace"] == tables["stripLeading"] == tables["stripTrailing"]
    tables["toLower"].pop()
    assert [path.split("[")[0] for path in differences(tables)] == ["toLower"]
