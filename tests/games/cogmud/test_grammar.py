"""R3: what a sentence means, by verb, guard, slot and number."""

from __future__ import annotations

import pytest

from cogeval.games.cogmud.grammar import KINDS, parse
from cogeval.games.cogmud.state import Intent
from cogeval.games.cogmud.vocabulary import (
    COIN_WORDS,
    NUMBERS,
    OFFER_WORDS,
    REFLEXIVES,
    VERBS,
    phrases,
)
from cogeval.games.cogmud.world import EVERYTHING, GOODS, KEEPER_IN, KEEPERS, ROOMS, SEATS

NAMES = ("Tinker", "Gasket", "Bolt", "Rivet", "Widget", "Piston")
ABSENT = "Gizmo"  # of the league, but not at this table
SELF, GASKET, BOLT, RIVET = 0, 1, 2, 3
SQUARE, KETTLE, ROW, SMITHY, YARD, DOCKS, ALLEY, CHAPEL, HALL = range(len(ROOMS))
HIDE, NAILS, ROPE, SALT, LAMP, RELIC = range(len(GOODS))
ODA, BRAM, NESH, FEN, VELL = range(len(KEEPERS))


def read(sentence: str, *, room: int = SQUARE, senders: tuple[int, ...] = ()) -> Intent:
    return parse(sentence, NAMES, SELF, room, senders)


def meaning(intent: Intent) -> str:
    return intent.reason if intent.kind == "none" else intent.kind


# What each verb means when its sentence goes on with something that suits every verb of its group.
COMPLETE = {
    "move": (
        "go goes going walk walks head heads move travel run ride enter cross return wander",
        "to the quay",
    ),
    "take": ("take takes pick picks grab collect scoop pocket lift", "up two lamps"),
    "drop": ("drop drops put discard leave", "two lamps"),
    "buy": ("buy buys purchase acquire pay", "for a coil with Nesh"),
    "sell": ("sell sells offload unload flog", "a coil at Nesh"),
    "give": ("give gives hand hands deliver delivers present donate have has", "a coil to Nesh"),
    "trade": ("offer offers propose trade swap barter", "Bolt a coil, six crowns"),
    "accept": ("accept accepts agree deal shake", "with Bolt"),
    "hire": ("hire hires employ retain engage", "Bolt"),
    "rob": ("rob robs steal stealing mug jump ambush waylay lift", "Bolt"),
    "quest": ("enquire inquire check consult read ask asks", "Vell"),
    "say": ("say says tell tells shout call announce whisper ask asks", "good evening"),
    "wait": ("wait waits rest linger idle listen watch stay look", "a bit"),
}


@pytest.mark.parametrize(
    ("kind", "verb", "rest"),
    [(kind, verb, rest) for kind, (verbs, rest) in COMPLETE.items() for verb in verbs.split()],
)
def test_r3_3_every_verb(kind: str, verb: str, rest: str) -> None:
    assert read(f"Then I {verb} {rest}.").kind == kind


def test_r3_3_the_verbs_are_these_and_those_with_guards() -> None:
    guarded = {"slip", "off", "make", "set", "turn", "cut", "do"}
    assert {verb for verbs, _ in COMPLETE.values() for verb in verbs.split()} | guarded == set(VERBS)
    assert set(COMPLETE) == set(KINDS)
    assert len(KINDS) == 13


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I slip into the church", "move"),
        ("From the church I slip", "move"),
        ("I slip between church and quay", "ambiguous_target"),
        ("I slip on ice", "no_verb"),
        ("off, church bells", "move"),
        ("off and on", "no_verb"),
        ("I make for the church", "move"),
        ("I make straight for the church", "no_verb"),
        ("I leave a lamp", "drop"),
        ("a lamp I leave", "drop"),
        ("I leave for the church", "move"),
        ("I leave a lamp in the church", "move"),
        ("in the church I leave a lamp", "move"),
        ("I leave lamps, an icon", "ambiguous_target"),
        ("I take a lamp", "take"),
        ("I take a lamp, Bolt, as we have a bargain", "accept"),
        ("on these terms, Bolt, I take a lamp", "accept"),
        ("I pick a lamp", "take"),
        ("I pick the pockets of Bolt", "rob"),
        ("pockets: I pick Bolt, a lamp", "take"),
        ("I lift a lamp", "take"),
        ("I lift a lamp from Bolt", "rob"),
        ("I lift a lamp over myself", "take"),
        ("As Tinker I lift a lamp from Bolt", "take"),
        (f"I lift a lamp from {ABSENT}", "take"),
        ("I set a lamp down", "drop"),
        ("I set a fine lamp down", "no_verb"),
        ("down I set a lamp", "no_verb"),
        ("I pay Bolt six crowns", "give"),
        ("I pay Nesh six crowns for a lamp", "buy"),
        ("Tinker will pay Bolt six crowns, Nesh, a lamp", "buy"),
        ("I turn a lamp over to Nesh", "give"),
        ("I turn in my lamp to Nesh", "give"),
        ("I turn left toward the church", "no_verb"),
        ("Nesh can have a lamp", "give"),
        ("Bolt has a lamp", "give"),
        ("myself, I have a lamp", "no_target"),
        ("I have a lamp", "no_verb"),
        (f"{ABSENT} has a lamp", "no_verb"),
        ("I cut the purses of Bolt", "rob"),
        ("I cut Bolt off", "no_verb"),
        ("purse strings I cut", "no_verb"),
        ("I ask Vell", "quest"),
        ("Vell, I ask you", "quest"),
        ("I ask Bolt", "say"),
        ("I do nothing", "wait"),
        ("I do next to nothing", "wait"),
        ("I do my best at nothing", "no_verb"),
        ("I cut and run to the church", "move"),  # the first verb that holds, not the first verb
        ("I walk to the church and wait", "move"),
        ("I wait, then walk to the church", "wait"),
    ],
)
def test_r3_3_guards(sentence: str, expected: str) -> None:
    assert meaning(read(sentence)) == expected


@pytest.mark.parametrize("token", sorted(OFFER_WORDS))
def test_r3_3_taking_what_was_offered_is_accepting(token: str) -> None:
    assert read(f"I take the {token} with a lamp", senders=(BOLT,)).kind == "accept"


@pytest.mark.parametrize("sentence", ["", " \t\r\n", "?!", "“”", "' 's", "\u2014\u200b", "²"])
def test_r3_1_no_word_is_unparsed(sentence: str) -> None:
    assert read(sentence) == Intent("none", reason="unparsed")


def test_r3_1_only_speech_is_saying() -> None:
    assert read("“Fresh rope, Bolt!” ...") == Intent("say", spoken="Fresh rope, Bolt!")


def test_r3_2_quoted_words_are_spoken_and_mean_nothing() -> None:
    assert read('I wait. "Go to the docks, Bolt" "and back"') == Intent(
        "wait", spoken="Go to the docks, Bolt"
    )
    assert read("juggle «rope»") == Intent("none", reason="no_verb", spoken="rope")


@pytest.mark.parametrize("sentence", ["I shout hello Bolt", '  I say ""  ', "whisper “now"])
def test_r3_2_saying_without_quotes_says_the_sentence(sentence: str) -> None:
    assert (read(sentence).kind, read(sentence).spoken) == ("say", sentence)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("three ropes, Bram", Intent("buy", ROPE, 3, BRAM)),
        ("Bram! ropes!", Intent("buy", ROPE, 1, BRAM)),
        ("ropes or skins, Bram", Intent("none", ROPE, 1, BRAM, reason="ambiguous_target")),
        ("ropes, Bram or Fen", Intent("none", ROPE, 1, BRAM, reason="ambiguous_target")),
        ("three ropes for the church", Intent("none", reason="no_verb")),
        ("Bram of the church", Intent("none", reason="no_verb")),
    ],
)
def test_r3_4_without_a_verb_a_good_and_a_keeper_are_a_purchase(sentence: str, expected: Intent) -> None:
    assert read(sentence) == expected


@pytest.mark.parametrize("phrase", list(phrases()), ids=lambda phrase: "-".join(phrase.words))
def test_r3_5_every_name_of_everything(phrase) -> None:
    sentence = f"I look at {' '.join(phrase.words)}"
    intent = read(sentence.upper())
    slot = {"room": intent.to_room, "good": intent.item, "keeper": intent.npc}[phrase.kind]
    assert (intent.kind, slot) == ("wait", phrase.id)


@pytest.mark.parametrize("seat", range(SEATS))
def test_r3_5_aliases_are_whole_words_in_any_case(seat: int) -> None:
    alias = NAMES[seat]
    for form in (alias, alias.upper(), alias.lower(), f"{alias}'s", f"({alias})"):
        assert read(f"I wait for {form}").other == seat
    assert read(f"I wait for {alias}s").other == -1


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("to the quay I walk from the church", CHAPEL),  # after the verb first
        ("to the quay I walk", DOCKS),  # then anywhere
        ("I walk past the chapel to the quay", CHAPEL),  # two words beat one
        ("I walk from Tanner's Row, the row of tanners", ROW),
        ("I walk along the well, the square, the market", SQUARE),  # one place under three names
    ],
)
def test_r3_5_the_longest_name_after_the_verb_counts(sentence: str, expected: int) -> None:
    assert (read(sentence).kind, read(sentence).to_room) == ("move", expected)


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("I walk to the inn or the yard", "ambiguous_target"),
        ("I walk", "no_target"),
        ("I take salt, oil", "ambiguous_target"),
        ("I take", "no_target"),
        ("I discard salt, oil", "ambiguous_target"),
        ("I discard it", "no_target"),
        ("I buy salt, oil from Nesh or Fen", "ambiguous_target"),
        ("I buy from Nesh or Fen", "no_target"),  # the good is tested first
        ("I buy salt from Nesh or Fen", "ambiguous_target"),
        ("I sell salt, oil", "ambiguous_target"),
        ("I give salt, oil to Nesh", "ambiguous_target"),
        ("I give salt to Nesh or Fen", "ambiguous_target"),
        ("I give salt to Nesh, Bolt and Rivet", "ambiguous_target"),
        ("I give salt, oil", "ambiguous_target"),
        ("I give Bolt", "no_target"),
        ("I give Bolt 0 crowns", "no_target"),
        ("I give salt", "no_target"),
        ("I trade salt with Bolt or Rivet", "ambiguous_target"),
        ("I trade salt", "no_such_cog"),
        ("I trade Bolt", "no_target"),
        ("I trade with Tinker", "self_target"),
        ("I trade with Tinker or Bolt", "ambiguous_target"),
        ("I hire Bolt or Rivet", "ambiguous_target"),
        ("I hire a hand", "no_such_cog"),
        ("I hire Tinker", "self_target"),
        ("I rob Bolt or Rivet", "ambiguous_target"),
        (f"I rob {ABSENT}", "no_such_cog"),
        ("I rob yourself", "self_target"),
        ("I accept Bolt or Tinker", "ambiguous_target"),
        ("I read of Vell and Fen", "ambiguous_target"),
    ],
)
def test_r3_7_why_a_sentence_cannot_be_read(sentence: str, reason: str) -> None:
    assert meaning(read(sentence)) == reason


def test_r3_5_what_matched_is_kept_though_the_sentence_cannot_be_read() -> None:
    assert read("I walk two relics from Fen to Bolt for 5, to inn or yard") == Intent(
        "none", RELIC, 2, FEN, BOLT, 5, KETTLE, "ambiguous_target"
    )


def test_r3_5_the_first_of_several_goods_is_offered() -> None:
    assert read("I offer Bolt salt or oil for 9") == Intent("trade", SALT, 1, other=BOLT, coin=9)


@pytest.mark.parametrize("reflexive", sorted(REFLEXIVES))
def test_r3_6_reflexives_are_the_speaker_unless_a_cog_is_named(reflexive: str) -> None:
    assert read(f"I wait by {reflexive}").other == SELF
    assert read(f"I wait by {reflexive} for Rivet").other == RIVET
    assert read(f"Rivet, I wait by {reflexive}").other == RIVET
    assert read(f"I wait by {reflexive} for {ABSENT}").other == SELF
    assert parse(f"I rob {reflexive}", NAMES, RIVET, 0, ()).other == RIVET


def test_r3_6_giving_to_or_accepting_from_oneself_names_nobody() -> None:
    assert read("I give me salt") == Intent("none", SALT, reason="no_target")
    assert read("I give Vell salt from me") == Intent("give", SALT, npc=VELL)
    assert read("I accept myself", senders=(BOLT,)) == Intent("accept", other=BOLT)
    assert read("I accept as Tinker") == Intent("none", reason="no_such_offer")
    assert read("I give Tinker or Bolt salt") == Intent("none", SALT, other=SELF, reason="ambiguous_target")


@pytest.mark.parametrize("room", range(len(ROOMS)))
@pytest.mark.parametrize(
    ("sentence", "kind", "reason"),
    [
        ("I buy salt", "buy", "no_target"),
        ("I sell salt", "sell", "no_target"),
        ("I enquire", "quest", "no_npc_here"),
    ],
)
def test_r3_7_the_keeper_of_the_room_is_meant(sentence: str, kind: str, reason: str, room: int) -> None:
    keeper = KEEPER_IN[room]
    assert (read(sentence, room=room).npc, meaning(read(sentence, room=room))) == (
        keeper,
        kind if keeper >= 0 else reason,
    )
    assert read(f"{sentence} with Fen", room=room).npc == FEN


@pytest.mark.parametrize(
    ("senders", "expected"),
    [
        ((), "no_such_offer"),
        ((RIVET,), "accept"),
        ((RIVET, BOLT), "no_such_offer"),
        ((BOLT, BOLT), "no_such_offer"),
    ],
)
def test_r3_7_the_only_offer_is_meant(senders: tuple[int, ...], expected: str) -> None:
    intent = read("I accept", senders=senders)
    assert (meaning(intent), intent.other) == (expected, RIVET if expected == "accept" else -1)
    assert read("I accept from Gasket", senders=senders) == Intent("accept", other=GASKET)


@pytest.mark.parametrize("word", sorted(NUMBERS))
def test_r3_8_number_words(word: str) -> None:
    assert read(f"I take {word} lamps").qty == NUMBERS[word]


@pytest.mark.parametrize(
    ("sentence", "qty"),
    [
        ("I take 0 lamps", 0),
        ("I take 0012 lamps", 12),
        (f"I take {2**63 - 1} lamps", 2**63 - 1),
        (f"I take {2**63} lamps", 1),
        (f"I take {'0' * 500}{2**63 - 1} lamps", 2**63 - 1),
        (f"I take {'7' * 5_000} lamps", 1),
        ("I take 3rd lamps", 1),
        ("I take -3 lamps", 3),
        ("I take 3.5 lamps", 3),
        ("I take ٣ lamps", 1),
        ("I take all the lamps", EVERYTHING),
        ("I take thirty five lamps", 30),
        ("I take a dozen lamps", 1),
        ("I take dozen lamps", 12),
        ("I take zero lamps", 1),
        ("I take lamps, 4", 1),  # only before the good
        ("4 times I take lamps", 4),  # even before the verb
        ("4 lamps I take, 5 relics", 4),
        ("relics I take, 5 lamps", 5),  # before the good of the slot
        ("I take 4", 4),  # no good: anywhere
        ("I wait by the church 6 hours", 6),
    ],
)
def test_r3_8_the_first_number_before_the_good(sentence: str, qty: int) -> None:
    assert read(sentence).qty == qty


@pytest.mark.parametrize("word", sorted(COIN_WORDS))
def test_r3_9_coin_words(word: str) -> None:
    assert read(f"I give Bolt 7 {word}") == Intent("give", qty=7, other=BOLT, coin=7)
    assert read(f"I give Bolt {word} 7").coin == 7


@pytest.mark.parametrize(
    ("sentence", "coin"),
    [
        ("I offer Bolt 2 lamps for 9", 9),
        ("I offer Bolt 2 lamps for nine", 9),
        ("I offer Bolt 2 lamps for about 9", 0),
        ("I offer Bolt 2 lamps for 9 and 4 crowns", 4),  # a coin word beats "for"
        ("I offer Bolt 2 lamps, 4 crowns 9", 4),  # a coin word belongs to the number before it
        ("I offer Bolt 2 lamps for all his coins", 0),
        ("I offer Bolt 2 lamps for all crowns", 0),
        ("I offer Bolt 2 lamps for 999", 0),
        ("I offer Bolt 2 lamps for everything, for 8", 8),
        ("I offer Bolt 2 lamps for 998", 998),
        ("I offer Bolt 2 lamps, a crown", 1),
        ("I offer Bolt a relic for one lamp", 1),
        ("I offer Bolt 2 lamps at 9 gold", 0),
        ("for Bolt, 2 lamps", 0),
        ("I give Bolt coins", 0),
    ],
)
def test_r3_9_coin(sentence: str, coin: int) -> None:
    assert read(sentence).coin == coin


def test_r3_9_a_hire_costs_at_least_a_coin_if_it_can_be_read() -> None:
    assert read("I hire Bolt").coin == 1
    assert read("I hire Bolt for 0 coins").coin == 1
    assert read("I hire Bolt for 12").coin == 12
    assert read("I hire").coin == 0
