"""Samples and queries in code space: rows as points, files and queries as boxes around them.

The code of a value is its place among the sample's distinct values, so that everything is compared as small numbers
and one matrix operation matches all queries against all files. A literal between two neighboring values has the place
halfway.

The law: `meets` keeps every unit that `skipping.index.Index` keeps on the same bounds. It keeps the same ones, unless
a query needs more than `MOST_BOXES` boxes, or has contradictory conditions on a column.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zonal.errors import ColumnError, quoted
from zonal.predicates.bound import Bound, Interval, Nulls, Point, Ranges, leaves_of
from zonal.predicates.conjunctions import ANY, IS_NULL, NOT_NULL, RANGE, Extent, boxes_in
from zonal.skipping.index import comparable_values
from zonal.values.arrays import BoolArray, Float32Array, Int64Array
from zonal.values.columns import find, leaf
from zonal.values.words import decoded_array, family_of, validity

NULL = -1
"""The code of a null."""
_CELLS = 2**25
"""Pairs of a unit and a box that are compared at a time: a few masks of this many bytes are in memory."""


@dataclass(frozen=True, eq=False)
class Coded:
    """Rows of a sample as codes."""

    columns: tuple[str, ...]
    codes: npt.NDArray[np.int32]
    """Shape (rows, columns), column-major: 0, 1, … in the values' order, NaN last; null is -1."""
    points: tuple[list[Point], ...]
    """The sorted distinct values of each column in the predicates' domain; a code is a place in this list."""
    nulls: tuple[bool, ...]
    """Whether the column has any nulls."""
    limits: tuple[tuple[Point, Point] | None, ...] = ()
    """The least and the greatest value of each column in the whole table, where they are known."""

    def __len__(self) -> int:
        return len(self.codes)

    def some(self, rows: Int64Array) -> "Coded":
        """Take some rows; the codes keep their meaning."""
        return replace(self, codes=np.asfortranarray(self.codes[rows]))

    def only(self, columns: Sequence[str]) -> "Coded":
        """Take some columns."""
        at = [self.columns.index(name) for name in columns]
        return Coded(
            tuple(columns),
            np.asfortranarray(self.codes[:, at]),
            tuple(self.points[number] for number in at),
            tuple(self.nulls[number] for number in at),
            tuple(self.limits[number] for number in at) if self.limits else (),
        )


@dataclass(frozen=True, eq=False)
class Boxes:
    """Queries as unions of boxes: a query needs the units that meet one of its boxes, and none without boxes.

    Limits are codes, or n + 0.5 for a literal between the values n and n + 1: only units that span this gap meet a
    box between n and n + 1.
    """

    low: Float32Array
    """Shape (boxes, columns); -inf where there is no limit."""
    high: Float32Array
    null: npt.NDArray[np.int8]
    """Shape (boxes, columns): 0, the value lies in low … high; 1, it is null; 2, it is not; 3, no condition."""
    query: Int64Array
    """The query of each box, ascending."""
    queries: int
    borders: tuple[dict[int, Point], ...] = ()
    """By column and code: the literal between this code and the one before, where queries have one.

    A cut at the literal, values below it to the left, separates what a query needs from what it doesn't.
    """


@dataclass(frozen=True, eq=False)
class Units:
    """Boxes around the rows of files or row groups; all but `rows` have the shape (units, columns)."""

    low: Float32Array
    """+inf where all values are null."""
    high: Float32Array
    """-inf where all values are null."""
    has_null: BoolArray
    all_null: BoolArray
    rows: Int64Array

    def __len__(self) -> int:
        return len(self.rows)


def code(
    data: pa.Table, columns: Sequence[str], limits: Mapping[str, tuple[Point, Point]] = MappingProxyType({})
) -> Coded:
    """Replace the values of these columns by their places among the distinct ones.

    `limits` are the least and the greatest values in the whole table, where they are known.
    """
    coded = [_coded_column(name, leaf(data, find(data.schema, name))) for name in columns]
    codes = np.empty((data.num_rows, len(coded)), np.int32, order="F")
    for number, (column, _) in enumerate(coded):
        codes[:, number] = column
    nulls = tuple(bool((column == NULL).any()) for column, _ in coded)
    points = tuple(points for _, points in coded)
    return Coded(tuple(columns), codes, points, nulls, tuple(limits.get(name) for name in columns))


def _coded_column(name: str, column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], list[Point]]:
    family = family_of(column.type)
    if family is None:
        raise ColumnError(f"Column {quoted(name)} has values of type {column.type}, which have no order.")
    array = decoded_array(pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type))
    known = validity(array)
    codes = np.full(len(array), NULL, np.int32)
    if family == "bytes":
        places = pc.rank(array.cast(pa.large_binary()), tiebreaker="dense")
        codes[:] = places.to_numpy()
        codes -= 1
        first = np.zeros(0, np.intp) if not len(codes) else np.unique(codes, return_index=True)[1]
        if known is not None:
            first = first[known[first]]
            codes[~known] = NULL
        return codes, array.take(pa.array(first)).cast(pa.large_binary()).to_pylist()
    values = comparable_values(array)
    valid: BoolArray | slice = slice(None) if known is None else known
    distinct, places = np.unique(values[valid], return_inverse=True)
    codes[valid] = places
    return codes, distinct.tolist()


def boxes_of(bounds: Sequence[Bound], coded: Coded) -> Boxes:
    """Turn predicates into boxes; conditions on columns that are not in `coded` are left out."""
    limits = coded.limits or (None,) * len(coded.columns)
    known = zip(coded.columns, coded.points, limits, strict=True)
    places = {name: _Places(points, around) for name, points, around in known}
    number = {name: at for at, name in enumerate(coded.columns)}
    unions = [boxes_in(bound, lambda node: _spans(node, places)) for bound in bounds]
    counts = np.array([len(boxes) for boxes in unions], np.int64)
    shape = int(counts.sum()), len(coded.columns)
    low, high = np.full(shape, -np.inf, np.float32), np.full(shape, np.inf, np.float32)
    null = np.full(shape, ANY, np.int8)
    for at, box in enumerate(box for boxes in unions for box in boxes):
        for name, span in box.items():
            column = number[name]
            low[at, column], high[at, column], null[at, column] = span
    borders = tuple(place.borders for place in places.values())
    return Boxes(low, high, null, np.repeat(np.arange(len(bounds)), counts), len(bounds), borders)


def _spans(node: Bound, places: "dict[str, _Places]") -> tuple[str, list[Extent]] | None:
    """Return a leaf's column with the spans that it allows; None where it sets no condition."""
    if isinstance(node, Nulls) and node.column in places:
        return node.column, [Extent(-np.inf, np.inf, NOT_NULL if node.negated else IS_NULL)]
    if isinstance(node, Ranges) and node.column in places:
        return node.column, places[node.column].spans(node)
    return None


class _Places:
    """One column's sorted values, in which literals are looked up."""

    def __init__(self, points: list[Point], limits: tuple[Point, Point] | None = None) -> None:
        self.points, self.limits = points, limits
        self.values = len(points) - (bool(points) and points[-1] != points[-1])
        """The number of values without NaN, which is the last one."""
        self.borders: dict[int, Point] = {}

    def spans(self, ranges: Ranges) -> list[Extent]:
        spans = [self._span(interval) for interval in ranges.intervals]
        if ranges.nan and not any(interval.high is None for interval in ranges.intervals):
            spans.append(Extent(self.values, np.inf, RANGE))
        return spans

    def _span(self, interval: Interval) -> Extent:
        """Return the interval's limits as places, and remember the borders at which a cut would split it off."""
        low, high = -np.inf, np.inf
        if (point := interval.low) is not None:
            first, after = self._around(point)
            low = float(first) if after > first and not interval.low_open else after - 0.5
            self._border(after if interval.low_open else first, _next(point) if interval.low_open else point)
        if (point := interval.high) is not None:
            first, after = self._around(point)
            high = float(first) if after > first and not interval.high_open else first - 0.5
            self._border(first if interval.high_open else after, point if interval.high_open else _next(point))
        return self._inside(interval, Extent(low, high, RANGE))

    def _inside(self, interval: Interval, span: Extent) -> Extent:
        """Move an interval beyond the sample, but not beyond the table's values, to the sample's nearest value."""
        if self.limits is None or not self.values:
            return span
        least, greatest = self.limits
        low, high, kind = span
        if high < 0 and interval.high >= least:  # type: ignore[operator]
            high = 0.0
        if low > self.values - 1 and interval.low is not None and interval.low <= greatest:  # type: ignore[operator]
            low = self.values - 1.0
        return Extent(low, high, kind)

    def _around(self, point: Point) -> tuple[int, int]:
        """Return the places before and after a value; they are equal where the sample doesn't have it."""
        return (
            bisect_left(self.points, point, 0, self.values),  # type: ignore[type-var]
            bisect_right(self.points, point, 0, self.values),  # type: ignore[type-var]
        )

    def _border(self, place: int, point: Point) -> None:
        if place not in self.borders and point is not None:
            self.borders[place] = point


def _next(point: Point) -> Point:
    """Return the least value above this one."""
    if isinstance(point, bytes):
        return point + b"\0"
    return float(np.nextafter(point, np.inf)) if isinstance(point, float) else point + 1  # type: ignore[operator]


def literal_columns(bounds: Sequence[Bound], weights: Sequence[float] | None = None) -> list[str]:
    """Name the columns that predicates filter, those of the most queries, or of the most weight, first."""
    heavy: dict[str, float] = {}
    for bound, weight in zip(bounds, weights or [1.0] * len(bounds), strict=True):
        for name in {node.column for node in leaves_of(bound) if isinstance(node, Ranges | Nulls)}:
            heavy[name] = heavy.get(name, 0.0) + weight
    return sorted(heavy, key=lambda name: (-heavy[name], name))


def units_of(
    coded: Coded,
    order: Int64Array,
    starts: Int64Array,
    *,
    widen: bool | float = True,
    clip_low: Float32Array | None = None,
    clip_high: Float32Array | None = None,
) -> Units:
    """Return the box around each run of rows that begins at one of `starts` in `order`; no run is empty.

    m sampled rows of a file span less than the file does: on average by (max - min) / (m - 1) on each side, if they
    were drawn evenly. Boxes are widened by `widen` times that, but not beyond `clip_low` and `clip_high`, nor beyond
    the sample's values.
    """
    shape = len(starts), len(coded.columns)
    low, high = np.empty(shape, np.float32), np.empty(shape, np.float32)
    nulls = np.zeros(shape, np.int64)
    rows = np.diff(starts, append=len(order)).astype(np.int64)
    for number in range(shape[1] if len(starts) else 0):
        column = coded.codes[:, number][order]
        # As an unsigned number, the code of null is the largest.
        low[:, number] = np.minimum.reduceat(column.view(np.uint32), starts)
        high[:, number] = np.maximum.reduceat(column, starts)
        if coded.nulls[number]:
            nulls[:, number] = np.add.reduceat((column == NULL).astype(np.int64), starts)
    all_null = nulls == rows[:, None]
    if widen:
        low[all_null] = 0
        gap = (high - low) * np.float32(widen) / np.maximum(rows[:, None] - nulls - 1, 1).astype(np.float32)
        low -= gap
        high += gap
        # Not beyond the sample: else the last units would meet literals beyond every known value.
        np.maximum(low, 0, out=low)
        np.minimum(high, np.array([len(points) - 1 for points in coded.points], np.float32), out=high)
        if clip_low is not None:
            np.maximum(low, clip_low, out=low)
        if clip_high is not None:
            np.minimum(high, clip_high, out=high)
    low[all_null], high[all_null] = np.inf, -np.inf
    return Units(low, high, nulls > 0, all_null, rows)


def meets(units: Units, boxes: Boxes) -> BoolArray:
    """Return whether each unit might hold a row that each query needs, in the shape (units, queries)."""
    needed = np.zeros((boxes.queries, len(units)), np.bool_)
    if not len(boxes.query) or not len(units):
        return needed.T
    firsts = np.flatnonzero(np.diff(boxes.query, prepend=-1))
    with_boxes = boxes.query[firsts]
    step = max(1, _CELLS // len(boxes.query))
    for start in range(0, len(units), step):
        part = slice(start, start + step)
        met = _met(units, boxes, part)
        needed[with_boxes, part] = met if len(firsts) == len(met) else np.logical_or.reduceat(met, firsts, axis=0)
    return needed.T


def _met(units: Units, boxes: Boxes, part: slice) -> BoolArray:
    """Return whether each box and each unit meet in every column, in the shape (boxes, units)."""
    met = np.ones((len(boxes.query), len(units.rows[part])), np.bool_)
    for column in range(boxes.null.shape[1]):
        kinds = boxes.null[:, column]
        low, high = units.low[part, column], units.high[part, column]
        ranged = np.flatnonzero(kinds == RANGE)
        if len(ranged):
            inside = high >= boxes.low[ranged, column, None]
            inside &= low <= boxes.high[ranged, column, None]
            inside &= ~units.all_null[part, column]
            met[ranged] &= inside
        for kind, mask in ((IS_NULL, units.has_null[part, column]), (NOT_NULL, ~units.all_null[part, column])):
            of_kind = np.flatnonzero(kinds == kind)
            if len(of_kind):
                met[of_kind] &= mask
    return met
