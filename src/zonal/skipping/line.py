"""A number line for a column's bounds and the literals of queries, on which distances can be measured."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zonal.predicates.bound import Interval, Point
from zonal.values.arrays import Float64Array

_LARGEST = 1e300
"""The position of infinite bounds, so that distances stay finite."""


@dataclass(frozen=True, eq=False)
class Line:
    """Sorted values as positions from 0 on: numbers and times as they are, texts by eight bytes after a shared prefix.

    >>> line = line_of(np.array([10, 20, 40]))
    >>> line.positions.tolist(), line.span(Interval(15, None)), line.span(Interval(20, 20))
    ([0.0, 10.0, 30.0], (5.0, 31.0), (10.0, 11.0))
    """

    positions: Float64Array
    first: Point
    last: Point
    step: float
    """The width of one value: 1 for whole numbers, else 0."""
    shared: int = 0
    """For texts, the length of their shared prefix in bytes."""

    def span(self, interval: Interval) -> tuple[float, float]:
        """Return the start and the end of an interval, clipped to the line."""
        if self.first is None:
            return 0.0, 0.0
        low = self.first if interval.low is None else max(interval.low, self.first)
        high = self.last if interval.high is None else min(interval.high, self.last)  # type: ignore[type-var]
        # Whole numbers: an interval beside the line is one step away from it, and empty.
        start = self._place(low) if low <= self.last else self.positions[-1] + self.step  # type: ignore[operator]
        end = self._place(high) if high >= self.first else -self.step  # type: ignore[operator]
        return float(start), float(end + self.step)

    def _place(self, point: Point) -> float:
        if isinstance(point, bytes):
            return float(_number(point, self.shared) - _number(self.first, self.shared))  # type: ignore[arg-type]
        if isinstance(point, float) or isinstance(self.first, float):
            return _finite(point) - _finite(self.first)
        return float(point - self.first)  # type: ignore[operator]


def line_of(values: npt.NDArray[np.generic]) -> Line:
    """Put a column's distinct bounds, sorted and in its domain, on a line."""
    if not len(values):
        return Line(np.zeros(0), None, None, 0.0)
    first, last = values[:1].tolist()[0], values[-1:].tolist()[0]
    if isinstance(first, bytes):
        shared = _shared_prefix(first, last)
        eight = np.array([value[shared : shared + 8] for value in values], "S8").view(">u8").astype(np.uint64)
        return Line((eight - eight[0]).astype(np.float64), first, last, 0.0, shared)
    if isinstance(first, float):
        finite = np.clip(values.astype(np.float64), -_LARGEST, _LARGEST)
        return Line(finite - finite[0], first, last, 0.0)
    if values.dtype == object:
        return Line(np.array([float(value - first) for value in values.tolist()]), first, last, 1.0)
    words = values.view(np.uint64)  # differences of 64-bit numbers don't fit 63 bits, but wrap correctly
    return Line((words - words[0]).astype(np.float64), first, last, 1.0)


def _finite(point: Point) -> float:
    return min(max(float(point), -_LARGEST), _LARGEST)  # type: ignore[arg-type]


def _number(text: bytes, shared: int) -> int:
    return int.from_bytes(text[shared : shared + 8].ljust(8, b"\0"), "big")


def _shared_prefix(one: bytes, other: bytes) -> int:
    same = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(same, min(len(one), len(other)))
