"""Trees of cuts: each cut splits the rows at one value of one column, and a leaf is a box of all columns.

A row's key is its path from the root, one bit per cut, the first cut in the top bit: left is 0, right is 1. Sorted
paths run through the leaves from left to right, and the highest bit in which two paths differ is the cut that separates
them, so that files end at cuts as those of a curve end at its cells.
"""

import json
import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.errors import LayoutError, quoted
from zonal.layouts.layout import MAX_TREE_TEXT, TREE, Layout
from zonal.layouts.steps import Grid
from zonal.predicates.bound import Point
from zonal.values.arrays import Float32Array, Int16Array, Int64Array, UInt64Array
from zonal.values.columns import find, leaf
from zonal.values.packed import pack, unpack
from zonal.values.words import (
    ByteWords,
    Words,
    blocks,
    comparable,
    family_of,
    plain_array,
    validity,
    words_in,
    words_of,
)

MAX_NODES = 16_383
MAX_DEPTH = 56
MAX_POINT_BYTES = 256
JSON_VERSION = 1
LEAF, NULLS = -1, -1
"""The column number of a leaf, and the point number of a cut between nulls and values."""

_SIGN = np.uint64(1 << 63)
_MASK = 2**64 - 1
_FAMILY = re.compile(
    r"null|int|uint64|float|date|time|bytes|(?:timestamp|duration)\[(?:s|ms|us|ns)\]|decimal(?:128|256)\[-?\d{1,3}\]"
)


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """Nodes in preorder: a node, then all of its left side, then its right side.

    At a cut, values below its point go to the left, with all nulls; the others go to the right, NaN too. A cut without
    a point separates nulls from values. `Tree.from_json(tree.to_json(), tree.columns)` gives every row the same path.
    """

    columns: tuple[str, ...]
    families: tuple[str, ...]
    """How values of each column are compared, see `words.family_of`."""
    points: tuple[tuple[Point, ...], ...]
    """The points of each column's cuts in the predicates' domain, ascending."""
    column: Int64Array
    """The number of the column that each node cuts; -1 for a leaf."""
    cut: Int64Array
    """The number of each cut's point in its column; -1 for a cut between nulls and values, and for leaves."""

    def __post_init__(self) -> None:
        if not len(self.columns) == len(self.families) == len(self.points):
            raise ValueError("its parts have different lengths")
        for family, points in zip(self.families, self.points, strict=True):
            _check_points(family, points)
        if not 1 <= len(self.column) <= MAX_NODES or len(self.column) != len(self.cut):
            raise ValueError(f"it has {len(self.column):,} nodes")
        if self.column.min() < LEAF or self.column.max() >= len(self.columns):
            raise ValueError("it cuts a column that it doesn't have")
        counts = np.array([len(points) for points in self.points], np.int64)
        if (self.cut < NULLS).any() or (self.cut[self.is_inner] >= counts[self.column[self.is_inner]]).any():
            raise ValueError("it cuts at a point that it doesn't have")
        if self.depth.max() > MAX_DEPTH:
            raise ValueError(f"it is more than {MAX_DEPTH} cuts deep")

    def __repr__(self) -> str:
        return f"Tree({self.columns!r}, {self.leaves} leaves)"

    @classmethod
    def from_json(cls, text: str, columns: Sequence[str]) -> "Tree":
        """Read what `to_json` wrote, as untrusted input: sizes, order and structure are checked."""
        try:
            if len(text) > MAX_TREE_TEXT:
                raise ValueError("it is too long")
            stored = json.loads(text)
            if (version := stored["version"]) != JSON_VERSION:
                raise ValueError(f"it has version {quoted(str(version))}, not {JSON_VERSION}. Update zonal")
            column = unpack(stored["nodes"], MAX_NODES).view(np.int64) - 1
            cut = np.full(len(column), NULLS, np.int64)
            cut[column != LEAF] = unpack(stored["cuts"], MAX_NODES).view(np.int64) - 1
            if len(stored["columns"]) != len(columns):
                raise ValueError(f"it has {len(stored['columns'])} columns, and the layout {len(columns)}")
            families = tuple(str(each["family"]) for each in stored["columns"])
            points = tuple(_read_points(each) for each in stored["columns"])
            tree = cls(tuple(columns), families, points, column, cut)
            if stored["leaves"] != tree.leaves:
                raise ValueError("its leaves are miscounted")
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise LayoutError(f"The cuts of the tree can't be read: {error}. Learn them again.") from None
        return tree

    def to_json(self) -> str:
        """Write the cuts as compact JSON: about eight bytes per cut."""
        stored = {
            "leaves": self.leaves,
            "version": JSON_VERSION,
            "columns": [
                {"family": family, "words": [pack(word) for word in _point_words(family, points)]}
                for family, points in zip(self.families, self.points, strict=True)
            ],
            "nodes": pack(self.column + 1),
            "cuts": pack(self.cut[self.is_inner] + 1),
        }
        return json.dumps(stored, separators=(",", ":"))

    def layout(self) -> Layout:
        """Return the layout with these cuts and the default options."""
        return Layout(TREE, self.columns, tree=self.to_json())

    @property
    def leaves(self) -> int:
        """Count the leaves."""
        return len(self.column) // 2 + 1

    @cached_property
    def is_inner(self) -> npt.NDArray[np.bool_]:
        """Whether each node is a cut rather than a leaf."""
        inner: npt.NDArray[np.bool_] = self.column != LEAF
        return inner

    @cached_property
    def depth(self) -> Int64Array:
        """How many cuts lie above each node."""
        depths = np.zeros(len(self.column), np.int64)
        waiting = [0]  # depths of the nodes to come
        for node, inner in enumerate(self.is_inner.tolist()):
            if not waiting:
                raise ValueError("its nodes make more than one tree")
            depths[node] = here = waiting.pop()
            if inner:
                waiting += [here + 1, here + 1]
        if waiting:
            raise ValueError("it ends before its last leaf")
        return depths

    @cached_property
    def _child(self) -> npt.NDArray[np.intp]:
        """The left child of node n at 2n, the right one at 2n + 1; a leaf is its own child."""
        child = np.repeat(np.arange(len(self.column), dtype=np.intp), 2)
        open_cuts: list[int] = []  # cuts whose right side is still to come
        for node, inner in enumerate(self.is_inner.tolist()):
            if inner:
                child[2 * node] = node + 1
                open_cuts.append(node)
            elif open_cuts:
                child[2 * open_cuts.pop() + 1] = node + 1
        return child

    @cached_property
    def _path(self) -> UInt64Array:
        """The path to each node, padded with zeros."""
        paths = np.zeros(len(self.column), np.uint64)
        for node in np.flatnonzero(self.is_inner).tolist():
            left, right = self._child[2 * node : 2 * node + 2]
            paths[left] = paths[node]
            paths[right] = paths[node] | np.uint64(1 << (63 - int(self.depth[node])))
        return paths

    @cached_property
    def _lookups(self) -> "dict[int, _Points]":
        return {}

    # --- rows --------------------------------------------------------------------------------------------------------

    def paths(self, data: "pa.RecordBatch | pa.Table") -> UInt64Array:
        """Return the path of each row from the root to its leaf."""
        used = np.unique(self.column[self.is_inner])
        if not len(used):
            return np.zeros(data.num_rows, np.uint64)
        places = np.empty((data.num_rows, len(used)), np.int16)
        for at, number in enumerate(used.tolist()):
            places[:, at] = self._places(data, number)
        at_column = np.searchsorted(used, self.column).astype(np.intp)
        at_column[~self.is_inner] = 0
        return self._path[self._walk(places, at_column)]

    def _walk(self, places: Int16Array, at_column: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Send rows down the tree, one level at a time for a whole block; return their leaves."""
        flat, columns = places.reshape(-1), places.shape[1]
        cut, child = self.cut.astype(np.int16), self._child
        deepest = int(self.depth.max())
        leaves = np.empty(len(places), np.intp)
        for start in range(0, len(places), _WALK_ROWS):
            end = min(start + _WALK_ROWS, len(places))
            first = np.arange(start, end, dtype=np.intp) * columns
            node = np.zeros(end - start, np.intp)
            rows = np.arange(start, end, dtype=np.intp)
            for level in range(deepest):
                if level % 4 == 3:  # drop the rows that have reached their leaf
                    leaves[rows] = node
                    going = np.flatnonzero(self.is_inner[node])
                    rows, first, node = rows[going], first[going], node[going]
                right = flat[first + at_column[node]] > cut[node]
                node = child[2 * node + right]
            leaves[rows] = node
        return leaves

    def _places(self, data: "pa.RecordBatch | pa.Table", number: int) -> Int16Array:
        """Return how many of the column's points are at or below each value; -1 for nulls."""
        name, family = self.columns[number], self.families[number]
        column = leaf(data, find(data.schema, name))
        own_family = family_of(column.type)
        if own_family is None or not comparable(own_family, family):
            raise LayoutError(
                f"The tree cuts column {quoted(name)} at {family} values, and it has type {quoted(str(column.type))}: "
                "learn the cuts again."
            )
        points = self._lookups.setdefault(number, _Points(_point_words(family, self.points[number])))
        places = np.empty(len(column), np.int16)
        for start, block in blocks(column):
            places[start : start + len(block)] = _block_places(plain_array(block), family, points)
        return places

    # --- boxes -------------------------------------------------------------------------------------------------------

    def clip(
        self, first: UInt64Array, last: UInt64Array, columns: Sequence[str], points: Sequence[Sequence[Point]]
    ) -> tuple[Float32Array, Float32Array]:
        """Return the least and the greatest code that each unit can have: one row per unit, one column per column.

        A unit has the rows from path `first` to path `last`, and lies in the box of their deepest common node.
        `points` are the sorted values of `columns`, and a code is a position in such a list; NaN may be the last.
        """
        low, high = self._limits(columns, points)
        differ = first ^ last
        common = np.where(differ == 0, 64, 64 - np.frexp((differ & ~(differ >> np.uint64(1))).astype(np.float64))[1])
        node = np.zeros(len(first), np.intp)
        for level in range(int(self.depth.max())):
            bit = ((first >> np.uint64(63 - level)) & np.uint64(1)).astype(np.intp)
            node = np.where(level < common, self._child[2 * node + bit], node)
        return low[node], high[node]

    def _limits(self, columns: Sequence[str], points: Sequence[Sequence[Point]]) -> tuple[Float32Array, Float32Array]:
        """Return the box of each node, in codes of `points`."""
        low = np.full((len(self.column), len(columns)), -np.inf, np.float32)
        high = np.full_like(low, np.inf)
        at = {name: number for number, name in enumerate(columns)}
        for node in np.flatnonzero(self.is_inner).tolist():
            left, right = self._child[2 * node : 2 * node + 2]
            low[[left, right]], high[[left, right]] = low[node], high[node]
            number = at.get(self.columns[self.column[node]])
            if number is not None and self.cut[node] != NULLS:
                values = points[number]
                known = len(values) - (len(values) > 0 and _is_nan(values[-1]))
                point = self.points[self.column[node]][self.cut[node]]
                place = known if _is_nan(point) else bisect_left(values, point, 0, known)
                low[right, number] = max(low[node, number], place)
                high[left, number] = min(high[node, number], place - 1)
        return low, high


_WALK_ROWS = 16_384


@lru_cache(maxsize=16)
def _read(text: str, columns: tuple[str, ...]) -> Tree:
    return Tree.from_json(text, columns)


def tree_of(layout: Layout) -> Tree:
    """Return the tree of a layout that has one; the same text is parsed once."""
    return _read(str(layout.tree), layout.columns)


# --- points ----------------------------------------------------------------------------------------------------------


class _Points:
    """Points as words of their family, ready to be searched."""

    def __init__(self, words: Sequence[UInt64Array]) -> None:
        self.words = words
        self._grid = Grid(words[0]) if len(words[0]) else None

    def __len__(self) -> int:
        return len(self.words[0])

    def at_or_below(self, depth: int, low: int, high: int, word: UInt64Array) -> npt.NDArray[np.intp]:
        """Count the points at or below each word of this depth, among the points from `low` to `high`."""
        if depth == 0 and self._grid is not None:
            # Below the first point the grid tells nothing, where several points have the same first word.
            count: npt.NDArray[np.intp] = np.where(word >= self.words[0][0], self._grid.last_at_or_below(word) + 1, 0)
            return count
        return low + np.searchsorted(self.words[depth][low:high], word, side="right")


def _block_places(block: pa.Array, family: str, points: _Points) -> Int16Array:
    """Count the points at or below each value of a block; a dictionary's values are looked up once."""
    if isinstance(block, pa.DictionaryArray):
        dictionary = plain_array(block.dictionary)
        known = validity(block.indices)
        if not len(dictionary):
            return np.full(len(block), NULLS, np.int16)
        indices = block.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
        if len(dictionary) > len(block):
            used, indices = np.unique(indices, return_inverse=True)
            dictionary = dictionary.take(pa.array(used))
        places: Int16Array = _block_places(dictionary, family, points)[indices]
    else:
        places = np.zeros(len(block), np.int16)
        if len(points) and len(block):
            words = words_of(block, family)
            _count_below(_LengthLast(words, len(points.words) - 1) if family == "bytes" else words, points, places)
        known = validity(block)
    if known is not None:
        places[~known] = NULLS
    return places


class _LengthLast:
    """Words of byte sequences, then their length: b"a" is below b"a\\0", as their bytes are."""

    def __init__(self, words: Words, last: int) -> None:
        self.words, self.last = words, last

    def at(self, depth: int, rows: npt.NDArray[np.intp] | None = None) -> UInt64Array:
        """Return word number `depth` of all rows, or of some."""
        if depth < self.last or not isinstance(self.words, ByteWords):
            return self.words.at(min(depth, self.last - 1), rows)
        lengths = np.diff(self.words.offsets).astype(np.uint64)
        return lengths if rows is None else lengths[rows]


def _count_below(words: Words, points: _Points, places: Int16Array) -> None:
    """Count the points at or below each row, word by word: only rows that tie with a point go on to the next word."""
    waiting: list[tuple[int, int, int, npt.NDArray[np.intp] | None]] = [(0, 0, len(points), None)]
    while waiting:
        depth, low, high, rows = waiting.pop()
        word, known = words.at(depth, rows), points.words[depth]
        below = points.at_or_below(depth, low, high, word)
        places[slice(None) if rows is None else rows] = below
        if depth + 1 == len(points.words):
            continue
        tied = np.flatnonzero((below > low) & (known[np.maximum(below - 1, 0)] == word))
        alone = (below[tied] - 1 == low) | (known[np.maximum(below[tied] - 2, low)] != word[tied])
        _compare(words, points, depth + 1, tied[alone] if rows is None else rows[tied[alone]], places)
        tied = tied[~alone]
        ends = below[tied]
        order = np.argsort(ends, kind="stable")
        borders = np.flatnonzero(np.diff(ends[order], prepend=-1, append=-1))
        for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            group = tied[order[start:stop]]
            end = int(ends[order[start]])
            begin = low + int(np.searchsorted(known[low:end], known[end - 1], side="left"))
            waiting.append((depth + 1, begin, end, group if rows is None else rows[group]))


def _compare(words: Words, points: _Points, depth: int, rows: npt.NDArray[np.intp], places: Int16Array) -> None:
    """Compare the further words of rows that tie with one point, and uncount it where the row is below."""
    for further in range(depth, len(points.words)):
        if not len(rows):
            return
        word, point = words.at(further, rows), points.words[further][places[rows] - 1]
        places[rows[word < point]] -= 1
        rows = rows[word == point]


def _is_nan(point: Point) -> bool:
    return isinstance(point, float) and math.isnan(point)


def _point_words(family: str, points: Sequence[Point]) -> list[UInt64Array]:
    """Return points as words of their family, as values have them; for byte sequences the length comes last."""
    if family == "bytes":
        array = pa.array(points, pa.large_binary())
        longest = max(max((len(point) for point in points), default=0), 1)  # type: ignore[arg-type]
        words = words_of(array, family)
        lengths = np.array([len(point) for point in points], np.uint64)  # type: ignore[arg-type]
        return [*(words.at(depth) for depth in range(-(-longest // 8))), lengths]
    if family == "float":
        return [words_of(pa.array(points, pa.float64()), family).at(0)]
    if family == "uint64":
        return [np.array(points, np.uint64)]
    if (count := words_in(family)) > 1:
        unsigned = [
            np.array([(int(point) >> (64 * place)) & _MASK for point in points], np.uint64)  # type: ignore[arg-type]
            for place in reversed(range(count))
        ]
        return [unsigned[0] ^ _SIGN, *unsigned[1:]]
    return [np.array(points, np.int64).view(np.uint64) ^ _SIGN]


def _read_points(stored: dict[str, Any]) -> tuple[Point, ...]:
    family, packed = str(stored["family"]), stored["words"]
    most = MAX_POINT_BYTES // 8 + 1 if family == "bytes" else words_in(family)
    if not isinstance(packed, list) or not 1 <= len(packed) <= most:
        raise ValueError("a column has too many words")
    words = [unpack(each, MAX_NODES) for each in packed]
    if len({len(word) for word in words}) != 1 or (family == "bytes" and len(words) < 2):
        raise ValueError("the words of its points have different lengths")
    points = _points_of(family, words)
    again = _point_words(family, points)
    if len(again) != len(words) or any((one != two).any() for one, two in zip(again, words, strict=True)):
        raise ValueError("its points are damaged")
    return points


def _points_of(family: str, words: Sequence[UInt64Array]) -> tuple[Point, ...]:
    """Undo `_point_words`."""
    if family == "bytes":
        joined = np.stack(words[:-1], axis=1).astype(">u8").tobytes()
        width = 8 * (len(words) - 1)
        lengths = np.minimum(words[-1], np.uint64(width)).tolist()
        return tuple(joined[at * width : at * width + length] for at, length in enumerate(lengths))
    if family == "float":
        positive = words[0] >= _SIGN
        bits = np.where(positive, words[0] ^ _SIGN, ~words[0])
        return tuple(bits.view(np.float64).tolist())
    if family == "uint64":
        return tuple(words[0].tolist())
    numbers = (words[0] ^ _SIGN).view(np.int64).tolist()
    for word in words[1:]:
        numbers = [(number << 64) | low for number, low in zip(numbers, word.tolist(), strict=True)]
    return tuple(numbers)


def _check_points(family: str, points: Sequence[Point]) -> None:
    if not _FAMILY.fullmatch(family):
        raise ValueError(f"{quoted(family)} is no kind of values")
    wanted = {"bytes": bytes, "float": float}.get(family, int)
    if not all(isinstance(point, wanted) for point in points) or (family == "null" and points):
        raise ValueError(f"a point is no {family} value")
    if family == "bytes" and any(len(point) > MAX_POINT_BYTES for point in points):  # type: ignore[arg-type]
        raise ValueError("a point is too long")
    words = _point_words(family, points)
    order = np.lexsort(words[::-1])
    same = np.logical_and.reduce([word[1:] == word[:-1] for word in words])
    if (order != np.arange(len(order))).any() or same.any():
        raise ValueError("its points are not in order")
