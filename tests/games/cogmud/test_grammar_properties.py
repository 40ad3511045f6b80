"""R3 for any text at all: what holds of every sentence, and what reading it may cost."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cogeval.games.cogmud import grammar
from cogeval.games.cogmud.grammar import KEPT_LENGTH, KINDS, parse
from cogeval.games.cogmud.state import Intent
from cogeval.games.cogmud.vocabulary import COIN_WORDS, NUMBERS, OFFER_WORDS, REFLEXIVES, VERBS, phrases
from cogeval.games.cogmud.words import lifted, words
from cogeval.games.cogmud.world import GOODS, KEEPER_IN, KEEPERS, ROOMS, SEATS
from cogeval.games.league import ALIASES

NAMES = ("Tinker", "Gasket", "Bolt", "Rivet", "Widget", "Piston")
SMITHY = 3


def read(sentence: str, *, room: int = 0, senders: tuple[int, ...] = ()) -> Intent:
    return parse(sentence, NAMES, 0, room, senders)


# Sentences made of the words that the grammar knows, some with a quoted span, and any text.
_KNOWN = sorted(
    {*VERBS, *NUMBERS, *REFLEXIVES, *COIN_WORDS, *OFFER_WORDS, "for", "in", "over", "down", "nothing"}
    | {" ".join(phrase.words) for phrase in phrases()}
    | {*map(str.lower, ALIASES), "pockets", "purse", "i", "then", "0", "7", "999", "gasket's", "fen's", "the"}
)
plain = st.lists(st.sampled_from(_KNOWN), max_size=12).map(" ".join)
quoted = st.builds(
    lambda before, mark, inside, after: f"{before} {mark}{inside}{mark} {after}",
    plain,
    st.sampled_from('"“„«'),
    plain,
    plain,
)
anything = st.text(st.characters(exclude_categories=()), max_size=300)
sentences = plain | quoted | anything
rooms = st.integers(0, len(ROOMS) - 1)
seats = st.integers(0, SEATS - 1)
offers = st.lists(seats, max_size=2).map(tuple)


def silent(intent: Intent) -> Intent:
    """The intent without its words."""
    return msgspec.structs.replace(intent, spoken="")


@given(sentences, seats, rooms, offers)
def test_r3_any_text_is_read(sentence: str, seat: int, room: int, senders: tuple[int, ...]) -> None:
    intent = parse(sentence, NAMES, seat, room, senders)
    assert intent.kind in (*KINDS, "none")
    assert (intent.kind == "none") == (intent.reason != "ok")
    assert intent == parse(sentence, NAMES, seat, room, senders)


@given(sentences, seats, rooms, offers)
def test_r3_no_slot_holds_what_is_not_named(
    sentence: str, seat: int, room: int, senders: tuple[int, ...]
) -> None:
    intent = parse(sentence, NAMES, seat, room, senders)
    said = words(lifted(sentence)[0])
    amounts = {NUMBERS.get(word, int(word) if word.isdecimal() and word.isascii() else -1) for word in said}
    if intent.to_room >= 0:
        assert {*ROOMS[intent.to_room].keywords} & {*said}
    if intent.item >= 0:
        assert {*GOODS[intent.item].keywords} & {*said}
    if intent.npc >= 0 and not {*KEEPERS[intent.npc].keywords} & {*said}:
        assert intent.kind in ("buy", "sell", "quest")
        assert intent.npc == KEEPER_IN[room]
    if intent.other >= 0 and NAMES[intent.other].lower() not in said:
        by_reflexive = intent.other == seat and REFLEXIVES & {*said}
        assert by_reflexive or (intent.kind == "accept" and senders == (intent.other,))
    assert intent.qty == 1 or intent.qty in amounts
    assert intent.coin == 0 or intent.coin in amounts or (intent.kind == "hire" and intent.coin == 1)
    assert intent.spoken in sentence


@given(sentences, rooms, offers)
def test_r3_1_the_words_mean_what_the_sentence_means(
    sentence: str, room: int, senders: tuple[int, ...]
) -> None:
    said = words(lifted(sentence)[0])
    assume(said and not any(word.endswith("'s") for word in said))  # a second 's would go, too
    again = read(" ".join(said), room=room, senders=senders)
    assert silent(again) == silent(read(sentence, room=room, senders=senders))


@given(plain | quoted, rooms, offers)
def test_r3_1_capitals_mean_the_same(sentence: str, room: int, senders: tuple[int, ...]) -> None:
    loud = read(sentence.upper(), room=room, senders=senders)
    assert silent(loud) == silent(read(sentence, room=room, senders=senders))


@given(plain, rooms, offers)
def test_r3_3_a_last_word_that_is_in_no_table_changes_nothing(
    sentence: str, room: int, senders: tuple[int, ...]
) -> None:
    assume(sentence)
    longer = read(f"{sentence} hmm", room=room, senders=senders)
    assert silent(longer) == silent(read(sentence, room=room, senders=senders))


@given(plain, seats, st.permutations(range(SEATS)), st.integers(0, SEATS - 1))
def test_r3_5_seats_are_only_numbers(sentence: str, seat: int, order: list[int], sender: int) -> None:
    """Whoever sits elsewhere under the same alias is meant by the same words."""
    here = parse(sentence, NAMES, seat, SMITHY, (sender,))
    moved = [order.index(place) for place in range(SEATS)]  # where each seat of NAMES went
    there = parse(sentence, tuple([NAMES[place] for place in order]), moved[seat], SMITHY, (moved[sender],))
    assert there == msgspec.structs.replace(here, other=-1 if here.other < 0 else moved[here.other])


@given(plain, seats, rooms, offers)
def test_r3_what_is_kept_is_what_is_read(
    sentence: str, seat: int, room: int, senders: tuple[int, ...]
) -> None:
    padded = sentence + " " * (KEPT_LENGTH + 1 - len(sentence))
    assert silent(parse(padded, NAMES, seat, room, senders)) == silent(
        parse(sentence, NAMES, seat, room, senders)
    )


def test_r3_long_sentences_are_not_kept_and_the_others_within_bounds() -> None:
    kept = grammar._plan_of_anyone.cache_info(), grammar._plan_of_seat.cache_info()
    read("I rob Bolt" + " " * KEPT_LENGTH)
    assert (grammar._plan_of_anyone.cache_info(), grammar._plan_of_seat.cache_info()) == kept
    assert all(info.maxsize is not None for info in kept)


@pytest.mark.parametrize(
    "pattern",
    [
        "a",
        "7",
        "0",
        "'",
        "'s ",
        '"',
        "漢",
        "the ",
        "cut ",
        "slip turn do set have pay ",
        "rope bolt for 5 coins docks ",
    ],
)
def test_r3_a_very_long_sentence_takes_no_long_time(pattern: str) -> None:
    sentence = pattern * (100_000 // len(pattern))
    start = time.process_time()
    read(sentence)
    assert time.process_time() - start < 1.0
