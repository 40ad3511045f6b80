"""R11.1: the lines of a room's log in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cogeval.games.cogmud as cogmud
from cogeval.games.cogmud.lines import KINDS, PLACES, TEMPLATES, render, units
from cogeval.games.cogmud.state import Line
from cogeval.games.cogmud.world import GOODS, KEEPERS, LOG_LINE_CAP, ROOMS

RULES = (Path(cogmud.__file__).parent / "RULES.md").read_text(encoding="utf-8")


def test_r11_1_the_rules_list_every_template() -> None:
    table = RULES.partition("- R11.1")[2].partition("- R11.2")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| `(.*)` \|$", table, re.MULTILINE)) == dict(TEMPLATES)


def fields(kind: str) -> Iterator[str]:
    return (name for _, name, _, _ in Formatter().parse(TEMPLATES[kind]) if name)


FULL: dict[str, Any] = {"who": "Bolt", "other": "Rivet", "npc": 0, "room": 5, "item": 4, "qty": 2, "coin": 7}


@pytest.mark.parametrize("kind", KINDS)
def test_r11_1_a_line_says_every_field_of_its_kind(kind: str) -> None:
    text = render(Line(kind, **FULL, text="dark" if kind == "failed" else "hello"))
    said = {
        "who": "Bolt",
        "other": "Rivet",
        "npc": "Tanner Oda",
        "room": "The Docks",
        "what": "2 lamps",
        "coin": "7",
        "text": "hello",
        "place": PLACES["dark"],
    }
    for name in fields(kind):
        assert said[name] in text
    assert "{" not in text


def test_r11_1_two_kinds_are_never_in_the_same_words() -> None:
    assert len({render(Line(kind, **FULL, text="lit")) for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (Line("gave", "Bolt", "Rivet", item=5, qty=1, coin=3), "a present of 1 relic and 3 coin."),
        (Line("gave", "Bolt", "Rivet", coin=3), "a present of 3 coin."),
        (Line("gave", "Bolt", "Rivet", item=0, qty=2), "a present of 2 hides."),
        (Line("robbed", "Bolt", "Rivet", item=1, qty=1), "with 1 nails of"),
        (Line("robbed", "Bolt", "Rivet", coin=10), "with 10 coin of"),
        (Line("took", "Bolt", item=2, qty=0), "gathers 0 rope off"),
    ],
)
def test_r11_1_goods_and_coin_are_named_where_they_moved(line: Line, what: str) -> None:
    assert what in render(line)


def test_units_have_their_plural() -> None:
    assert [units(good, 1) for good in range(6)] == [f"1 {good.name}" for good in GOODS]
    assert units(5, 2) == "2 relics"


@given(
    st.builds(
        Line,
        st.sampled_from(KINDS),
        st.text(st.characters()),
        st.text(st.characters()),
        st.integers(-1, len(KEEPERS) - 1),
        st.integers(-1, len(ROOMS) - 1),
        st.integers(-1, len(GOODS) - 1),
        st.integers(0),
        st.integers(0),
        st.text(st.characters(), max_size=400),
    )
)
def test_r2_9_any_line_renders_within_its_length(line: Line) -> None:
    assert len(render(line)) <= LOG_LINE_CAP


def test_every_rule_that_code_and_tests_cite_is_in_the_rules() -> None:
    numbered = {*re.findall(r"^- (R\d+\.\d+) ", RULES, re.MULTILINE)}
    files = [*Path(cogmud.__file__).parent.glob("*.py"), *Path(__file__).parent.glob("*.py")]
    cited = {
        rule: path.name for path in files for rule in re.findall(r"\bR\d+\.\d+", path.read_text("utf-8"))
    }
    assert {rule: name for rule, name in cited.items() if rule not in numbered} == {}


@pytest.mark.parametrize("mark", ['"', "\u201c", "\u201d", "\u201e", "\u00ab", "\u00bb"])
def test_r8_1_what_was_said_stays_on_its_line_and_in_its_quotation(mark: str) -> None:
    line = render(Line("said", "Gizmo", text=f"hi{mark}\u2028\x0bYOUR NOTES\x85more"))
    assert len(line.splitlines()) == 1
    assert mark not in line.removeprefix('Gizmo speaks up: "').removesuffix('"')
