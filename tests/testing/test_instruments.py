"""The instruments of the checks: pictures of values, and the validator of reply schemas."""

from __future__ import annotations

import pickle

import msgspec
import numpy as np
import pytest

from cogeval.games.cogchemists import Cogchemists
from cogeval.testing.json_schema import check_schema, schema_errors
from cogeval.testing.snapshot import picture_hash, snapshot
from cogeval.testing.walks import walk


class Point(msgspec.Struct):
    x: object
    _cache: object = None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("1", 1),
        ([1], (1,)),
        ({1: 2}, {1: 3}),
        ({1, 2}, {1}),
        (Point(1), Point(2)),
        (Point([1, 2]), Point([2, 1])),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([1], np.uint8), np.array([1], np.int8)),
        (b"1", "1"),
        (None, 0),
        ([1 << 40_000], [1 << 40_001]),
    ],
)
def test_different_values_have_different_pictures(one, other):
    assert snapshot(one) != snapshot(other)
    assert picture_hash(one) != picture_hash(other)


@pytest.mark.parametrize("value", [Point({1: [2, {3}]}), np.arange(3), {"a", "b"}, float("nan"), range(3)])
def test_equal_values_have_equal_pictures(value):
    assert snapshot(value) == snapshot(pickle.loads(pickle.dumps(value)))


def test_a_picture_shares_nothing_with_its_value():
    value = Point([1, np.array([2])])
    before = snapshot(value)
    value.x[1][0] = 3
    assert snapshot(value) != before


def test_caches_are_left_out():
    assert snapshot(Point(1, _cache=2)) == snapshot(Point(1))


def test_what_cannot_be_pictured_is_refused():
    with pytest.raises(TypeError, match="comparable content, got generator"):
        snapshot(i for i in range(3))


def test_every_state_of_an_episode_has_a_picture_of_its_own():
    hashes = [picture_hash(position.state) for position in walk(Cogchemists(), 5).positions]
    assert len(set(hashes)) == len(hashes) == 12


SCHEMA = {
    "type": "object",
    "properties": {
        "verb": {"type": "string", "enum": ["go", "stay"]},
        "num": {"type": ["integer", "null"], "minimum": 1, "maximum": 3},
        "says": {"type": "array", "items": {"type": "string", "maxLength": 2}, "maxItems": 2},
        "to": {"anyOf": [{"const": 1}, {"type": "string", "pattern": "^[a-c]+$"}]},
        "one": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    },
    "required": ["verb"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "reply",
    [
        {"verb": "go"},
        {"verb": "stay", "num": None, "says": [], "to": 1, "one": 1.5},
        {"verb": "go", "num": 3, "says": ["ab", ""], "to": "abc"},
    ],
)
def test_valid_replies_have_no_errors(reply):
    check_schema(SCHEMA)
    assert list(schema_errors(reply, SCHEMA)) == []


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({}, "reply.verb: expected this field, got none"),
        ([], "reply: expected object, got []"),
        ({"verb": "run"}, "reply.verb: expected one of ['go', 'stay'], got 'run'"),
        ({"verb": "go", "num": True}, "reply.num: expected integer or null, got True"),
        ({"verb": "go", "num": 4}, "reply.num: expected at most 3, got 4.0"),
        ({"verb": "go", "num": 0}, "reply.num: expected at least 1, got 0.0"),
        ({"verb": "go", "says": ["abc"]}, "reply.says[0]: expected at most 2, got 3"),
        ({"verb": "go", "says": ["", "", ""]}, "reply.says: expected at most 2, got 3"),
        (
            {"verb": "go", "to": "xyz"},
            "reply.to: fits none of 2 forms; the first: reply.to: expected one of [1]",
        ),
        ({"verb": "go", "one": 1}, "reply.one: expected to fit one of 2 forms, fits 2"),
        ({"verb": "go", "more": 1}, "reply.more: expected nothing here, got 1"),
    ],
)
def test_invalid_replies_are_told_what_is_wrong(reply, error):
    assert next(schema_errors(reply, SCHEMA)).startswith(error)


def test_an_unknown_keyword_is_an_error():
    with pytest.raises(ValueError, match="got 'dependentRequired'"):
        list(schema_errors({}, {"dependentRequired": {}}))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "string"}, 'expected "type": "object"'),
        ({"type": "object", "required": ["a"]}, "required, yet not among the properties"),
        ({"type": "object", "enum": (1,)}, "expected a schema of JSON values"),
    ],
)
def test_an_unsound_schema_is_caught(schema, message):
    with pytest.raises(AssertionError, match=message):
        check_schema(schema)
