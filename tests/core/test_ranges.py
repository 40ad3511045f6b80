"""Index sets as half-open ranges."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogeval.core.ranges import from_ranges, in_ranges, to_ranges

indexes = st.lists(st.integers(0, 60))


@given(indexes)
def test_ranges_read_back_as_the_same_set(values: list[int]) -> None:
    assert from_ranges(to_ranges(values)).tolist() == sorted(set(values))


@given(indexes)
def test_ranges_are_ascending_and_never_touch(values: list[int]) -> None:
    ranges = to_ranges(values)
    assert all(0 <= start < stop for start, stop in ranges)
    assert all(a[1] < b[0] for a, b in pairwise(ranges))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)).map(lambda t: [t[0], t[0] + t[1]])))
def test_overlapping_ranges_cover_each_index_once(ranges: list[list[int]]) -> None:
    assert from_ranges(ranges).tolist() == sorted({i for start, stop in ranges for i in range(start, stop)})


@pytest.mark.parametrize("entry", [[3, 3], [4, 2], [-1, 2], [1], [1, 2, 3], ["1", 2], 5, None])
def test_no_range_is_an_error_that_quotes_it(entry: object) -> None:
    with pytest.raises(ValueError, match="expected a range"):
        from_ranges([entry])  # type: ignore[list-item]


@given(indexes, st.integers(0, 60))
def test_an_index_is_in_the_ranges_of_its_set(values: list[int], index: int) -> None:
    assert in_ranges(index, to_ranges(values)) == (index in values)
