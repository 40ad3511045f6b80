"""R1.5: the tables in RULES.md say what `world.py` says; R3.6 to R3.9: every word that counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cogeval.games import cogmud
from cogeval.games.cogmud.grammar import parse
from cogeval.games.cogmud.state import Intent
from cogeval.games.cogmud.vocabulary import WORDS
from cogeval.games.cogmud.world import GOODS, KEEPERS, ROOMS

RULES = (Path(cogmud.__file__).parent / "RULES.md").read_text(encoding="utf-8")


def rows(first_column: str) -> list[list[str]]:
    """The cells of R1.5's table whose first column has this title."""
    section = RULES.partition("- R1.5 ")[2].partition("## R2 ")[0]
    (table,) = re.findall(rf"^\| {first_column} \|.*\n\|[-|]+\n((?:\|.*\n)+)", section, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_r1_5_rooms() -> None:
    assert rows("room") == [
        [
            str(i),
            room.name,
            ", ".join(room.keywords),
            "dark" if room.dark else "",
            ", ".join(map(str, room.exits)),
        ]
        for i, room in enumerate(ROOMS)
    ]


def test_r1_5_goods() -> None:
    assert rows("good") == [
        [str(i), good.name, ", ".join(good.keywords), str(good.value)] for i, good in enumerate(GOODS)
    ]


def test_r1_5_keepers_in_restock_order_with_their_opening_stock() -> None:
    assert rows("keeper") == [
        [
            str(i),
            keeper.name,
            ", ".join(keeper.keywords),
            str(keeper.room),
            ", ".join(f"{GOODS[good].name} {keeper.stock[good]}" for good in keeper.deals),
        ]
        for i, keeper in enumerate(KEEPERS)
    ]
    for keeper in KEEPERS:
        assert {good for good, units in enumerate(keeper.stock) if units} <= set(keeper.deals)


NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "hundred": 100,
    "both": 2,
    "couple": 2,
    "dozen": 12,
    "all": 999,
    "every": 999,
    "everything": 999,
}


def intent(sentence: str) -> Intent:
    return parse(sentence, ("Sprocket", "Gizmo", "Ratchet", "Widget", "Bolt", "Piston"), 0, 0, ())


@pytest.mark.parametrize(("word", "number"), NUMBERS.items())
def test_r3_8_every_number_word(word: str, number: int) -> None:
    assert intent(f"take {word} rope").qty == number


def test_r3_8_there_are_no_other_number_words() -> None:
    assert {token for token, word in WORDS.items() if word.count >= 0} == set(NUMBERS)


@pytest.mark.parametrize("word", ["coin", "coins", "gp", "silver", "piece", "pieces", "crown", "crowns"])
def test_r3_9_every_coin_word(word: str) -> None:
    assert intent(f"give Gizmo 7 {word}").coin == 7


@pytest.mark.parametrize("word", ["myself", "me", "self", "himself", "herself", "itself", "yourself"])
def test_r3_6_every_reflexive(word: str) -> None:
    assert intent(f"rob {word}").reason == "self_target"
