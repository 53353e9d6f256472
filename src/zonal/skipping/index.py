"""An index of bounds that decides which files, row groups or pages (units) might hold a matching row.

The law: a unit that holds a row for which the predicate is true is kept. A missing bound, an unknown count and a
possible NaN each keep the unit.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zonal.predicates.bound import All, Anything, Bound, Interval, Nulls, Point, Ranges, Some, conjuncts, leaves_of
from zonal.predicates.fold import fold
from zonal.snapshot import UNKNOWN, Bounds
from zonal.values.arrays import BoolArray, Int64Array, UInt64Array
from zonal.values.words import decoded_array, family_of, words_of

_Kind = TypeVar("_Kind", bound=np.generic)

_MANY = 8
"""With more intervals than this, each unit searches its nearest interval instead of comparing with all of them."""


@dataclass(frozen=True, eq=False)
class Skipped:
    """The units that a predicate keeps, and the column that excludes each of the others."""

    kept: BoolArray
    by: Mapping[str, BoolArray]
    """Units that were skipped, by the first column (or columns, joined with ` or `) that excludes them."""


class Index:
    """Bounds of many units, with values replaced by their rank among all bounds of the column."""

    def __init__(self, rows: Int64Array, bounds: Mapping[str, Bounds]) -> None:
        self.rows = rows
        self._bounds = bounds
        self._columns: dict[str, ColumnIndex] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, column: str) -> bool:
        return column in self._bounds

    def skip(self, predicate: Bound) -> Skipped:
        """Keep the units that might hold a row for which the predicate is true."""
        kept = np.ones(len(self), np.bool_)
        by: dict[str, BoolArray] = {}
        for part in conjuncts(predicate):
            might = self.might_match(part)
            excluded = kept & ~might
            if excluded.any():
                name = label_of(part)
                by[name] = by[name] | excluded if name in by else excluded
            kept &= might
        return Skipped(kept, by)

    def might_match(self, predicate: Bound, at: Int64Array | None = None) -> BoolArray:
        """Return which of all units, or of the units with the numbers `at`, might match."""
        count = len(self) if at is None else len(at)

        def leaf(node: Bound) -> BoolArray:
            return self._leaf(node, count, at)

        def join(node: All | Some, parts: Sequence[BoolArray]) -> BoolArray:
            result = np.full(count, isinstance(node, All))
            for part in parts:
                if isinstance(node, All):
                    result &= part
                else:
                    result |= part
            return result

        return fold(predicate, leaf, join)

    def column(self, name: str) -> "ColumnIndex":
        """Return the index of a column that has bounds."""
        if name not in self._columns:
            self._columns[name] = ColumnIndex(self._bounds[name], self.rows)
        return self._columns[name]

    def _leaf(self, node: Bound, count: int, at: Int64Array | None) -> BoolArray:
        if isinstance(node, Ranges) and node.column in self:
            return self.column(node.column).might_lie_in(node, at)
        if isinstance(node, Nulls) and node.column in self:
            column = self.column(node.column)
            might: BoolArray = _some_of(column.nulls, at) != 0
            return ~_some_of(column.all_null, at) if node.negated else might
        return np.ones(count, np.bool_)


class ColumnIndex:
    """One column's bounds as places in the sorted list of all its bounds; -1 and len(values) where one is unknown."""

    def __init__(self, bounds: Bounds, rows: Int64Array) -> None:
        self.nulls = bounds.nulls
        self.all_null = (bounds.nulls >= rows) & (bounds.nulls != UNKNOWN) & (rows != UNKNOWN)
        self.nans = bounds.nans
        both = pa.concat_arrays([bounds.lower, bounds.upper])
        known = _is_valid(both) & (family_of(both.type) is not None)  # lists and maps have counts of nulls alone
        self.values, places = _distinct(both, known)
        codes = np.empty(len(both), np.int32)
        codes[known] = places
        count = len(rows)
        codes[:count][~known[:count]] = -1
        codes[count:][~known[count:]] = len(self.values)
        self.lower, self.upper = codes[:count].copy(), codes[count:].copy()

    @cached_property
    def _list(self) -> list[Point]:
        values: list[Point] = self.values.tolist()
        return values

    @cached_property
    def _any_all_null(self) -> bool:
        return bool(self.all_null.any())

    def might_lie_in(self, ranges: Ranges, at: Int64Array | None = None) -> BoolArray:
        """Return which units, of all or of those `at`, might hold a value in one of the intervals."""
        limits = [self.places(interval) for interval in ranges.intervals]
        lower, upper = _some_of(self.lower, at), _some_of(self.upper, at)
        might = np.zeros(len(lower), np.bool_)
        if len(limits) > _MANY:
            first, last = (np.array(side, np.int32) for side in zip(*limits, strict=True))
            nearest = np.searchsorted(last, lower)  # the first interval that doesn't end before the unit begins
            inside = nearest < len(last)
            might[inside] = first[nearest[inside]] <= upper[inside]
        else:
            for low, high in limits:
                might |= (lower <= high) & (upper >= low)
        if self._any_all_null:
            might &= ~_some_of(self.all_null, at)
        if ranges.nan:
            might |= _some_of(self.nans, at) != 0
        return might

    def places(self, interval: Interval) -> tuple[int, int]:
        """Return the first and the last place in the interval; unknown bounds have the places -1 and len(values)."""
        low, high = 0, len(self.values)
        if interval.low is not None:
            low = (bisect_right if interval.low_open else bisect_left)(self._list, interval.low)  # type: ignore[type-var]
        if interval.high is not None:
            find: Callable[[Sequence[Point], Point], int] = bisect_left if interval.high_open else bisect_right  # type: ignore[assignment]
            high = find(self._list, interval.high) - 1
        return low, high


def comparable_values(array: pa.Array) -> npt.NDArray[np.generic]:
    """Return bounds in the column's domain (see `predicates.bound`): integers, floats, or bytes as objects."""
    array = decoded_array(array)
    family = str(family_of(array.type))
    if family == "bytes":
        return np.array(array.cast(pa.large_binary()).to_pylist(), object)
    if family.startswith("decimal"):
        words = [words_of(array, family).at(depth) for depth in range(4 if family.startswith("decimal256") else 2)]
        return _whole_numbers(words)
    word = words_of(array, family).at(0)
    if family == "float":
        values: npt.NDArray[np.float64] = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        return values + 0.0  # -0.0 is 0.0
    if family == "uint64":
        return word
    return (word ^ np.uint64(1 << 63)).view(np.int64)


def _whole_numbers(words: Sequence[UInt64Array]) -> npt.NDArray[np.generic]:
    """Return the unscaled numbers of decimals: 64-bit integers where they fit, else Python's."""
    low = words[-1].view(np.int64)
    high = [words[0] ^ np.uint64(1 << 63), *words[1:-1]]
    sign = (low >> 63).view(np.uint64)
    if all((word == sign).all() for word in high):
        return low
    numbers = (words[0] ^ np.uint64(1 << 63)).view(np.int64).astype(object)
    for word in words[1:]:
        numbers = numbers * 2**64 + word.astype(object)
    return numbers


def _distinct(array: pa.Array, known: BoolArray) -> tuple[npt.NDArray[np.generic], Int64Array]:
    """Return the sorted distinct values among the known ones, and the place of each known value in them."""
    plain = decoded_array(array)
    if family_of(plain.type) is None:
        return np.zeros(0), np.zeros(0, np.int64)
    if family_of(plain.type) != "bytes":
        return np.unique(comparable_values(array)[known], return_inverse=True)
    texts = plain.cast(pa.large_binary()).filter(pa.array(known))
    places = pc.rank(texts, tiebreaker="dense").to_numpy(zero_copy_only=False).astype(np.int64) - 1
    first = np.empty(int(places.max(initial=-1)) + 1, np.int64)
    first[places] = np.arange(len(places))
    return np.array(texts.take(pa.array(first)).to_pylist(), object), places


def _some_of(values: npt.NDArray[_Kind], at: Int64Array | None) -> npt.NDArray[_Kind]:
    return values if at is None else values[at]


def _is_valid(array: pa.Array) -> BoolArray:
    valid: BoolArray = pc.is_valid(array).to_numpy(zero_copy_only=False)
    return valid


def label_of(part: Bound) -> str:
    """Name the columns of a conjunct as the reason for skipping."""
    return " or ".join(columns_of(part)) or "the predicate"


def columns_of(predicate: Bound) -> list[str]:
    """List the columns of a predicate in order of their first mention."""
    leaves = leaves_of(predicate)
    names = (name for leaf in leaves for name in (leaf.columns if isinstance(leaf, Anything) else (leaf.column,)))
    return list(dict.fromkeys(names))
