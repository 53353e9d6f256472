"""Queries as boxes over a layout's columns: those of a log, else look-ups and ranges that are made up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from zonal.predicates.bound import Bound, Interval, Ranges, conjuncts
from zonal.upkeep.boxes import TOP, FileBoxes
from zonal.values.arrays import Float64Array, Int64Array

GUESSED = 240
"""Queries that are made up where none are known."""
_WIDTHS = (3, 4, 5, 6)
"""A range that is made up covers one of these negative powers of two of the rows."""


@dataclass(frozen=True, eq=False)
class Questions:
    """What queries ask of the layout's columns, one row per query; other columns are taken to skip nothing."""

    low: Int64Array
    high: Int64Array
    weights: Float64Array
    """Shares of all scans; they add up to 1."""
    known: bool
    """Whether they come from a log."""

    def reads(self, low: Int64Array, high: Int64Array, sizes: Float64Array) -> float:
        """Return the mean bytes that one query reads of files with these boxes."""
        met = np.ones((len(self.low), len(sizes)), np.bool_)
        for column in range(low.shape[1]):
            met &= high[None, :, column] >= self.low[:, None, column]
            met &= low[None, :, column] <= self.high[:, None, column]
        return float(self.weights @ (met @ sizes))


def asked(bounds: Iterable[Bound], weights: Iterable[float], boxes: FileBoxes, columns: Sequence[str]) -> Questions:
    """Take the queries of a log; of several intervals of a column, all between the first and the last count."""
    low, high = [], []
    for bound in bounds:
        first, last = np.zeros(len(columns), np.int64), np.full(len(columns), TOP, np.int64)
        for part in conjuncts(bound):
            if isinstance(part, Ranges) and part.column in columns and part.intervals and not part.nan:
                at = columns.index(part.column)
                one, other = part.intervals[0], part.intervals[-1]
                hull = Interval(one.low, other.high, one.low_open, other.high_open)
                start, end = boxes.axes[at].codes(hull)
                first[at], last[at] = max(first[at], start), min(last[at], end)
        low.append(first)
        high.append(np.maximum(first, last))
    weight = np.array(list(weights), np.float64)
    total = float(weight.sum())
    if not total:
        return guessed(boxes)
    return Questions(np.array(low), np.array(high), weight / total, known=True)


def guessed(boxes: FileBoxes) -> Questions:
    """Make up queries: half of them look one value up, half ask for a range, of one column or of two."""
    return _guessed(boxes.low.shape[1])


@cache
def _guessed(columns: int) -> Questions:
    """Draw the same queries for every table, once in a process: each forecast of a growing table asks for them."""
    draw = np.random.default_rng(7)
    low = np.zeros((GUESSED, columns), np.int64)
    high = np.full((GUESSED, columns), TOP, np.int64)
    for query in range(GUESSED):
        for column in draw.choice(columns, min(1 + query % 2, columns), replace=False):
            start = int(draw.integers(0, TOP + 1))
            width = 0 if query % 4 < 2 else TOP >> int(draw.choice(_WIDTHS))
            low[query, column], high[query, column] = start, min(start + width, TOP)
    weights = np.full(GUESSED, 1 / GUESSED)
    for array in (low, high, weights):
        array.flags.writeable = False
    return Questions(low, high, weights, known=False)
