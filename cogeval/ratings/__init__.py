"""Ratings and comparisons with intervals that cluster by block, the unit of luck.

Pure functions of arrays: a `Table` in, a `Ladder` or a `Comparison` out. It must not know of stores,
runs or configuration.
"""

from cogeval.ratings.compare import Comparison, Effect, compare
from cogeval.ratings.ladder import (
    ELO_PER_LOG_UNIT,
    MIN_BLOCKS,
    Bound,
    Difference,
    Ladder,
    LadderRow,
    SeatEffect,
)
from cogeval.ratings.rating import rate
from cogeval.ratings.table import EMPTY_SEAT, Table

__all__ = [
    "ELO_PER_LOG_UNIT",
    "EMPTY_SEAT",
    "MIN_BLOCKS",
    "Bound",
    "Comparison",
    "Difference",
    "Effect",
    "Ladder",
    "LadderRow",
    "SeatEffect",
    "Table",
    "compare",
    "rate",
]
