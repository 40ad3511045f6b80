"""What a model seat reads."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.prose import OUTCOMES, PHRASEBOOK, ROOM_TEXTS, outcome_text
from cogeval.games.cogmud.state import Line, Offer, State
from cogeval.games.cogmud.turn import OUTCOMES as WORDS
from cogeval.games.cogmud.view import observe
from cogeval.games.cogmud.world import GOODS, KEEPERS, ROOMS

Arrange = Callable[..., State]
Pack = Callable[..., tuple[int, ...]]


def section(user: str, title: str) -> str:
    """One section of the user text, without its title."""
    (found,) = [part for part in user.split("\n\n") if part.startswith(title)]
    return found.partition("\n")[2]


def test_the_rules_text_has_the_whole_map_and_the_phrasebook(square: State, game: Cogmud) -> None:
    system = game.prompt(game.observe(square, 0)).system
    for room in ROOMS:
        (line,) = [line for line in system.splitlines() if line.startswith(f"- {room.name}")]
        assert ("(dark)" in line) == room.dark
        assert line.endswith("to " + ", ".join(ROOMS[near].name for near in room.exits))
    for keeper in KEEPERS:
        assert f"{keeper.name} deals in {', '.join(GOODS[good].name for good in keeper.deals)}" in system
    for good in GOODS:
        assert f"{good.name} {good.value}" in system
    for _, sentence in PHRASEBOOK:
        assert sentence in system
    assert '{"action": "", "say": "", "notes": ""}' in system
    assert "lasts 14 turns" in system
    assert not re.search(r"\{\w*\}", system)


def test_the_rules_text_follows_the_parameters(square: State) -> None:
    def system(**parameters: object) -> str:
        game = Cogmud(**parameters)  # type: ignore[arg-type]
        return game.prompt(game.observe(square, 0)).system

    assert "lasts 9 turns" in system(turns=9)
    assert "ROBBERY is impossible" in system(thievery=False)
    assert "ROBBERY is impossible" not in system()
    assert 'leave "say" empty' in system(speech=False)
    assert 'leave "say" empty' not in system()


def test_the_user_text_shows_all_of_an_observation(
    square: State, game: Cogmud, arrange: Arrange, pack: Pack
) -> None:
    state = arrange(
        square,
        turn=3,
        room={0: 5, 1: 5},
        coin={0: 17},
        pack={0: pack(relic=1, hide=2)},
        delivered={0: (1, 2)},
        floor={5: pack(salt=3)},
        hint={0: True},
        employer={0: 4, 2: 0},
        bond={0: 1, 2: 2},
        offers=(Offer("trade", 1, 0, 4, 2, 9, 2), Offer("hire", 3, 0, -1, 0, 6, 2)),
        heard={5: (Line("left", "Widget", room=6), Line("said", "Gizmo", text='I "swear"'))},
        sentence={0: "I go to the moon."},
        outcome={0: "no_target"},
        notes={0: "trust Gizmo"},
    )
    user = game.prompt(game.observe(state, 0)).user
    assert user.startswith("Turn 4 of 14 (11 left, this one included). You are Sprocket.")
    assert "yours is number 4 of 6" in user
    assert section(user, "YOUR LAST SENTENCE").startswith('"I go to the moon."\n-> no_target: It names')
    you = section(user, "YOU\n")
    assert "Coin: 17\n" in you
    assert "2 hides, 1 relic (base value 26; 5 of 8 slots free)" in you
    assert "You serve Bolt: 1 turn more." in you
    assert "Ratchet serves you: 2 turns more." in you
    orders = section(user, "YOUR COMMISSIONS")
    assert "- 2 hides: 1 delivered, 1 outstanding, you carry 2" in orders
    assert "- 2 nails: 2 delivered, complete" in orders
    assert "told: Tanner Oda in Tanner's Row has the cheapest hides, at 4 coin for the first unit." in orders
    place = section(user, "YOU STAND IN THE DOCKS (dark)")
    assert ROOM_TEXTS[5] in place
    assert "Exits: Market Square, Warehouse Yard, Cutpurse Alley" in place
    assert "On the ground: 3 salt" in place
    assert "Other cogs here: Gizmo" in place
    assert "Shopkeeper: Dockmaster Fen, with 120 coin" in place
    assert "- relic: stock 3, you buy at 17, you sell at 11 (base 14)" in place
    heard = section(user, "HEARD HERE LAST TURN")
    assert heard == "- Widget walks off towards Cutpurse Alley.\n- Gizmo said:\n  \"I 'swear'\""
    offers = section(user, "OFFERS TO YOU")
    assert "- Gizmo would give you 2 lamps for 9 of your coin." in offers
    assert "- Widget would pay you 6 coin to serve it for 3 turns." in offers
    assert section(user, "YOUR NOTES") == "trust Gizmo"


def test_r6_4_a_good_that_no_shop_has_is_told(
    square: State, game: Cogmud, arrange: Arrange, pack: Pack
) -> None:
    state = arrange(square, hint={0: True}, stock={keeper: pack() for keeper in range(5)})
    assert "told: no shop in town has any hides." in game.prompt(game.observe(state, 0)).user


def test_a_shelf_that_is_sold_out_has_no_ask(
    square: State, game: Cogmud, arrange: Arrange, pack: Pack
) -> None:
    user = game.prompt(game.observe(arrange(square, room={0: 2}, stock={0: pack(salt=5)}), 0)).user
    assert "- hide: sold out, you sell at 8 (base 6)" in user


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=160))
def test_what_a_cog_says_stays_on_one_quoted_line(said: str) -> None:
    game = Cogmud()
    state = game.initial_state(0)
    heard = list(state.heard)
    heard[state.room[0]] = (Line("said", "Gizmo", text=said),)
    observation = observe(game._parameters, state, 0)
    quiet = game.prompt(observation).user.splitlines()
    from_cog = game.prompt(observe(game._parameters, _with(state, tuple(heard)), 0)).user.splitlines()
    added = [line for line in from_cog if line not in quiet]
    assert len(from_cog) == len(quiet) + 1  # two lines in the place of "none"
    assert any(line.startswith('  "') and line.endswith('"') and line.count('"') == 2 for line in added)


def _with(state: State, heard: tuple[tuple[Line, ...], ...]) -> State:
    fields = {name: getattr(state, name) for name in State.__struct_fields__}
    return State(**{**fields, "heard": heard})


def test_r11_2_every_outcome_is_told_in_plain_english() -> None:
    assert tuple(OUTCOMES) == WORDS
    assert len({*OUTCOMES.values()}) == len(OUTCOMES)
    for word in WORDS:
        text = outcome_text(word, "The Docks")
        assert text[0].isupper()
        assert text.endswith(".")
        assert "{" not in text
    assert "The Docks" in outcome_text("not_in_room", "The Docks")
    assert outcome_text("", "The Docks") == ""


@pytest.mark.parametrize("room", range(9))
def test_every_room_has_a_look_of_its_own(room: int) -> None:
    assert len(ROOM_TEXTS) == len(ROOMS)
    assert len(ROOM_TEXTS[room]) > 60
    assert ROOM_TEXTS.count(ROOM_TEXTS[room]) == 1
