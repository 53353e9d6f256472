"""Files as boxes over a layout's columns, in codes of the table's own rows: half of the codes are half of the rows.

The codes come from the files' bounds and row counts alone. The rows of a file are taken to lie evenly between its
bounds, so that the distribution of a clustered table is known as finely as its files cut it, and times that nobody has
seen before get codes of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zonal.predicates.bound import Interval
from zonal.skipping.depth import known_bounds
from zonal.skipping.index import ColumnIndex
from zonal.snapshot import Bounds, Snapshot
from zonal.values.arrays import BoolArray, Float64Array, Int32Array, Int64Array

BITS = 14
TOP = (1 << BITS) - 1


@dataclass(frozen=True, eq=False)
class RowAxis:
    """One column: where its bounds lie among the rows."""

    index: ColumnIndex | None
    """None for a column without any bounds: every file may hold every value."""
    below: Float64Array
    """Share of the rows below each of the distinct bounds, and 1 at the end."""

    def codes(self, interval: Interval) -> tuple[int, int]:
        """Return the first and the last code of an interval of values."""
        if self.index is None or not len(self.index.values):
            return 0, TOP
        low, high = self.index.places(interval)
        start = _code(self.below[min(low, len(self.below) - 1)])
        return start, max(start, _last(self.below[min(max(high + 1, low), len(self.below) - 1)]))


@dataclass(frozen=True, eq=False)
class FileBoxes:
    """Boxes of some files, one row per file and one column per column of the layout."""

    axes: tuple[RowAxis, ...]
    low: Int64Array
    high: Int64Array
    places: tuple[tuple[Int32Array, Int32Array], ...]
    """The exact bounds of each column: places of the lower and of the upper ones among all of its bounds."""
    constant: BoolArray
    """Whether a file holds a single value of each column."""

    def points(self, files: Int64Array, counts: Int64Array, seed: int = 0) -> Int64Array:
        """Draw so many points of each of these files, evenly within its box; always the same ones."""
        each = np.repeat(files, counts)
        drawn = np.random.default_rng(seed).random((len(each), self.low.shape[1]))
        low, high = self.low[each], self.high[each]
        return low + (drawn * (high - low + 1)).astype(np.int64)

    def overlapping(self, files: Int64Array) -> BoolArray:
        """Tell which of these files share values of a column with another of them, and aren't constant.

        Codes are too coarse for that: neighbors that share no value may share the code between them.
        """
        shared = np.zeros(len(files), np.bool_)
        for lower, upper in self.places:
            low, high = lower[files], upper[files]
            shared |= np.searchsorted(np.sort(low), high, "right") - np.searchsorted(np.sort(high), low) > 1
        return shared & ~self.constant[files]


def bounds_of(snapshot: Snapshot, columns: Sequence[str]) -> tuple[Bounds | None, ...]:
    """Return what is known of each column in all files."""
    return tuple(known_bounds(snapshot, name) for name in columns)


def boxes_of(all_rows: Int64Array, all_bounds: Sequence[Bounds | None], files: Int64Array) -> FileBoxes:
    """Put files of one partition into the space of their own rows; numbers in the result are positions in `files`."""
    rows = np.maximum(all_rows[files], 1).astype(np.float64)
    axes, low, high, places = [], [], [], []
    constant = np.ones(len(files), np.bool_)
    for bounds in all_bounds:
        if bounds is None or not len(files):
            constant[:] = False
            axes.append(RowAxis(None, np.array([0.0, 1.0])))
            low.append(np.zeros(len(files), np.int64))
            high.append(np.full(len(files), TOP))
            places.append((np.zeros(len(files), np.int32), np.ones(len(files), np.int32)))
            continue
        index = ColumnIndex(bounds.take(files), all_rows[files])
        constant &= (index.lower == index.upper) & (index.lower >= 0)
        axis, first, last = _axis(index, rows)
        axes.append(axis)
        low.append(first)
        high.append(last)
        places.append((index.lower, index.upper))
    return FileBoxes(tuple(axes), np.stack(low, axis=1), np.stack(high, axis=1), tuple(places), constant)


def _axis(index: ColumnIndex, rows: Float64Array) -> tuple[RowAxis, Int64Array, Int64Array]:
    """Spread the rows of each file evenly over the distinct bounds within its range, and add them up."""
    count = len(index.values)
    if not count:
        return RowAxis(index, np.array([0.0, 1.0])), np.zeros(len(rows), np.int64), np.full(len(rows), TOP)
    lower, upper = np.maximum(index.lower, 0), np.minimum(index.upper, count - 1)
    upper = np.maximum(lower, upper)
    share = rows / rows.sum() / (upper - lower + 1)
    steps = np.zeros(count + 1)
    np.add.at(steps, lower, share)
    np.add.at(steps, upper + 1, -share)
    below = np.clip(np.concatenate([[0.0], np.cumsum(np.cumsum(steps)[:-1])]), 0.0, 1.0)
    below[-1] = 1.0
    first = np.floor(below[lower] * (TOP + 1)).astype(np.int64)
    last = np.ceil(below[upper + 1] * (TOP + 1)).astype(np.int64) - 1
    return RowAxis(index, below), np.minimum(first, TOP), np.clip(last, np.minimum(first, TOP), TOP)


def _code(share: float) -> int:
    return min(int(share * (TOP + 1)), TOP)


def _last(share: float) -> int:
    return min(int(np.ceil(share * (TOP + 1))) - 1, TOP)
