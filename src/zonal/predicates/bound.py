"""Predicates bound to a schema: ranges of columns, joined by AND and OR, in domains that only need comparisons.

The domain of a column is: integers for every type that counts something (integers, booleans, dates in days, times and
timestamps in the column's unit, decimals as unscaled numbers), floats, or bytes (strings as UTF-8).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

Point: TypeAlias = int | float | bytes | None


@dataclass(frozen=True)
class Interval:
    """Values from `low` to `high`; None is no limit. Whole numbers are always closed."""

    low: Point = None
    high: Point = None
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True)
class Ranges:
    """The column's value lies in one of the intervals, sorted and disjoint, or is NaN where `nan` is set."""

    column: str
    intervals: tuple[Interval, ...]
    nan: bool = False


@dataclass(frozen=True)
class Nulls:
    """The column's value is null, or with `negated`, is not."""

    column: str
    negated: bool = False


@dataclass(frozen=True)
class All:
    """Every part is true; All(()) always is."""

    parts: "tuple[Bound, ...]"


@dataclass(frozen=True)
class Some:
    """At least one part is true; Some(()) never is."""

    parts: "tuple[Bound, ...]"


@dataclass(frozen=True)
class Anything:
    """Statistics can't decide it: it might be true. `reason` is for people."""

    reason: str
    columns: tuple[str, ...] = ()


Bound: TypeAlias = "Ranges | Nulls | All | Some | Anything"


def conjuncts(predicate: Bound) -> "tuple[Bound, ...]":
    """Return the conjuncts: the parts of an AND, else the predicate itself."""
    return predicate.parts if isinstance(predicate, All) else (predicate,)


def leaves_of(predicate: Bound) -> Iterator[Ranges | Nulls | Anything]:
    """Yield the parts that are neither AND nor OR, from left to right, without recursion."""
    waiting: list[Bound] = [predicate]
    while waiting:
        node = waiting.pop()
        if isinstance(node, All | Some):
            waiting.extend(reversed(node.parts))
        else:
            yield node


def union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Sort intervals of one column and join those that meet; empty ones vanish."""
    ordered = sorted((i for i in intervals if not _is_empty(i)), key=_start)
    joined: list[Interval] = []
    for interval in ordered:
        if joined and _meets(joined[-1], interval):
            last = joined.pop()
            high = last if _ends_later(last, interval) else interval
            interval = Interval(last.low, high.high, last.low_open, high.high_open)
        joined.append(interval)
    return tuple(joined)


def intersection(one: Iterable[Interval], other: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return what lies in both unions, by merging the two sorted lists."""
    left, right = list(one), list(other)
    overlaps = []
    i = j = 0
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        low = a if _start(a) >= _start(b) else b
        a_last = _ends_later(a, b)
        high = b if a_last else a
        overlaps.append(Interval(low.low, high.high, low.low_open, high.high_open))
        if a_last:
            j += 1
        else:
            i += 1
    return union(overlaps)


def _start(interval: Interval) -> tuple[int, Point, bool]:
    return (0, 0, False) if interval.low is None else (1, interval.low, interval.low_open)


def _ends_later(one: Interval, other: Interval) -> bool:
    if one.high is None or other.high is None:
        return one.high is None
    if one.high != other.high:
        return one.high > other.high  # type: ignore[operator]
    return other.high_open


def _meets(first: Interval, second: Interval) -> bool:
    if first.high is None or second.low is None:
        return True
    if isinstance(first.high, int) and isinstance(second.low, int):
        return second.low <= first.high + 1
    if first.high == second.low:
        return not (first.high_open and second.low_open)
    return second.low < first.high  # type: ignore[operator]


def _is_empty(interval: Interval) -> bool:
    if interval.low is None or interval.high is None:
        return False
    if interval.low == interval.high:
        return interval.low_open or interval.high_open
    return interval.low > interval.high  # type: ignore[operator]
