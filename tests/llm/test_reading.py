"""The first JSON object in a model's text: found wherever it stands, never guessed, in linear time."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogeval.agents.llm.reading import first_object

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=4)
PROSE = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=40)


@given(OBJECTS, PROSE, PROSE, st.sampled_from(["", "```json\n", "```\n", "~~~\n"]), st.booleans())
def test_an_object_is_found_in_prose_and_fences(value, before, after, fence, ascii_only):
    text = f"{before}{fence}{json.dumps(value, ensure_ascii=ascii_only)}\n{fence[:3]}{after}"
    assert first_object(text.replace("</think>", "")) == value


@given(OBJECTS, st.data())
def test_a_reply_that_is_cut_off_is_no_object_and_no_piece_of_it_is_either(value, data):
    text = json.dumps(value)
    cut = data.draw(st.integers(0, len(text) - 1))
    assert first_object(text[:cut]) is None


@given(st.text())
def test_any_text_is_read_without_an_error(text):
    assert first_object(text) is None or isinstance(first_object(text), dict)


@given(st.text(alphabet='{}[]":, \\u0aé1', max_size=60))
def test_near_misses_are_read_without_an_error(text):
    assert first_object(text) is None or isinstance(first_object(text), dict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('I set {x} aside. {"action": "pass"}', {"action": "pass"}),
        ('{"a": 1} and then {"a": 2}', {"a": 1}),
        ('<think>perhaps {"action": "sell"}?</think>\n{"action": "pass"}', {"action": "pass"}),
        ('[{"action": "pass"}]', {"action": "pass"}),
        ("{'action': 'pass'}", None),
        ('{"a": NaN}', None),
        ('{"a": ' + "9" * 5000 + "}", None),
        ('{"a": {"b": 1}, "c": ', None),
        ("__import__('os').getcwd()", None),
        ("", None),
    ],
)
def test_what_counts_as_the_first_object(text, value):
    assert first_object(text) == value


@pytest.mark.parametrize("text", ["{" * 2_000_000, '{"a":' * 500_000, "words " * 1_700_000, '{"' * 1_000_000])
def test_a_hostile_text_takes_no_time(text):
    started = time.perf_counter()
    assert first_object(text) is None
    assert time.perf_counter() - started < 1.0
