"""Predicates as unions of boxes: a box holds what one conjunction allows of each column.

The number of boxes is bounded. Where a predicate has more, neighbors are joined into the box around them, which allows
more than the predicate, never less.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from zonal.predicates.bound import All, Bound, Some
from zonal.predicates.fold import fold

MOST_BOXES = 64

RANGE, IS_NULL, NOT_NULL, ANY = 0, 1, 2, 3


class Extent(NamedTuple):
    """What a box allows of one column: `low` to `high` where `kind` is RANGE, else null or not null."""

    low: float
    high: float
    kind: int


Box: TypeAlias = dict[str, Extent]
"""Conditions by column; a column that is not there has none."""


def boxes_in(predicate: Bound, spans: Callable[[Bound], tuple[str, list[Extent]] | None]) -> list[Box]:
    """Return at most `MOST_BOXES` boxes around all rows for which the predicate is true.

    `spans` gives a leaf's column with what it allows; None is no condition.
    """

    def leaf(node: Bound) -> list[Box]:
        condition = spans(node)
        return [{}] if condition is None else _in_column(*condition)

    def join(node: All | Some, parts: list[list[Box]]) -> list[Box]:
        return _product(parts) if isinstance(node, All) else _sum(parts)

    return fold(predicate, leaf, join)


def _in_column(column: str, spans: Sequence[Extent]) -> list[Box]:
    if all(span.kind == RANGE for span in spans):
        spans = _joined(spans, MOST_BOXES)
    return [{column: span} for span in spans]


def _joined(spans: Sequence[Extent], most: int) -> list[Extent]:
    """Join ranges of one column with no value between them, then those with the smallest gaps until `most` are left."""
    apart: list[Extent] = []
    for span in sorted(spans):
        if apart and _touch(apart[-1], span):
            last = apart.pop()
            span = Extent(last.low, max(last.high, span.high), RANGE)
        apart.append(span)
    if len(apart) <= most:
        return apart
    gaps = [after.low - before.high for before, after in pairwise(apart)]
    kept = sorted(sorted(range(len(gaps)), key=lambda gap: -gaps[gap])[: most - 1])
    starts, ends = [0, *(gap + 1 for gap in kept)], [*kept, len(apart) - 1]
    return [Extent(apart[start].low, apart[end].high, RANGE) for start, end in zip(starts, ends, strict=True)]


def _touch(first: Extent, second: Extent) -> bool:
    """Tell whether no value lies between two ranges: a unit that meets the range around both then meets one of them."""
    return first.high == math.inf or second.low <= math.floor(first.high) + 1


def _sum(parts: Sequence[list[Box]]) -> list[Box]:
    every = [box for boxes in parts for box in boxes]
    return [{}] if {} in every else _reduced(every, MOST_BOXES)


def _product(parts: Sequence[list[Box]]) -> list[Box]:
    product: list[Box] = [{}]
    for boxes in parts:
        if len(product) * len(boxes) > MOST_BOXES:
            share = max(MOST_BOXES // min(len(product), len(boxes)), math.isqrt(MOST_BOXES))
            product, boxes = _reduced(product, share), _reduced(boxes, share)
        product = [_both(one, other) for one in product for other in boxes]
    return product


def _both(one: Box, other: Box) -> Box:
    """Return the box with the conditions of both: where ranges are disjoint, `low` is above `high`.

    A unit may hold a value of each of two disjoint ranges, even where no row is in both.
    """
    both = one | other
    for column in one.keys() & other.keys():
        a, b = one[column], other[column]
        if a.kind == b.kind == RANGE:
            both[column] = Extent(max(a.low, b.low), min(a.high, b.high), RANGE)
        elif IS_NULL in (a.kind, b.kind):
            both[column] = a if a.kind == IS_NULL else b
        else:
            both[column] = a if a.kind == RANGE else b
    return both


def _reduced(boxes: list[Box], most: int) -> list[Box]:
    """Join boxes until there are at most `most`: over the smallest gaps in one column, else runs of neighbors."""
    if len(boxes) <= most:
        return boxes
    columns = {column for box in boxes for column in box}
    if len(columns) == 1 and all(box[column].kind == RANGE for box in boxes for column in columns):
        (column,) = columns
        return [{column: span} for span in _joined([box[column] for box in boxes], most)]
    shared = sorted(column for column in columns if all(column in box for box in boxes))
    ordered = sorted(boxes, key=lambda box: [box[column] for column in shared])
    runs = [ordered[len(boxes) * run // most : len(boxes) * (run + 1) // most] for run in range(most)]
    return [_around(run) for run in runs]


def _around(boxes: Sequence[Box]) -> Box:
    """Return the box around all of these: it has conditions only on columns on which each of them has one."""
    shared = [column for column in boxes[0] if all(column in box for box in boxes)]
    around: Box = {}
    for column in shared:
        spans = [box[column] for box in boxes]
        kinds = {span.kind for span in spans}
        if kinds == {RANGE}:
            around[column] = Extent(min(span.low for span in spans), max(span.high for span in spans), RANGE)
        elif kinds == {IS_NULL}:
            around[column] = spans[0]
        elif IS_NULL not in kinds:
            around[column] = Extent(-math.inf, math.inf, NOT_NULL)
    return around
