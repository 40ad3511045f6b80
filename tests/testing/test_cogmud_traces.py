"""Cogmud records: what their lines and outcomes say, what a baseline may word otherwise, what they reach."""

from __future__ import annotations

import copy
import itertools
import re
from collections import Counter

import pytest

from cogeval.errors import InputError
from cogeval.games.cogmud import grammar
from cogeval.games.cogmud.lines import KINDS, TEMPLATES, render
from cogeval.games.cogmud.prose import outcome_text
from cogeval.games.cogmud.state import Line
from cogeval.games.cogmud.turn import OUTCOMES
from cogeval.games.cogmud.world import ROOMS
from cogeval.testing import trace_cogmud
from cogeval.testing.cogmud_lines import Saying, read_saying, saying_of
from cogeval.testing.compare import compare
from cogeval.testing.trace_inputs import BadInput

NAMES = ("Bolt", "Gizmo", "Rivet", "Tinker", "Gasket", "Piston")
NEVER = {"rejected"}  # the league's own word, which this game has no use for


def fields(record):
    """Where a record differs from our rules."""
    return [d.field for d in compare(record, trace_cogmud.rebuild_episode(record), Counter())]


def places(records, wanted):
    """Record, step and event of every act that is wanted."""
    return [
        (number, turn, i)
        for number, record in enumerate(records)
        for turn, step in enumerate(record["steps"])
        for i, event in enumerate(step["events"])
        if wanted(event)
    ]


def states_of(record):
    return [record["setup"]["state"], *(step["after"] for step in record["steps"]), record["final"]]


# Another writer's words for a line, and the line that says the same.
OTHER_WORDS = [
    ('Bolt says: "give me 3 rope, Gizmo"', Line("said", "Bolt", text="give me 3 rope, Gizmo")),
    ('Bolt says: "a "quote" in it"', Line("said", "Bolt", text='a "quote" in it')),
    ("Bolt then left, to The Docks.", Line("left", "Bolt", room=5)),
    ("Bolt waited.", Line("waited", "Bolt")),
    ("Bolt bought 2 nails of Smith Bram, 15 coin.", Line("bought", "Bolt", "", 1, -1, 1, 2, 15)),
    ("Bolt sold 1 hide to Tanner Oda, 3 coin.", Line("sold", "Bolt", "", 0, -1, 0, 1, 3)),
    ("Bolt picked 3 relics up.", Line("took", "Bolt", item=5, qty=3)),
    ("Bolt dropped 0 salt.", Line("dropped", "Bolt", item=3, qty=0)),
    ("Bolt delivered 2 rope to Guildmaster Vell: 16.", Line("delivered", "Bolt", "", 4, -1, 2, 2, 16)),
    ("Bolt handed 1 lamp to Keeper Nesh, for nothing.", Line("surrendered", "Bolt", "", 2, -1, 4, 1)),
    ("Bolt handed 1 lamp to Guildmaster Vell; no commission.", Line("unwanted", "Bolt", "", 4, -1, 4, 1)),
    ("Bolt gave 1 lamp and 5 coin to Gizmo.", Line("gave", "Bolt", "Gizmo", item=4, qty=1, coin=5)),
    ("Bolt gave 5 coin to Gizmo.", Line("gave", "Bolt", "Gizmo", coin=5)),
    ("Bolt gave 2 lamps to Gizmo.", Line("gave", "Bolt", "Gizmo", item=4, qty=2)),
    ("Bolt asked Dockmaster Fen.", Line("asked", "Bolt", npc=3)),
    ("Bolt offered Gizmo 1 hide for 0 coin.", Line("offered", "Bolt", "Gizmo", item=0, qty=1, coin=0)),
    ("Bolt offered to hire Gizmo for 4 coin.", Line("hiring", "Bolt", "Gizmo", coin=4)),
    ("Bolt accepted Gizmo's 2 nails for 9 coin.", Line("accepted", "Bolt", "Gizmo", item=1, qty=2, coin=9)),
    ("Bolt is hired by Gizmo for 3 turns.", Line("hired", "Bolt", "Gizmo", coin=3)),
    ("Bolt robbed Gizmo: 1 salt.", Line("robbed", "Bolt", "Gizmo", item=3, qty=1)),
    ("Bolt robbed Gizmo: 10 coin.", Line("robbed", "Bolt", "Gizmo", coin=10)),
    ("Bolt tried Gizmo, and the watch saw: 8 coin.", Line("failed", "Bolt", "Gizmo", coin=8, text="lit")),
    ("Bolt tried Gizmo, and paid 0 coin.", Line("failed", "Bolt", "Gizmo", coin=0, text="dark")),
    ("Bolt fell upon Gizmo and found nothing.", Line("nothing", "Bolt", "Gizmo")),
]


@pytest.mark.parametrize(("text", "line"), OTHER_WORDS, ids=[text[:30] for text, _ in OTHER_WORDS])
def test_a_line_in_other_words_says_the_same_as_ours_and_as_no_other_line(text, line):
    said = read_saying(text, NAMES)
    assert [other for _, other in OTHER_WORDS if saying_of(other) == said] == [line]


def test_other_words_are_tried_for_every_kind_of_line():
    assert {line.kind for _, line in OTHER_WORDS} == set(KINDS)


@pytest.mark.parametrize(
    "text", ["", "Nobody waited.", "Bolt.", "Bolt did something.", 'Nobody says: "x"', "5", "waited Bolt"]
)
def test_a_line_that_cannot_be_read_agrees_with_nothing(text):
    assert read_saying(text, NAMES) is None


@pytest.mark.parametrize(
    ("one", "other"), [("2", "3"), ("Gizmo", "Rivet"), ("hide", "nails"), ("offered", "bought"), ("7", "8")]
)
def test_who_what_how_many_and_for_how_much_all_count(one, other):
    text = "Bolt offered Gizmo 2 hide for 7 coin."
    assert read_saying(text, NAMES) == Saying("offered", ("Bolt", "Gizmo"), (2, 7), 0)
    assert read_saying(text.replace(one, other), NAMES) != read_saying(text, NAMES)


def reworded(record):
    """The record with another writer's words for every outcome."""
    record = copy.deepcopy(record)
    for step in record["steps"]:
        for event in step["events"]:
            room = ROOMS[event["room"]].name
            where = f" in {room}" if room in outcome_text(event["reason"], room) else ""
            step["after"]["lastOutcome"][event["seat"]] = f"<{event['reason']}>{where}"
    record["final"]["lastOutcome"] = list(record["steps"][-1]["after"]["lastOutcome"])
    return record


@pytest.fixture
def other_record(cogmud_records):
    return reworded(cogmud_records[0])


def test_outcomes_in_other_words_pass_when_each_has_its_own(other_record):
    assert fields(other_record) == []


def test_an_outcome_told_with_the_words_of_another_is_caught(other_record):
    outcomes = other_record["steps"][3]["after"]["lastOutcome"]
    seat = next(i for i, text in enumerate(outcomes) if text.startswith("<ok>"))
    outcomes[seat] = "<waited>"
    assert fields(other_record) == [f"steps[3].after.lastOutcome[{seat}]"]


def test_an_outcome_told_in_another_way_than_before_is_caught(other_record):
    outcomes = other_record["steps"][-1]["after"]["lastOutcome"]
    seat = next(i for i, text in enumerate(outcomes) if text.startswith("<ok>"))
    outcomes[seat] = "done"
    assert fields(other_record) == [f"steps[{len(other_record['steps']) - 1}].after.lastOutcome[{seat}]"]


def test_two_outcomes_told_with_one_text_are_caught(other_record):
    for state in states_of(other_record):
        state["lastOutcome"] = ["same" if text else "" for text in state["lastOutcome"]]
    assert fields(other_record)


def test_a_room_in_an_outcome_must_be_the_room_where_it_happened(cogmud_records):
    told = places(cogmud_records, lambda e: e["reason"] == "no_npc_here")
    number, turn, i = next(last for before, last in itertools.pairwise(told) if before[0] == last[0])
    record = reworded(cogmud_records[number])
    seat = record["steps"][turn]["events"][i]["seat"]
    record["steps"][turn]["after"]["lastOutcome"][seat] = "<no_npc_here> in another place"
    assert f"steps[{turn}].after.lastOutcome[{seat}]" in fields(record)


def test_a_record_in_our_own_words_is_held_to_them(cogmud_records):
    record = copy.deepcopy(cogmud_records[0])
    for state in states_of(record):
        state["lastOutcome"] = [
            "Lost." if text == outcome_text("no_verb", "") else text for text in state["lastOutcome"]
        ]
    assert fields(record)
    assert all("lastOutcome" in field for field in fields(record))


def baseline_walk(records):
    """A baseline's walking sentence in a turn that nobody patched: record, turn, seat, place of its event."""
    number, turn, i = next(
        (number, turn, i)
        for number, turn, i in places(records, lambda e: e["scripted"] and e["intent"] == "move")
        if not records[number]["steps"][turn].get("patch")
    )
    record = copy.deepcopy(records[number])
    return record, turn, record["steps"][turn]["events"][i]["seat"], i


def say_instead(record, turn, seat, i, sentence):
    """Has a seat say another sentence, which is stored in three places."""
    step = record["steps"][turn]
    step["sentences"][seat] = step["events"][i]["sentence"] = sentence
    states = [step["after"]]
    if turn == len(record["steps"]) - 1:
        states.append(record["final"])
    for state in states:
        state["lastSentence"][seat] = sentence


def test_a_baseline_may_say_the_same_in_other_words(cogmud_records):
    record, turn, seat, i = baseline_walk(cogmud_records)
    room = ROOMS[record["steps"][turn]["events"][i]["toRoom"]].name
    say_instead(record, turn, seat, i, f"Off I go to {room} then")
    assert fields(record) == []


def test_a_baseline_that_means_something_else_is_caught(cogmud_records):
    record, turn, seat, i = baseline_walk(cogmud_records)
    say_instead(record, turn, seat, i, "I wait.")
    assert f"steps[{turn}].sentences[{seat}]" in fields(record)


def test_a_sentence_in_a_patched_turn_may_stand_in_for_a_baselines(cogmud_records):
    record, turn, seat = next(
        (copy.deepcopy(record), turn, event["seat"])
        for record in cogmud_records
        for turn, step in enumerate(record["steps"])
        for event in step["events"]
        if event["scripted"] and step.get("patch")
    )
    record["steps"][turn]["sentences"][seat] = "I dance."
    assert not [field for field in fields(record) if field.startswith(f"steps[{turn}].sentences")]


def test_a_speech_act_may_have_what_it_speaks_as_its_say(cogmud_records):
    number, turn, i = next(
        place
        for place in places(cogmud_records, lambda e: e["intent"] == "say" and not e["say"])
        if cogmud_records[place[0]]["config"]["speech"]
    )
    record = copy.deepcopy(cogmud_records[number])
    event = record["steps"][turn]["events"][i]
    spoken = record["steps"][turn]["intents"][event["seat"]]["spoken"][:160].strip()
    event |= {"say": spoken, "salience": 30 if len(spoken) > 40 else 20}
    assert fields(record) == []
    event["salience"] += 1  # neither the one version's nor the other's
    assert {field.rpartition(".")[2] for field in fields(record)} == {"say", "salience"}


@pytest.mark.parametrize("payload", [[1, 2], "I wait.", 5, None, True])
def test_a_reply_that_is_no_object_is_refused(payload):
    record = {"payload": payload, "ok": False, "error": "why"}
    assert trace_cogmud.is_reply(record)
    assert list(compare(record, trace_cogmud.rebuild_reply(record), Counter())) == []
    assert list(compare(record | {"ok": True}, trace_cogmud.rebuild_reply(record), Counter()))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seed",), 1.5),
        (("config", "turns"), 5),
        (("config", "speech"), None),
        (("policies",), {}),
        (("deadlineAfterTurns",), "never"),
        (("steps",), 5),
        (("steps", 0), []),
        (("steps", 0, "sentences", 2), None),
        (("steps", 0, "sentences"), ["I wait."]),
        (("steps", 0, "says"), "none"),
        (("steps", 0, "patch"), 7),
        (("steps", 0, "patch"), {"cogs": []}),
        (("steps", 0, "patch"), {"cogs": [{"seat": 6}], "shops": [], "floors": []}),
        (("steps", 0, "patch"), {"cogs": [], "shops": [{"npc": -1}], "floors": []}),
        (("steps", 0, "patch"), {"cogs": [], "shops": [], "floors": [{"room": 0, "items": [1]}]}),
    ],
)
def test_unusable_inputs_are_differences_at_their_place(path, value, cogmud_records):
    record = copy.deepcopy(next(r for r in cogmud_records if "patch" in r["steps"][0]))
    holder = record
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    with pytest.raises((BadInput, InputError)) as caught:
        trace_cogmud.rebuild_episode(record)
    if isinstance(caught.value, BadInput):
        assert caught.value.path[: len(path)] == path


def test_differences_name_the_seat_that_they_concern(cogmud_records):
    record = next(r for r in cogmud_records if "patch" in r["steps"][0])
    event = record["steps"][1]["events"][2]
    patched = next(i for i, step in enumerate(record["steps"]) if step["patch"])
    cog = record["steps"][patched]["patch"]["cogs"][1]

    def seat(*path):
        return trace_cogmud.seat_of(path, record)

    assert seat("steps", 1, "events", 2, "reason") == event["seat"]
    assert seat("steps", patched, "patch", "cogs", 1, "coin") == cog["seat"]
    assert seat("steps", 1, "after", "cogs", 4, "coin") == 4
    assert seat("steps", 1, "after", "hint", 3) == 3
    assert seat("steps", 1, "after", "shops", 3, "coin") is None
    assert seat("steps", 1, "after", "heard", 3, 0) is None
    assert seat("steps", 99, "events", 0, "coin") is None


def line_kinds(texts):
    """The kinds of lines in our own words."""
    patterns = {
        kind: re.compile(re.sub(r"\\\{\w+\\\}", ".*", re.escape(template)), re.DOTALL)
        for kind, template in TEMPLATES.items()
    }
    return {kind for text in texts for kind, pattern in patterns.items() if pattern.fullmatch(text)}


def test_our_own_traces_reach_every_intent_outcome_and_kind_of_line(cogmud_records):
    steps = [step for record in cogmud_records for step in record["steps"]]
    events = [event for step in steps for event in step["events"]]
    states = [state for record in cogmud_records for state in states_of(record)]
    lines = {line for state in states for key in ("heard", "roomLog") for log in state[key] for line in log}
    assert {event["reason"] for event in events} == set(OUTCOMES) - NEVER
    assert {e["intent"] for e in events if e["reason"] in ("ok", "waited")} == set(grammar.KINDS)
    assert line_kinds(lines) == set(KINDS)
    failures = [render(Line("failed", "Bolt", "Gizmo", text=text)).split(",")[1] for text in ("dark", "lit")]
    assert all(any(failure in line for line in lines) for failure in failures)
    assert {event["salience"] for event in events} == {
        *(5, 10, 15, 20, 25, 30, 35, 40, 45, 60, 65, 70, 80, 90, 100)
    }
    assert {offer["kind"] for state in states for offer in state["offers"]} == {"trade", "hire"}
    tips = [tip for state in states for seat in state["cheapest"] for tip in seat]
    assert {tip[1] < 0 for tip in tips} == {True, False}
    assert any(len(log) == 12 for state in states for log in state["heard"])
    assert any(len(intent["spoken"]) > 160 for step in steps for intent in step["intents"])
    assert {bool(step.get("patch")) for step in steps} == {True, False}
    for key in ("speech", "thievery"):
        assert {record["config"][key] for record in cogmud_records} == {True, False}
    assert {record["end"]["text"] for record in cogmud_records} == {"complete", "deadline"}


def test_our_own_traces_see_hirelings_beat_the_watch_and_every_loot(cogmud_records):
    events = [event for record in cogmud_records for step in record["steps"] for event in step["events"]]
    loot = {(e["qty"] > 0, e["coin"] > 0) for e in events if e["intent"] == "rob" and e["reason"] == "ok"}
    gifts = {
        (e["qty"] > 0, e["coin"] > 0)
        for e in events
        if e["intent"] == "give" and e["npc"] < 0 and e["reason"] == "ok"
    }
    assert any(e["reason"] == "ok" and not ROOMS[e["room"]].dark for e in events if e["intent"] == "rob")
    assert loot == {(True, False), (False, True)}
    assert gifts == {(True, False), (False, True), (True, True)}
