"""The picture of a table's versions: files as rectangles with 16-bit coordinates, and queries as boxes over them."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from zonal.errors import ColumnError
from zonal.picture.ticks import LAST_PLACE, AxisKind, axis_kind, ticks_of
from zonal.predicates.bound import All, Bound, Interval, Point, Ranges, Some, intersection, union
from zonal.predicates.fold import fold
from zonal.skipping.depth import Depth, column_depth, known_bounds
from zonal.skipping.files import FileIndex
from zonal.skipping.index import ColumnIndex
from zonal.snapshot import Bounds, LazyBounds, Snapshot
from zonal.values.arrays import AnyArray, BoolArray, Float64Array, Int64Array, UInt16Array
from zonal.values.columns import find, leaf_type
from zonal.values.words import family_of

MOST_FILES = 10_000
"""The most files that are drawn per version; of more, a random sample is drawn."""

MOST_AXES = 12
MOST_QUESTIONS = 1_000
MOST_READS = 200
"""The first questions, which list the drawn files that they read."""
MOST_BOXES = 64
"""The most ranges per column of a question."""


@dataclass(frozen=True, eq=False)
class Axis:
    """A column's values as places from 0 to 65535, the same for all versions."""

    column: str
    kind: AxisKind
    even: bool
    """Whether values are placed by their rank among all bounds: texts, and numbers that would lie in one spot."""
    ticks: tuple[tuple[int, str], ...]
    """Places and their labels."""
    has_unknown: bool = False
    """Whether some file has unknown bounds, so that it covers the axis to its ends."""
    has_round_ticks: bool = False
    """Whether the labels are round numbers and moments rather than values of files."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """The files of one version."""

    label: str
    version: int | None
    files: int
    bytes: int
    drawn: Int64Array
    """Numbers of the files that are drawn."""
    low: Mapping[str, UInt16Array]
    """By column, one place per drawn file; 0 and 65535 where a bound is unknown, above `high` where all is null."""
    high: Mapping[str, UInt16Array]
    added_by: Int64Array
    depths: tuple[Depth, ...]


@dataclass(frozen=True, eq=False)
class DrawnQuery:
    """A query over the drawings."""

    text: str
    weight: float
    boxes: Mapping[str, tuple[tuple[int, int], ...]]
    """By column, the ranges of its condition; columns without a condition are left out."""
    files: tuple[int, ...]
    """How many files it reads of each drawing."""
    shares: tuple[float, ...]
    """The share of each drawing's bytes that it reads."""
    reads: tuple[BoolArray, ...]
    """A mask over the drawn files of each drawing; empty beyond the first `MOST_READS` questions."""


@dataclass(frozen=True, eq=False)
class Picture:
    """Versions of a table, before and after, with queries over them."""

    axes: tuple[Axis, ...]
    drawings: tuple[Drawing, ...]
    questions: tuple[DrawnQuery, ...]


def picture_of(
    versions: Sequence[tuple[str, Snapshot]],
    columns: Sequence[str],
    questions: Sequence[tuple[str, Bound, float]] = (),
) -> Picture:
    """Draw versions of one table, each with its label, over these columns.

    Columns without a known bound in any version are left out, and so are those beyond the first dozen. The questions
    are bound to the first version's schema; a later version's bounds of another type are cast to the first one's.
    """
    shown = [(label, _as_first(snapshot, versions[0][1].schema)) for label, snapshot in versions]
    for _, snapshot in shown:
        if isinstance(snapshot.files.bounds, LazyBounds):
            snapshot.files.bounds.load(columns)
    lines: dict[str, _Line] = {}
    for column in dict.fromkeys(columns):
        line = _line(column, [snapshot for _, snapshot in shown]) if len(lines) < MOST_AXES else None
        if line is not None:
            lines[column] = line
    drawings = tuple(_drawing(label, snapshot, number, lines) for number, (label, snapshot) in enumerate(shown))
    indexes = [FileIndex(snapshot) for _, snapshot in shown]
    drawn = tuple(
        _question(text, bound, weight, indexes, drawings if number < MOST_READS else (), lines)
        for number, (text, bound, weight) in enumerate(questions[:MOST_QUESTIONS])
    )
    return Picture(tuple(line.axis for line in lines.values()), drawings, drawn)


# --- Columns ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Line:
    """A column's distinct bounds of all versions with their places, and the places of each version's files."""

    axis: Axis
    values: AnyArray
    places: UInt16Array
    low: list[UInt16Array]
    high: list[UInt16Array]

    def between(self, interval: Interval) -> tuple[int, int] | None:
        """Return the first and the last place of an interval; None where it lies beyond the axis."""
        first, last = self.values[0], self.values[-1]
        if interval.low is not None and (interval.low > last or (interval.low_open and interval.low == last)):
            return None
        if interval.high is not None and (interval.high < first or (interval.high_open and interval.high == first)):
            return None
        low = 0 if interval.low is None or interval.low < first else self._place(interval.low)
        high = LAST_PLACE if interval.high is None or interval.high > last else self._place(interval.high)
        return low, high

    def _place(self, point: Point) -> int:
        """Return the place of a value: interpolated between its neighbors, or halfway on an even axis."""
        above = bisect_left(self.values, point)
        if self.values[above] == point:
            return int(self.places[above])
        low, high = int(self.places[above - 1]), int(self.places[above])
        if self.axis.even:
            return (low + high) // 2
        start, end = float(self.values[above - 1]), float(self.values[above])
        part = (float(point) - start) / (end - start) if 0 < end - start < math.inf else 0.5  # type: ignore[arg-type]
        return low + round((high - low) * part)


def _line(column: str, snapshots: Sequence[Snapshot]) -> _Line | None:
    """Place a column's bounds of all versions on one line; None where none is known."""
    by_version = [known_bounds(snapshot, column) for snapshot in snapshots]
    kind = next((bounds.lower.type for bounds in by_version if bounds is not None), None)
    if kind is None:
        return None
    indexed = [
        None if bounds is None else ColumnIndex(bounds, snapshot.files.rows)
        for bounds, snapshot in zip(by_version, snapshots, strict=True)
    ]
    values = np.unique(np.concatenate([index.values for index in indexed if index is not None]))
    if not len(values):
        return None
    is_text = values.dtype == object and isinstance(values[0], bytes)
    line = None if is_text else _on_a_line(values)
    even = line is None or _is_in_one_spot(line)
    places = (_evenly(len(values)) if even or line is None else np.round(line * LAST_PLACE)).astype(np.uint16)
    low, high = [], []
    has_unknown = any(index is None or not _is_known(index) for index in indexed)
    for index, snapshot in zip(indexed, snapshots, strict=True):
        starts, ends = _ends(index, len(snapshot.files), values, places)
        low.append(starts)
        high.append(ends)
    schema_kind = _schema_kind(snapshots[0].schema, column, kind)
    ticks, are_round = ticks_of(values, places, schema_kind, is_even=even)
    axis = Axis(column, axis_kind(schema_kind), even, ticks, has_unknown, are_round)
    return _Line(axis, values, places, low, high)


def _on_a_line(values: AnyArray) -> Float64Array:
    """Put sorted numbers on a line from 0 to 1; infinite ones lie at its ends."""
    numbers = np.asarray(values, np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite) or finite[0] == finite[-1]:
        return np.clip((np.sign(numbers) * np.isinf(numbers) + 1) / 2, 0.0, 1.0)
    first, last = float(finite[0]), float(finite[-1])
    part = 1.0 if math.isfinite(last - first) else 0.5  # the range may exceed a float's
    scaled = np.clip(numbers, first, last) * part - first * part
    return np.maximum.accumulate(scaled / (last * part - first * part))


def _is_in_one_spot(line: Float64Array) -> bool:
    """Tell whether nearly all of many bounds lie in a small part of the line, because of a few outliers."""
    most = math.ceil(0.9 * len(line))
    return most >= 4 and bool((line[most - 1 :] - line[: len(line) - most + 1]).min() < 0.02)


def _evenly(count: int) -> Float64Array:
    return np.full(1, (LAST_PLACE + 1) / 2) if count == 1 else np.round(np.linspace(0, LAST_PLACE, count))


def _ends(
    index: ColumnIndex | None, files: int, values: AnyArray, places: UInt16Array
) -> tuple[UInt16Array, UInt16Array]:
    """Return where each file begins and ends; a file with nothing but nulls ends before it begins."""
    low, high = np.zeros(files, np.uint16), np.full(files, LAST_PLACE, np.uint16)
    if index is None:
        return low, high
    place = places[np.searchsorted(values, index.values)] if len(index.values) else places[:0]
    known_low, known_high = index.lower >= 0, index.upper < len(index.values)
    low[known_low], high[known_high] = place[index.lower[known_low]], place[index.upper[known_high]]
    low[index.all_null], high[index.all_null] = LAST_PLACE, 0
    return low, high


def _is_known(index: ColumnIndex) -> bool:
    """Tell whether all files that hold a value have both bounds."""
    return bool((index.all_null | ((index.lower >= 0) & (index.upper < len(index.values)))).all())


def _schema_kind(schema: pa.Schema, column: str, kind: pa.DataType) -> pa.DataType:
    """Return a column's type in the schema, or `kind` where it is not there; bounds of strings are bytes."""
    try:
        return leaf_type(schema, find(schema, column))
    except ColumnError:
        return kind


# --- Versions and questions ------------------------------------------------------------------------------------------


def _as_first(snapshot: Snapshot, schema: pa.Schema) -> Snapshot:
    """Cast a version's bounds to the types of another version's schema, so that they can be compared."""
    files = snapshot.files
    changed = [name for name in files.bounds if _family(snapshot.schema, name) != _family(schema, name)]
    if snapshot.schema is schema or not changed:
        return snapshot
    bounds = {**{name: files.bounds[name] for name in files.bounds if name not in changed}}
    for name in changed:
        converted = _cast(files.bounds[name], _schema_kind(schema, name, pa.null()))
        if converted is not None:
            bounds[name] = converted
    return replace(snapshot, schema=schema, files=replace(files, bounds=bounds))


def _family(schema: pa.Schema, column: str) -> str | None:
    return family_of(_schema_kind(schema, column, pa.null()))


def _cast(bounds: Bounds, kind: pa.DataType) -> Bounds | None:
    """Cast bounds; None where that isn't exact, so that nothing is skipped by them."""
    try:
        return replace(bounds, lower=bounds.lower.cast(kind), upper=bounds.upper.cast(kind))
    except pa.ArrowException:
        return None


def _drawing(label: str, snapshot: Snapshot, number: int, lines: Mapping[str, _Line]) -> Drawing:
    files = snapshot.files
    drawn = np.arange(len(files))
    if len(files) > MOST_FILES:
        drawn = np.sort(np.random.default_rng(0).choice(len(files), MOST_FILES, replace=False))
    depths = [depth for column in lines if (depth := column_depth(snapshot, column)) is not None]
    return Drawing(
        label=label,
        version=snapshot.version,
        files=len(files),
        bytes=int(files.sizes.sum()),
        drawn=drawn,
        low={column: line.low[number][drawn] for column, line in lines.items()},
        high={column: line.high[number][drawn] for column, line in lines.items()},
        added_by=files.added_by[drawn],
        depths=tuple(depths),
    )


def _question(
    text: str,
    bound: Bound,
    weight: float,
    indexes: Sequence[FileIndex],
    drawings: Sequence[Drawing],
    lines: Mapping[str, _Line],
) -> DrawnQuery:
    """Match a query against all versions, and list the files that it reads of `drawings`."""
    kept = [index.prune(bound).kept for index in indexes]
    sizes = [index.snapshot.files.sizes for index in indexes]
    boxes = {column: _boxes(ranges, lines[column]) for column, ranges in ranges_of(bound).items() if column in lines}
    return DrawnQuery(
        text=text,
        weight=weight,
        boxes=boxes,
        files=tuple(int(mask.sum()) for mask in kept),
        shares=tuple(int(size[mask].sum()) / max(int(size.sum()), 1) for mask, size in zip(kept, sizes, strict=True)),
        reads=tuple(kept[number][drawing.drawn] for number, drawing in enumerate(drawings)),
    )


def _boxes(intervals: Iterable[Interval], line: _Line) -> tuple[tuple[int, int], ...]:
    """Return the places of intervals; those that touch are joined, and of too many, those with the smallest gaps."""
    joined: list[tuple[int, int]] = []
    for low, high in filter(None, map(line.between, intervals)):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(high, joined[-1][1])
        else:
            joined.append((low, high))
    while len(joined) > MOST_BOXES:
        gaps = [after[0] - before[1] for before, after in pairwise(joined)]
        at = gaps.index(min(gaps))
        joined[at : at + 2] = [(joined[at][0], joined[at + 1][1])]
    return tuple(joined)


def ranges_of(predicate: Bound) -> Mapping[str, tuple[Interval, ...]]:
    """Return, by column, intervals that hold the values of every matching row; other columns may have any value.

    >>> from zonal.predicates.bound import Interval, Ranges
    >>> a, b = Ranges("a", (Interval(1, 3),)), Ranges("b", (Interval(5, 5),))
    >>> sorted(ranges_of(All((a, Some((b, a))))))
    ['a']
    """
    return fold(predicate, _leaf_ranges, _joined_ranges)


def _leaf_ranges(leaf: Bound) -> Mapping[str, tuple[Interval, ...]]:
    return {leaf.column: leaf.intervals} if isinstance(leaf, Ranges) and not leaf.nan else {}


def _joined_ranges(
    node: All | Some, parts: Sequence[Mapping[str, tuple[Interval, ...]]]
) -> Mapping[str, tuple[Interval, ...]]:
    joined: dict[str, tuple[Interval, ...]] = {}
    if isinstance(node, All):
        for part in parts:
            for column, ranges in part.items():
                joined[column] = intersection(joined[column], ranges) if column in joined else ranges
        return joined
    for column in parts[0] if parts else ():
        if all(column in part for part in parts):
            joined[column] = union(interval for part in parts for interval in part[column])
    return joined
