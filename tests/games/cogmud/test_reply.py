"""R9: a model's reply, read as an action."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogeval.errors import ActionError
from cogeval.games.cogmud.reply import parse_reply, reply_schema
from cogeval.games.cogmud.state import Action
from cogeval.testing.json_schema import schema_errors

_BESIDE = Path(__file__).parents[4] / "shared" / "traces"
TRACE = Path(os.environ.get("COGEVAL_TRACES", _BESIDE)) / "cogmud_reply_A.jsonl.gz"


def test_r9_1_texts_are_trimmed_and_cut_with_an_ellipsis() -> None:
    action = parse_reply(
        {"action": "\u2003" + "w" * 241, "say": " " + "x" * 161, "notes": "n" * 600 + "\xa0"}
    )
    assert action == Action("w" * 239 + "…", "x" * 159 + "…", "n" * 600)


def test_r9_1_line_ends_and_tabs_become_spaces() -> None:
    action = parse_reply({"action": "I\r\nwait.", "say": "a\tb", "notes": "a\r\nb\t"})
    assert action == Action("I  wait.", "a b", "a  b")


@pytest.mark.parametrize("value", [None, 5, ["I wait."], {}, True])
def test_r9_1_say_and_notes_that_are_no_strings_read_as_empty(value: object) -> None:
    assert parse_reply({"action": "I wait.", "say": value, "notes": value}) == Action("I wait.")


@pytest.mark.parametrize("reply", [{}, {"action": None}, {"action": 5}, {"sentence": "I wait."}])
def test_r9_2_a_reply_without_a_sentence_is_told_what_to_write(reply: Mapping[str, object]) -> None:
    with pytest.raises(ActionError, match='no action string in the reply: write "action" as one plain'):
        parse_reply(reply)


@pytest.mark.parametrize("text", ["", "  ", "\r\n\t", "\u3000\xa0"])
def test_r9_2_an_empty_sentence_is_told_what_to_write(text: str) -> None:
    with pytest.raises(ActionError, match='"action" is empty: write it as one plain'):
        parse_reply({"action": text, "say": "hello"})


def test_r9_2_the_schema_asks_for_the_sentence_alone() -> None:
    schema = reply_schema()
    json.dumps(schema)
    assert schema["required"] == ["action"]
    assert not list(schema_errors({"action": "I wait."}, schema))
    assert not list(schema_errors({"action": "I wait.", "say": "", "notes": "n"}, schema))
    assert list(schema_errors({"action": "I wait.", "mood": "grim"}, schema))
    assert list(schema_errors({"say": "hello"}, schema))


_VALUES = st.none() | st.integers() | st.text(st.characters()) | st.lists(st.text()) | st.just("\ud800" * 700)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(("action", "say", "notes")) | st.text(), _VALUES))
def test_any_reply_gives_an_action_or_an_action_error(reply: Mapping[str, object]) -> None:
    try:
        action = parse_reply(reply)
    except ActionError as error:
        error.hint.encode()  # raises on lone surrogates
        return
    assert 0 < len(action.sentence) <= 240
    assert len(action.say) <= 160
    assert len(action.notes) <= 600
    (action.sentence + action.say + action.notes).encode()


@pytest.mark.skipif(not TRACE.exists(), reason="no recorded replies beside the repository")
def test_r9_recorded_replies_read_as_recorded() -> None:
    with gzip.open(TRACE, "rt", encoding="utf-8") as lines:
        recorded = [json.loads(line) for line in lines]
    read = [each for each in recorded if isinstance(each["payload"], dict)]  # others never come here
    assert len(read) > 200
    for each in read:
        if not each["ok"]:
            with pytest.raises(ActionError):
                parse_reply(each["payload"])
            continue
        assert parse_reply(each["payload"]) == Action(**each["decision"])
