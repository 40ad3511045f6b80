"""A table that exists is valid; a wrong one says what is wrong and where."""

from __future__ import annotations

import numpy as np
import pytest

from cogeval.errors import InputError
from cogeval.ratings import Table

GOOD = {
    "agents": [[0, 1], [1, 0], [0, 1]],
    "ranks": [[0, 1], [0, 1], [0, 0]],
    "scores": [[2.0, 1.0], [3.0, 0.0], [1.0, 1.0]],
    "blocks": [0, 0, 1],
    "seat_scored": [[True, True]] * 3,
    "names": ("A", "B"),
}


def build(**changes) -> Table:
    fields = GOOD | changes
    arrays = {key: np.array(value) if key != "names" else value for key, value in fields.items()}
    return Table(**arrays)


def test_a_good_table_counts_itself() -> None:
    table = build()
    assert (table.num_episodes, table.num_seats, table.num_blocks) == (3, 2, 2)
    np.testing.assert_array_equal(table.shares(), [[1, 0], [1, 0], [0.5, 0.5]])


def test_an_empty_table_is_valid() -> None:
    none = np.zeros((0, 2))
    assert Table(none, none, none, np.zeros(0), none, ()).num_blocks == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"agents": [[0, 1], [1, 2], [0, 1]]},
            r"agent index of -1 \(empty\) .. 1, got 2 in episode row 1, seat 1",
        ),
        ({"agents": [[0, -2], [1, 0], [0, 1]]}, "got -2 in episode row 0, seat 1"),
        ({"agents": [0, 1, 0]}, r"agents of shape \[num_episodes, num_seats\], got \(3,\)"),
        ({"agents": [[0.0, 1.0]] * 3}, "agents of whole numbers, got the type 'float64'"),
        ({"agents": [[0, 1], [-1, -1], [0, 1]]}, "an agent in every episode, got none in episode row 1"),
        ({"ranks": [[0, 1], [0, 1]]}, r"ranks of the shape of agents \(3, 2\), got \(2, 2\)"),
        ({"ranks": [[0, 1], [0, 1], [0, -1]]}, "a rank of 0 .*, got -1 in episode row 2, seat 1"),
        (
            {"scores": [[2.0, 1.0], [np.nan, 0.0], [1.0, 1.0]]},
            "a finite score, got nan in episode row 1, seat 0",
        ),
        ({"scores": [["x", "y"]] * 3}, "scores of numbers"),
        ({"seat_scored": [[1, 1]] * 3}, "seat_scored of booleans, got the type 'int64'"),
        ({"blocks": [0, 0]}, r"one block per episode \(3,\), got blocks of shape \(2,\)"),
        ({"blocks": [0, -1, 1]}, "block index of 0 or more, got -1 in episode row 1"),
        ({"blocks": [0, 0, 2]}, r"dense blocks 0 .. 1, got 2 different blocks up to 2"),
        ({"blocks": [0, 0, 10**12]}, "dense blocks"),
        ({"names": ("A", "A")}, "names that differ, got 'A' twice"),
    ],
)
def test_a_wrong_table_names_what_and_where(changes, message) -> None:
    with pytest.raises(InputError, match=message):
        build(**changes)


def test_what_does_not_count_may_hold_anything() -> None:
    table = build(
        agents=[[0, 1], [1, -1], [0, 1]],
        scores=[[2.0, np.nan], [3.0, np.nan], [1.0, 1.0]],
        seat_scored=[[True, False], [True, True], [True, True]],
        ranks=[[0, 1], [0, -9], [0, 0]],
    )
    np.testing.assert_array_equal(table.shares(), [[1, 0], [np.nan, np.nan], [0.5, 0.5]])
