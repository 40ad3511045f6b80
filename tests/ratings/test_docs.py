"""What the page on ratings shows is what the code gives."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_the_example_of_the_ratings_page_runs_as_shown() -> None:
    page = Path(__file__).parents[2] / "docs" / "ratings.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0
