"""Estimate from metadata how likely it is that a file which is read holds no matching row.

Rows are assumed to be spread evenly over the range of each column, and columns to be independent. In doubt a file is
needed: unknown statistics never make a read without a match more likely.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zonal.predicates.bound import All, Bound, Interval, Nulls, Ranges, Some
from zonal.predicates.fold import fold
from zonal.skipping.index import ColumnIndex, Index
from zonal.skipping.line import Line, line_of
from zonal.snapshot import UNKNOWN, Snapshot
from zonal.values.arrays import BoolArray, Float64Array, Int32Array, Int64Array

_MANY = 8
"""Beyond this many intervals, coverage is interpolated instead of computed for each interval and file."""
_CERTAIN = 14.0
"""Expected number of matching rows from which the chance that none matches, one in a million, counts as 0."""


class Chances:
    """Estimates for a snapshot's files how likely they hold no row for a query."""

    def __init__(self, snapshot: Snapshot, index: Index | None = None) -> None:
        files = snapshot.files
        self._rows = files.rows
        self._known_rows = np.where(files.rows == UNKNOWN, np.nan, files.rows)
        self._own = index or Index(files.rows, files.bounds)
        self._partition = Index(files.rows, files.partition_bounds)
        self._columns: dict[str, _Column | None] = {}

    def of_nothing(self, predicate: Bound, at: Int64Array) -> Float64Array:
        """Return for each of these files the chance that no row matches; 0 where the metadata can't tell."""
        rows, row = self._known_rows[at], self.of_row(predicate, at)
        nothing = np.zeros(len(at))
        rare = np.flatnonzero(rows * row < _CERTAIN)  # false for an unknown number of rows
        with np.errstate(divide="ignore", invalid="ignore"):
            nothing[rare] = np.exp(rows[rare] * np.log(1 - row[rare]))
        nothing[rows == 0] = 1.0
        return nothing

    def of_row(self, predicate: Bound, at: Int64Array) -> Float64Array:
        """Return for each of these files the chance that a row matches."""

        def leaf(node: Bound) -> Float64Array:
            column = self._column(node.column) if isinstance(node, Ranges | Nulls) else None
            if column is None:
                return np.ones(len(at))
            return column.in_ranges(node, at) if isinstance(node, Ranges) else column.null(node, at)  # type: ignore[arg-type]

        def join(node: All | Some, parts: Sequence[Float64Array]) -> Float64Array:
            result = np.ones(len(at))
            for part in parts:
                result *= part if isinstance(node, All) else 1 - part
            return result if isinstance(node, All) else 1 - result

        return fold(predicate, leaf, join)

    def _column(self, name: str) -> "_Column | None":
        """Return a column's statistics: the files' own bounds or, where none has any, partition values."""
        if name not in self._columns:
            known = [index.column(name) for index in (self._own, self._partition) if name in index]
            chosen = next((column for column in known if len(column.values)), known[0] if known else None)
            self._columns[name] = None if chosen is None else _Column.of(chosen, self._rows)
        return self._columns[name]


@dataclass(frozen=True, eq=False)
class _Column:
    """A column's bounds as positions on a line."""

    index: ColumnIndex
    line: Line
    low: Float64Array
    """Start of each file's range."""
    high: Float64Array
    """End of each file's range; a whole number is one step wide."""
    unclear: BoolArray
    """Files whose range is unknown or empty."""
    has_unclear: bool
    null_share: Float64Array
    """NaN where it isn't known."""
    has_nulls: bool
    nan_share: Float64Array

    @classmethod
    def of(cls, index: ColumnIndex, rows: Int64Array) -> "_Column":
        line = line_of(index.values)
        positions = np.append(line.positions, [np.nan, np.nan])  # -1 and len(values): not known
        low, high = positions[index.lower], positions[index.upper] + line.step
        unclear = ~(high - low >= line.step)
        null_share, nan_share = (
            np.where((counts == UNKNOWN) | (rows <= 0), np.nan, counts / np.maximum(rows, 1)).clip(0, 1)
            for counts in (index.nulls, index.nans)
        )
        has_nulls = bool((null_share > 0).any())
        return cls(index, line, low, high, unclear, bool(unclear.any()), null_share, has_nulls, nan_share)

    def null(self, node: Nulls, at: Int64Array) -> Float64Array:
        """Return how likely a row is null or, negated, is not."""
        share = self.null_share[at]
        return np.where(np.isnan(share), 1.0, 1 - share if node.negated else share)

    def in_ranges(self, ranges: Ranges, at: Int64Array) -> Float64Array:
        """Return how likely a row's value lies in one of the intervals."""
        chance = self._not_null(ranges.intervals, at)
        if self.has_nulls:
            chance *= 1 - np.nan_to_num(self.null_share[at])
        if ranges.nan:
            share = self.nan_share[at]
            chance = np.where(np.isnan(share), 1.0, np.minimum(chance + share, 1.0))
        if self.has_unclear:
            chance[self.unclear[at]] = 1.0
        return chance

    def _not_null(self, intervals: Sequence[Interval], at: Int64Array) -> Float64Array:
        low, high = self.low[at], self.high[at]
        chance = self._covered(intervals, low, high)
        width = np.subtract(high, low, out=low)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance /= width
        if not self.line.step:  # a single value has no width: it counts as one of the known bounds
            single = [interval for interval in intervals if self._is_single(interval)]
            if single:
                met, values = self._met(single, at)
                chance = np.maximum(chance, met / values)
            narrow = np.flatnonzero(width <= 0)
            if len(narrow):
                chance[narrow] = self._met(intervals, at[narrow])[0] > 0
        return np.minimum(chance, 1.0, out=chance)

    def _is_single(self, interval: Interval) -> bool:
        """Tell whether an interval is a point on the line: a value, or a range too narrow for its resolution."""
        start, end = self.line.span(interval)
        return end <= start

    def _covered(self, intervals: Sequence[Interval], low: Float64Array, high: Float64Array) -> Float64Array:
        """Return how much of each file's range lies in the intervals."""
        spans = np.array([self.line.span(interval) for interval in intervals]).reshape(-1, 2)
        if len(intervals) > _MANY:
            until = np.cumsum(np.column_stack([np.zeros(len(spans)), spans[:, 1] - spans[:, 0]]))
            between: Float64Array = np.interp(high, spans.ravel(), until) - np.interp(low, spans.ravel(), until)
            return between
        covered = np.zeros(len(low))
        for start, end in spans.tolist():
            part = np.minimum(high, end)
            part -= np.maximum(low, start)
            covered += np.maximum(part, 0, out=part)
        return covered

    def _met(self, intervals: Sequence[Interval], at: Int64Array) -> tuple[Int64Array, Int32Array]:
        """Return how many intervals each file's range meets, and how many distinct bounds lie in it."""
        lower, upper = self.index.lower[at], self.index.upper[at]
        limits = np.array([self.index.places(interval) for interval in intervals], np.int64).reshape(-1, 2)
        met = np.searchsorted(limits[:, 0], upper, side="right") - np.searchsorted(limits[:, 1], lower)
        return met, np.maximum(upper - lower + 1, 1)
