"""R10: a model's reply, read as an action."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.errors import ActionError
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.constants import INGREDIENTS, SIGNATURES, VERBS
from cogeval.games.cogchemists.reply import parse_reply
from cogeval.games.cogchemists.state import Action, State


def lab_a(a: object) -> Action:
    return parse_reply("lab", {"action": "transmute", "a": a})


def test_r10_1_fields_are_trimmed_and_cut_with_an_ellipsis() -> None:
    action = parse_reply(
        "lab", {"action": "\u2003pass ", "say": " " + "x" * 141, "notes": "\xa0" + "n" * 600 + " "}
    )
    assert (action.say, action.notes) == ("x" * 139 + "…", "n" * 600)


def test_r10_1_say_is_one_line_and_notes_keep_theirs() -> None:
    action = parse_reply("lab", {"action": "pass", "say": "a\r\nb", "notes": "a\r\nb"})
    assert (action.say, action.notes) == ("a  b", "a\r\nb")


@pytest.mark.parametrize("verb", ["test_self", "TEST SELF", "test-self", "test__self", "Test - self "])
def test_r10_2_verbs_are_case_blind_and_separators_count_as_one(verb: str) -> None:
    assert parse_reply("lab", {"action": verb, "a": "0", "b": "1"}) == Action("test_self", 0, 1)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("3", 3),
        ("007", 7),
        (" 5 ", 5),
        ("000000000000000000000002", 2),
        ("Widow's Salt", 3),
        ("widows salt", 3),
        ("Copper-Fern", 4),
        ("cop per", 4),
        ("NIG", 0),
        ("Rime Thistle", 7),
    ],
)
def test_r10_3_an_ingredient_by_index_name_or_prefix(text: str, index: int) -> None:
    assert lab_a(text).a == index


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8",
        "-1",
        "9" * 5000,
        "em",
        "nightcapx",
        "the Nightcap",
        "r\u00efme",
        "\u0663",
        "\u00b3",
        3,
        None,
        ["0"],
    ],
)
def test_r10_3_anything_else_is_no_ingredient(text: object) -> None:
    with pytest.raises(ActionError, match="is none of the eight ingredients: write one of Nightcap"):
        lab_a(text)


@pytest.mark.parametrize(
    ("text", "index"),
    [("R+G-B+", 5), ("+-+", 5), ("---", 0), ("r - g + b -", 2), ("R\u2212G+B\u2013", 2), ("R-G+B\u2014", 2)],
)
def test_r10_4_a_signature_is_any_text_with_three_signs(text: str, index: int) -> None:
    reply = {"action": "publish", "a": "0", "signature": text}
    assert parse_reply("market", reply) == Action("publish", 0, signature=index)


@pytest.mark.parametrize("text", ["", "RGB", "+-", "+-+-", "R +, G +, B +"])  # the last is cut at 12
def test_r10_4_other_numbers_of_signs_are_no_signature(text: str) -> None:
    with pytest.raises(ActionError, match="has not three signs"):
        parse_reply("market", {"action": "publish", "a": "0", "signature": text})


def test_r10_5_an_artifact_by_its_name() -> None:
    assert parse_reply("market", {"action": "buy", "artifact": " PRESS "}) == Action("buy", artifact="press")
    with pytest.raises(ActionError, match="'magic mortar' is not for sale: write one of mortar, press"):
        parse_reply("market", {"action": "buy", "artifact": "magic mortar"})


def test_r10_6_the_first_that_fails_is_the_reason() -> None:
    reply: dict[str, object] = {}
    for hint, field, value in (
        ("no action in the reply", "action", "dance"),
        ("'dance' is no market action", "action", "debunk"),
        ("a: '' is none", "a", "0"),
        ("b: '' is none", "b", "0"),
    ):
        with pytest.raises(ActionError, match=hint):
            parse_reply("market", reply)
        reply[field] = value
    assert parse_reply("market", reply) == Action("debunk", 0, 0)


def test_r10_6_fields_that_the_action_does_not_take_are_not_read() -> None:
    reply = {"action": "pass", "a": "junk", "b": "junk", "signature": "junk", "artifact": "junk"}
    assert parse_reply("lab", reply) == Action()


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from(
        (*INGREDIENTS, *SIGNATURES, *VERBS["lab"], *VERBS["market"], "mortar", "\ud800", "9" * 9999)
    ),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
_FIELDS = st.sampled_from(("action", "a", "b", "signature", "artifact", "say", "notes")) | st.text()


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(("lab", "market")), st.dictionaries(_FIELDS, _VALUES))
def test_any_reply_gives_an_action_of_the_phase_or_an_action_error(
    phase: str, reply: Mapping[str, object]
) -> None:
    try:
        action = parse_reply(phase, reply)
    except ActionError as error:
        error.hint.encode()  # raises on lone surrogates
        return
    assert action.action in VERBS[phase]
    assert len(action.say) <= 140
    assert len(action.notes) <= 600
    (action.say + action.notes).encode()


def as_reply(action: Action) -> dict[str, str]:
    def name(index: int) -> str:
        return INGREDIENTS[index] if index >= 0 else ""

    signature = SIGNATURES[action.signature] if action.signature >= 0 else ""
    fields = {"action": action.action, "a": name(action.a), "b": name(action.b)}
    return {**fields, "signature": signature, "artifact": action.artifact, "say": "", "notes": ""}


def test_every_legal_action_can_be_written_as_the_schema_asks(
    walk: Callable[..., Iterator[tuple[Cogchemists, State]]],
) -> None:
    for game, state in walk(2):
        for decision in game.decisions(state):
            schema = game.reply_schema(decision)
            json.dumps(schema)
            assert schema["additionalProperties"] is False
            for action in decision.legal:
                reply = {key: value for key, value in as_reply(action).items() if key in schema["properties"]}
                assert list(reply) == schema["required"]
                for key, value in reply.items():
                    assert value in schema["properties"][key].get("enum", [value])
                assert game.parse_reply(state, decision.seat, reply) == action
