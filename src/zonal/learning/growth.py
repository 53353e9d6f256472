"""Growth of a tree from a sample and queries: each cut is the one that saves the queries the most rows.

Greedy, from the root (qd-tree, arXiv 2004.10898): among the places where a column can be cut, at quantiles of the rows
and at the queries' own literals, take the one after which queries, by their weight, must read the fewest rows. What a
query must read follows from the bounds of both sides in all columns, as it will from those of files, so that a cut
counts for every column that is correlated with the one it cuts.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.layouts.tree import LEAF, MAX_DEPTH, MAX_POINT_BYTES, NULLS, Tree
from zonal.learning.sides import OpenBoxes, Sides
from zonal.learning.training import TrainingQueries, training_queries
from zonal.predicates.bound import Point
from zonal.trials.boxes import Boxes, Coded
from zonal.values.arrays import Float64Array, Int64Array
from zonal.values.columns import find, leaf_type
from zonal.values.words import family_of

MAX_LEAVES = 4095
LEAST_ROWS = 8
"""The fewest sampled rows of a leaf: fewer say nothing about the bounds of a row group."""

_WHOLE, _LEAST = 1.2, 0.6
"""In target sizes of a leaf: fewer rows than the first are not cut, and a cut leaves at least the second per side."""
_QUANTILES = 48
_HEAVIEST = 12
"""Columns that are considered for a cut: those that the queries of the most weight filter."""
_COLUMNS, _POSITIONS = (5, 3), 64
"""The most promising columns (for files, for row groups) and places in each, whose cuts are tried with all bounds."""
_LEAST_GAIN = 1e-6


def grow(
    coded: Coded,
    boxes: Boxes,
    weights: Sequence[float] | npt.NDArray[np.float64],
    *,
    schema: pa.Schema,
    leaf_rows: float,
    group_rows: float | None = None,
    synthetic: float = 0.2,
    seed: int = 0,
) -> Tree:
    """Learn the cuts of files, and within files those of row groups, from a sample and queries.

    `leaf_rows` and `group_rows` are sampled rows per file and per row group. `synthetic` is the share of the weight
    of synthetic queries, of the same shapes at random places: they keep the cuts useful for queries to come. The same
    arguments give the same tree.
    """
    rng = np.random.default_rng(seed)
    training = training_queries(coded, boxes, np.asarray(weights, np.float64), synthetic, rng)
    grower = _Grower(coded, training)
    grower.grow([max(leaf_rows, LEAST_ROWS), *([] if group_rows is None else [max(group_rows, LEAST_ROWS)])])
    return _tree(coded, boxes, training, grower.nodes, schema)


@dataclass
class _Node:
    """A node under construction: `number` is the filtered column that it cuts between the codes `below` and `above`."""

    number: int = LEAF
    below: int = 0
    above: int = 0
    rows: int = 0
    boxes: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """The open boxes when it was cut."""
    left: int = -1
    right: int = -1


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows to be cut: for each filtered column their numbers in its order."""

    node: int
    depth: int
    level: int
    """0 where the rows are cut into files, 1 where those of a file are cut into row groups."""
    orders: tuple[npt.NDArray[np.int32], ...]
    boxes: Int64Array


@dataclass(frozen=True)
class _Cut:
    """A cut of a part: the column, and the position in its order at which the right side begins."""

    gain: float
    balance: float
    number: int
    position: int


@dataclass(frozen=True, eq=False)
class _Promise:
    """Candidate cuts of a column, and what the best of them saves by the bounds of this column alone."""

    number: int
    gain: float
    positions: npt.NDArray[np.intp]


class _Grower:
    """Cuts the sample from the root down, breadth-first."""

    def __init__(self, coded: Coded, training: TrainingQueries) -> None:
        self.training = training
        self.sides = Sides(coded, training)
        self.codes = [np.ascontiguousarray(coded.codes[:, number]) for number in training.columns]
        self.orders = tuple(np.argsort(codes, kind="stable").astype(np.int32) for codes in self.codes)
        self.nodes = [_Node()]
        self.is_left = np.zeros(len(coded), np.bool_)

    def grow(self, leaf_rows: Sequence[float]) -> None:
        """Cut into leaves of the first size, then cut those into leaves of the next size."""
        if not self.orders:
            return
        waiting = deque([_Part(0, 0, 0, self.orders, np.arange(len(self.training.query)))])
        while waiting and len(self.nodes) < 2 * MAX_LEAVES - 1:
            part = waiting.popleft()
            rows, target = len(part.orders[0]), leaf_rows[part.level]
            cut = None
            if rows >= _WHOLE * target and part.depth < MAX_DEPTH:
                open_boxes = self.sides.open_boxes(part.orders[0], part.boxes)
                part = replace(part, boxes=open_boxes.boxes)
                cut = self._best(part, open_boxes, target)
            if cut is not None:
                waiting.extend(self._split(part, cut))
            elif part.level + 1 < len(leaf_rows) and len(part.boxes):
                waiting.append(replace(part, level=part.level + 1))

    def _best(self, part: _Part, open_boxes: OpenBoxes, target: float) -> _Cut | None:
        """Return the cut that saves most, and among equals the most even one; None where none saves anything."""
        if not len(part.boxes):
            return None
        tried = [self._promising(part, number, target) for number in open_boxes.columns[:_HEAVIEST]]
        best = sorted((each for each in tried if len(each.positions)), key=lambda each: -each.gain)[
            : _COLUMNS[part.level]
        ]
        cuts = [_Cut(*open_boxes.best(each.number, part.orders[each.number], each.positions)) for each in best]
        cut = min(cuts, key=lambda cut: (-cut.gain, cut.balance), default=None)
        return None if cut is None or cut.gain <= _LEAST_GAIN else cut

    def _promising(self, part: _Part, number: int, target: float) -> _Promise:
        """Return the places where a cut of this column would save most if the bounds of the others stayed the same.

        A cut saves the left side for the boxes that begin after it, and the right side for those that end before it.
        """
        codes = self.codes[number][part.orders[number]]
        rows, least = len(codes), max(_LEAST * target, 1.0)
        begin, end = np.searchsorted(codes, self.training.spans[number][:, part.boxes])
        borders = np.flatnonzero(codes[1:] != codes[:-1]) + 1
        count = min(_QUANTILES, max(2, int(2 * rows / target)))
        near = np.searchsorted(borders, np.arange(1, count) * rows / count)
        even = borders[np.unique(np.clip([near, near - 1], 0, len(borders) - 1))] if len(borders) else borders
        positions = np.unique(np.concatenate([even, begin, end]))
        positions = positions[(positions >= least) & (positions <= rows - least)]
        weight = self.training.box_weight[part.boxes]
        saved = positions * _weight_from(begin, weight, positions) + (rows - positions) * _weight_up_to(
            end, weight, positions
        )
        if len(positions) > _POSITIONS:
            chosen = np.zeros(len(positions), np.bool_)
            chosen[np.argsort(-saved, kind="stable")[: _POSITIONS // 2]] = True
            chosen[np.linspace(0, len(positions) - 1, _POSITIONS // 2).astype(np.intp)] = True
            positions = positions[chosen]
        return _Promise(number, float(saved.max(initial=0.0)), positions)

    def _split(self, part: _Part, cut: _Cut) -> list[_Part]:
        order = part.orders[cut.number]
        codes = self.codes[cut.number]
        self.is_left[order] = False
        self.is_left[order[: cut.position]] = True
        node = self.nodes[part.node]
        node.number, node.rows, node.boxes = cut.number, len(order), part.boxes
        node.below, node.above = int(codes[order[cut.position - 1]]), int(codes[order[cut.position]])
        node.left, node.right = len(self.nodes), len(self.nodes) + 1
        self.nodes += [_Node(), _Node()]
        is_left = [self.is_left[each] for each in part.orders]
        sides = [
            tuple(each[mask] for each, mask in zip(part.orders, is_left, strict=True)),
            tuple(each[~mask] for each, mask in zip(part.orders, is_left, strict=True)),
        ]
        return [
            _Part(child, part.depth + 1, part.level, orders, part.boxes)
            for child, orders in zip((node.left, node.right), sides, strict=True)
        ]


def _weight_from(places: npt.NDArray[np.intp], weight: Float64Array, positions: npt.NDArray[np.intp]) -> Float64Array:
    """Return the weight of the places at or after each position."""
    total: Float64Array = weight.sum() - _weight_up_to(places, weight, positions - 1)
    return total


def _weight_up_to(places: npt.NDArray[np.intp], weight: Float64Array, positions: npt.NDArray[np.intp]) -> Float64Array:
    """Return the weight of the places at or before each position."""
    order = np.argsort(places, kind="stable")
    sums = np.append(0.0, np.cumsum(weight[order]))
    return sums[np.searchsorted(places[order], positions, side="right")]


# --- the tree of the cuts --------------------------------------------------------------------------------------------


def _tree(coded: Coded, boxes: Boxes, training: TrainingQueries, nodes: Sequence[_Node], schema: pa.Schema) -> Tree:
    """Choose the point of each cut; the columns whose cuts split the most rows come first."""
    split_rows = np.zeros(len(training.columns))
    for node in nodes:
        if node.number != LEAF:
            split_rows[node.number] += node.rows
    kept = sorted(range(len(training.columns)), key=lambda number: (-split_rows[number], number))
    numbers = [training.columns[number] for number in kept] or list(range(min(len(coded.columns), 1)))
    order = _preorder(nodes)
    column = np.full(len(order), LEAF, np.int64)
    points: list[Point] = [None] * len(order)
    for at, node in enumerate(order):
        if node.number != LEAF:
            column[at] = kept.index(node.number)
            points[at] = _point(coded, boxes, training, node)
    sorted_points = [
        sorted({point for at, point in enumerate(points) if column[at] == number and point is not None}, key=_last_nan)
        for number in range(len(numbers))
    ]
    places = [{point: place for place, point in enumerate(each)} for each in sorted_points]
    cut = [
        NULLS if point is None else places[number][point] for number, point in zip(column.tolist(), points, strict=True)
    ]
    names = tuple(coded.columns[number] for number in numbers)
    families = tuple(str(family_of(leaf_type(schema, find(schema, name)))) for name in names)
    return Tree(names, families, tuple(map(tuple, sorted_points)), column, np.array(cut, np.int64))


def _last_nan(point: Point) -> tuple[bool, Point]:
    return (True, 0.0) if point != point else (False, point)  # noqa: PLR0124 - NaN alone differs from itself


def _preorder(nodes: Sequence[_Node]) -> list[_Node]:
    order, waiting = [], [0]
    while waiting:
        node = nodes[waiting.pop()]
        order.append(node)
        if node.number != LEAF:
            waiting += [node.right, node.left]
    return order


def _point(coded: Coded, boxes: Boxes, training: TrainingQueries, node: _Node) -> Point:
    """Return a point between the two codes: the literal of the heaviest query that has one there, else the middle."""
    number = training.columns[node.number]
    values = coded.points[number]
    literals = training.spans[node.number][:, node.boxes].ravel()
    weight = np.tile(training.box_weight[node.boxes], 2)
    inside = (literals > node.below) & (literals <= node.above)
    place = 0 if node.below < 0 else (node.below + node.above + 1) // 2
    if inside.any():
        places, which = np.unique(literals[inside], return_inverse=True)
        place = int(places[np.bincount(which, weight[inside]).argmax()])
    if place == 0:
        return None  # before all values there are only nulls
    literal = boxes.borders[number].get(place) if boxes.borders else None
    if literal is not None and not (isinstance(literal, bytes) and len(literal) > MAX_POINT_BYTES):
        return literal
    return _between(values[place - 1], values[place])


def _between(low: Point, high: Point) -> Point:
    """Return a value above `low` and at most `high`, as short as can be.

    >>> _between(3, 10), _between(b"bern", b"bonn"), _between(0.5, 1.0)
    (7, b'bo', 0.75)
    """
    if isinstance(low, bytes) and isinstance(high, bytes):
        shared = next((at for at, (one, two) in enumerate(zip(low, high, strict=False)) if one != two), len(low))
        return high[: min(shared + 1, MAX_POINT_BYTES)]
    if isinstance(low, float) and isinstance(high, float):
        middle = low + (high - low) / 2
        return middle if low < middle < high else high
    return low + (high - low + 1) // 2  # type: ignore[operator]
