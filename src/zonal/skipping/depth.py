"""Clustering depth: how much the files' ranges of a column overlap, exactly, by a sweep over their bounds.

The terms are those of Snowflake's SYSTEM$CLUSTERING_INFORMATION: a file's overlaps are the other files whose range
meets its own; its depth is the largest number of files that share one value within its range, itself included; a
constant file holds a single value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.skipping.files import telling_buckets
from zonal.skipping.index import ColumnIndex
from zonal.skipping.line import line_of
from zonal.snapshot import UNKNOWN, Bounds, Snapshot
from zonal.values.arrays import BoolArray, Float64Array, Int32Array, Int64Array

_NARROW = 1e-9
"""A range narrower than this share of the column's is one value."""


@dataclass(frozen=True)
class Depth:
    """How well one column is clustered."""

    column: str
    files_with_bounds: int
    average_depth: float
    average_overlaps: float
    constant_files: int
    histogram: Mapping[int, int]
    """Files by depth, in classes: 0 to 16 one by one, then powers of two; the key is the upper end."""
    lookup_files: float
    """Files that a point lookup reads on average, if the rows of a file are spread evenly over its range."""
    distinct_at_least: int
    """Distinct values among the bounds."""
    lookup_share: float | None = None
    """Share of the bytes of all files that it reads then; None where sizes aren't known."""


def column_depth(snapshot: Snapshot, column: str) -> Depth | None:
    """Measure a column by all that tells which files hold a value: own bounds, partition values and buckets.

    None where nothing is known of it.
    """
    bounds, buckets = known_bounds(snapshot, column), telling_buckets(snapshot, column)
    if bounds is None:
        return None
    files = snapshot.files
    return depth_of(column, bounds, files.rows, [each.values for each in buckets], files.sizes)


def known_bounds(snapshot: Snapshot, column: str) -> Bounds | None:
    """Return for each file the narrower of its own bounds and those that its partition tells; None without both."""
    files = snapshot.files
    own, outer = files.bounds.get(column), files.partition_bounds.get(column)
    if own is None or outer is None:
        return own if outer is None else outer
    if own.lower.type != outer.lower.type:
        return own
    return _narrower(own, outer, files.rows)


def _narrower(own: Bounds, outer: Bounds, rows: Int64Array) -> Bounds:
    both, count = Bounds.joined([own, outer]), len(rows)
    index, mine = ColumnIndex(both, np.concatenate([rows, rows])), np.arange(count)
    theirs = mine + count
    low = np.where(index.lower[theirs] > index.lower[mine], theirs, mine)
    high = np.where(index.upper[theirs] < index.upper[mine], theirs, mine)
    apart = index.lower[low] > index.upper[high]  # metadata that contradicts itself
    low[apart], high[apart] = mine[apart], mine[apart]
    nulls, nans = np.maximum(own.nulls, outer.nulls), np.maximum(own.nans, outer.nans)  # UNKNOWN is below all
    return Bounds(both.lower.take(pa.array(low)), both.upper.take(pa.array(high)), nulls, nans)


def depth_of(
    column: str, bounds: Bounds, rows: Int64Array, buckets: Sequence[Int64Array] = (), sizes: Int64Array | None = None
) -> Depth:
    """Sweep over the bounds of one column; files of which it holds only nulls have no range and meet no look-up.

    `buckets` are those of the files, UNKNOWN where one has none, by each field that the table is bucketed by: a look-up
    reads files of one of them alone.
    """
    index = ColumnIndex(bounds, rows)
    lower, upper, values = index.lower, index.upper, index.values
    distinct = len(values)
    only_null = (bounds.nulls == rows) & (rows != UNKNOWN)
    ranged = ~only_null
    known = ranged & (lower >= 0) & (upper < max(distinct, 1)) & (distinct > 0)
    low, high = np.maximum(lower[ranged], 0), np.minimum(upper[ranged], max(distinct - 1, 0))
    if not len(low):
        return Depth(column, int(known.sum()), 0.0, 0.0, 0, {}, 0.0, distinct, None if sizes is None else 0.0)
    cover = _cover(low, high, max(distinct, 1))
    depths = _range_maximum(cover, low, high)
    starts, ends = np.sort(low), np.sort(high)
    weight = np.where(rows > 0, rows, 1).astype(np.float64)
    spans = _Spans(lower, upper, _positions(values) if distinct else np.zeros(0), weight, known)
    read = _lookup_in(buckets, np.flatnonzero(ranged), spans)
    overlaps = np.searchsorted(starts, high, "right") - np.searchsorted(ends, low, "left") - 1
    return Depth(
        column=column,
        files_with_bounds=int(known.sum()),
        average_depth=float(depths.mean()),
        average_overlaps=float(overlaps.mean()),
        constant_files=int((lower[known] == upper[known]).sum()),
        histogram=_histogram(depths),
        lookup_files=float(read.sum()),
        distinct_at_least=distinct,
        lookup_share=None if sizes is None else min(float(read @ sizes) / max(int(sizes.sum()), 1), 1.0),
    )


@dataclass(frozen=True, eq=False)
class _Spans:
    """The files' ranges of a column, as places among its values."""

    lower: Int32Array
    upper: Int32Array
    place: Float64Array
    """Where each value lies between 0 and 1."""
    weight: Float64Array
    """Rows of each file."""
    known: BoolArray
    """Files that hold a value and have both bounds."""

    def lookup(self, files: Int64Array) -> Float64Array:
        """Return how often a look-up reads each of these files, which all hold a value: without bounds always."""
        known = np.flatnonzero(self.known[files])
        mine = files[known]
        codes, at = np.unique(np.concatenate([self.lower[mine], self.upper[mine]]), return_inverse=True)
        found = np.ones(len(files))
        found[known] = _lookup(at[: len(mine)], at[len(mine) :], self.place[codes], self.weight[mine])
        return found


def _lookup_in(buckets: Sequence[Int64Array], files: Int64Array, spans: _Spans) -> Float64Array:
    """Return how often a look-up reads each file, where values fall into each bucket as often as rows are in it.

    What a field puts into buckets is read by these; files without a bucket are one class.
    """
    found, left = np.zeros(len(spans.weight)), files
    for values in buckets:
        mine = left[values[left] != UNKNOWN]
        left = left[values[left] == UNKNOWN]
        order = mine[np.argsort(values[mine], kind="stable")]
        starts = np.flatnonzero(np.diff(values[order])) + 1
        whole = float(spans.weight[mine].sum())
        for inside in np.split(order, starts) if len(order) else []:
            found[inside] = float(spans.weight[inside].sum()) / whole * spans.lookup(inside)
    found[left] = spans.lookup(left)
    return found


def _lookup(low: Int64Array, high: Int64Array, place: Float64Array, weight: Float64Array) -> Float64Array:
    """Return how often the value of a row lies in each file's range, over all rows; they read one file at least.

    Rows below x are counted by F: each file adds its rows evenly over its range, or all at once if it has one value. A
    file is then read by a share F(high) - F(low) of the look-ups.
    """
    if not len(low):
        return np.zeros(0)
    width = place[high] - place[low]
    wide = width > _NARROW
    density, mass = np.zeros(len(place)), np.zeros(len(place))
    np.add.at(density, low[wide], weight[wide] / width[wide])
    np.add.at(density, high[wide], -weight[wide] / width[wide])
    np.add.at(mass, low[~wide], weight[~wide])
    spread = np.concatenate([[0.0], np.cumsum(np.cumsum(density)[:-1] * np.diff(place))])
    heavy = np.cumsum(mass)
    share: Float64Array = (spread[high] - spread[low] + heavy[high] - heavy[low] + mass[low]) / weight.sum()
    whole = float(share.sum())
    return share * (float(np.clip(whole, 1.0, len(low))) / whole) if whole > 0 else np.full(len(low), 1 / len(low))


def _positions(values: npt.NDArray[np.generic]) -> Float64Array:
    """Put sorted values on a line from 0 to 1."""
    line = line_of(values).positions
    return line / line[-1] if line[-1] > 0 else line


def _cover(low: Int32Array, high: Int32Array, places: int) -> Int64Array:
    """Count the files whose range holds each place."""
    change = np.zeros(places + 1, np.int64)
    np.add.at(change, low, 1)
    np.add.at(change, high + 1, -1)
    return np.cumsum(change)[:-1]


def _range_maximum(values: Int64Array, low: Int32Array, high: Int32Array) -> Int64Array:
    """Return the largest value between each pair of places, by a sparse table: maxima over all powers of two."""
    level = np.frexp((high - low + 1).astype(np.float64))[1] - 1
    result = np.empty(len(low), np.int64)
    table = values
    for power in range(int(level.max()) + 1):
        if power:
            half = 1 << (power - 1)
            table = np.maximum(table[:-half], table[half:])
        rows = np.flatnonzero(level == power)
        result[rows] = np.maximum(table[low[rows]], table[high[rows] + 1 - (1 << power)])
    return result


def _histogram(depths: npt.NDArray[np.int64]) -> dict[int, int]:
    classes = np.where(depths <= 16, depths, 1 << np.ceil(np.log2(np.maximum(depths, 1))).astype(np.int64))
    ends, counts = np.unique(classes, return_counts=True)
    return dict(zip(ends.tolist(), counts.tolist(), strict=True))
