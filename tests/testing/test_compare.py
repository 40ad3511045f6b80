"""A comparison lets nothing through: values, types, missing and unknown fields, lengths."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogeval.testing.compare import Given, Text, Worded, compare, plain
from cogeval.testing.strategies import json_values


def fields(recorded, ours):
    return [difference.field for difference in compare(recorded, ours, Counter())]


@pytest.mark.parametrize(
    ("recorded", "ours", "where"),
    [
        ({"a": 1}, {"a": 2}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": [True, 1]}, {"a": [1, 1]}, ["a[0]"]),
        ({"a": 1.0}, {"a": 1}, ["a"]),
        ({"a": "1"}, {"a": 1}, ["a"]),
        ({"a": None}, {"a": 0}, ["a"]),
        ({"a": None}, {"a": [0]}, ["a"]),
        ({"a": 1, "b": 2}, {"a": 1}, ["b"]),
        ({"a": 1}, {"a": 1, "b": 2}, ["b"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a[1]"]),
        ({"a": [[1], [2]]}, {"a": [[1], [2, 3]]}, ["a[1][1]"]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1}, {"b": 2}]}, ["a[1]"]),
        ({"a": [[{"b": 1}], []]}, {"a": [[{"b": 2}], []]}, ["a[0][0].b"]),
        ({"a": [{"b": 1}]}, {"a": []}, ["a[0]"]),
        ({"a": {"b": 1}}, {"a": [1]}, ["a"]),
        ({"a": ""}, {"a": Text("why")}, ["a"]),
        ({"a": 5}, {"a": Text("why")}, ["a"]),
        ({"a": [1, 2]}, {"a": Given([1])}, ["a[1]"]),
        ({"a": [1, 2]}, {"a": [Given(1), 3]}, ["a[1]"]),
        ({"a": [1, 2]}, {"a": [Given(3), 2]}, ["a[0]"]),
        ({"a": 1.5}, {"a": 1.6}, ["a"]),
    ],
)
def test_every_kind_of_difference_is_found_at_its_place(recorded, ours, where):
    assert fields(recorded, ours) == where


def test_floats_may_be_printed_differently():
    assert fields({"a": [11.400000000000002, 3]}, {"a": [11.4, 3.0]}) == []


def test_text_is_compared_by_presence():
    assert fields({"a": [["anything"]]}, {"a": [[Text("else")]]}) == []


def test_worded_text_is_compared_by_what_it_says():
    greeting = Worded("hello", {"good day"}.__contains__)
    assert fields({"a": [["hello"], ["good day"]]}, {"a": [[greeting], [greeting]]}) == []
    assert fields({"a": [["hello"], ["goodbye"], [5]]}, {"a": [[greeting]] * 3}) == ["a[1][0]", "a[2][0]"]
    (difference,) = compare({"a": "goodbye"}, {"a": greeting}, Counter())
    assert (difference.expected, difference.got) == ('"goodbye"', '"hello"')
    assert plain([greeting]) == ["hello"]


def test_fields_are_counted_by_kind_and_inputs_not_at_all():
    counts: Counter[str] = Counter()
    recorded = {"seed": 1, "steps": [{"coin": [1, 2]}, {"coin": [1, 3]}]}
    assert list(compare(recorded, recorded | {"seed": Given(1)}, counts)) == []
    assert counts == {"steps.coin": 2}


@given(json_values().filter(lambda value: "nan" not in repr(value)))
def test_a_value_equals_itself(value):
    assert fields({"a": value}, {"a": plain(value)}) == []


@given(st.dictionaries(st.text(max_size=3), st.integers(), min_size=1))
def test_any_removed_field_is_found(record):
    key = next(iter(record))
    assert fields({k: v for k, v in record.items() if k != key}, record) == [key or "the record"]
