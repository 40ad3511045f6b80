"""R3.1, R3.2: the letters of the league's own language, words, and what is lifted out between quotes."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogeval.games.cogmud.letters import folded, is_letter, letter_ranges, small, small_forms
from cogeval.games.cogmud.words import lifted, words

ALL_CODES = range(0x11_0000)
NUM_LETTERS = 125_643
NUM_CAPITALS = 1_348
FOLDED_SHA256 = "b6d33b3c8e8f9568818c557eb02d5abfb8d2c38c131d862df65d53b52b06c966"

anything = st.text(st.characters(exclude_categories=()))
marked = st.text(st.sampled_from("aBs \u2019'\"“”„«»\t.1é"))


def small_letters() -> str:
    """Every code point that can be written down, as its small form if it is a letter and a blank if not."""
    return "".join(
        chr(small(code)) if is_letter(code) else " " for code in ALL_CODES if not 0xD800 <= code < 0xE000
    )


def test_r3_1_the_tables_are_whole() -> None:
    assert len(list(letter_ranges())) == 609
    assert sum(end - start for start, end in letter_ranges()) == NUM_LETTERS
    assert len(dict(small_forms())) == NUM_CAPITALS
    assert hashlib.sha256(small_letters().encode()).hexdigest() == FOLDED_SHA256


def test_r3_1_every_capital_is_a_letter_with_a_small_letter_of_its_own() -> None:
    assert all(is_letter(code) and is_letter(form) for code, form in small_forms())
    assert all(small(form) == form for _, form in small_forms())


def test_r3_1_folding_is_the_tables_digits_and_apostrophes() -> None:
    kept = {"\u2019": "'", "'": "'"} | {digit: digit for digit in "0123456789"}
    wrong = [
        hex(code)
        for code in ALL_CODES
        if folded(chr(code)) != kept.get(chr(code), chr(small(code)) if is_letter(code) else " ")
    ]
    assert not wrong


def test_r3_1_no_letter_is_a_blank_to_python() -> None:
    assert not [hex(code) for code in ALL_CODES if is_letter(code) and chr(code).isspace()]


@pytest.mark.parametrize(
    ("character", "form"),
    [
        ("A", "a"),
        ("\u0130", "i"),  # capital dotted I: one for one, Python gives two
        ("\u0131", "\u0131"),  # small dotless i
        ("\u212a", "k"),  # Kelvin
        ("\u212b", "å"),  # Angstrom
        ("Σ", "\u03c3"),  # never the final one
        ("ẞ", "ß"),
        ("ǅ", "ǆ"),
        ("Ω", "ω"),
        ("漢", "漢"),
        ("\u9fff", " "),  # a letter only in later tables
        ("\U0002fa1d", "\U0002fa1d"),  # the last letter there is
        ("\U0002fa1e", " "),
        ("\u0301", " "),  # an accent by itself
        ("²", " "),
        ("\uff12", " "),  # a digit elsewhere
        ("\u0663", " "),
        ("Ⅷ", " "),
        ("Ⓐ", " "),
        ("_", " "),
        ("\0", " "),
        ("\u200f", " "),  # right-to-left mark
        ("\ud800", " "),  # half of a pair
        ("\u2018", " "),  # the left one is no apostrophe
    ],
)
def test_r3_1_small_forms_at_the_edges(character: str, form: str) -> None:
    assert folded(character) == form


@given(anything)
def test_r3_1_folding_keeps_the_length_and_is_final(text: str) -> None:
    assert len(folded(text)) == len(text)
    assert folded(folded(text)) == folded(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("Two lamps, please!", ["two", "lamps", "please"]),
        ("rope-and-salt 3x", ["rope", "and", "salt", "3x"]),
        ("Oda's", ["oda"]),
        ("ODA\u2019S hide", ["oda", "hide"]),
        ("the smiths' rope", ["the", "smiths", "rope"]),
        ("they're 'here'", ["they're", "here"]),
        ("'s", []),
        ("' '' '''", []),
        ("s' 's's", ["s", "s"]),
        ("fen's's", ["fen's"]),
        ("'fen's'", ["fen's"]),
        ("fen''s", ["fen"]),
        ("na\u00efve nai\u0308ve", ["naïve", "nai", "ve"]),
    ],
)
def test_r3_1_words(text: str, found: list[str]) -> None:
    assert words(text) == found


@given(anything | marked)
def test_r3_1_words_are_small_letters_digits_and_inner_apostrophes(text: str) -> None:
    for word in words(text):
        assert word
        assert word == folded(word)
        assert " " not in word
        assert word == word.strip("'")


@given(marked)
def test_r3_1_words_of_words_are_the_same_but_for_a_second_s(text: str) -> None:
    once = words(text)
    twice = words(" ".join(once))
    assert twice == [word.removesuffix("'s").strip("'") for word in once]
    assert (twice == once) == (not any(word.endswith("'s") for word in once))


@pytest.mark.parametrize(
    ("sentence", "rest", "spoken"),
    [
        ("I nod.", "I nod.", ""),
        ('I nod, "yes" twice', "I nod,   twice", "yes"),
        ('"one" and "two"', '  and "two"', "one"),
        ("I say “ at noon\u3000” then", "I say   then", "at noon"),
        ("„tief” «» ”", '  "" "', "tief"),
        ("«left“ right»", '  right"', "left"),
        ('open " end', 'open " end', ""),
        ("open „ end", 'open " end', ""),
        ('I say ""', "I say  ", ""),
        ('" \u00a0 " rope', "  rope", ""),
        (
            "'single' \u2018marks\u2019 \u2039are\u203a none",
            "'single' \u2018marks\u2019 \u2039are\u203a none",
            "",
        ),
    ],
)
def test_r3_2_the_first_quoted_span_is_lifted(sentence: str, rest: str, spoken: str) -> None:
    assert lifted(sentence) == (rest, spoken)


@given(anything | marked)
def test_r3_2_lifting_takes_one_span_or_nothing(sentence: str) -> None:
    rest, spoken = lifted(sentence)
    straight = sentence.translate(str.maketrans("“”„«»", '"""""'))
    if straight.count('"') < 2:
        assert (rest, spoken) == (straight, "")
    else:
        before, quoted, after = straight.split('"', 2)
        assert rest == f"{before} {after}"
        assert spoken in sentence
        assert len(spoken) <= len(quoted)
