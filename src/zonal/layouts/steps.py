"""The step function from a value's words to its code, over sorted knots and evaluated on whole columns.

The knots form a tree by their words: the root compares first words; only rows whose word ties with several knots go
on to the next word. A level holds all nodes of one depth in flat arrays and takes one pass, however many nodes it has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zonal.values.arrays import IntpArray, UInt32Array, UInt64Array
from zonal.values.words import Words

_GRID_BITS = 15
"""The root's look-up grid has 2^15 cells of two bytes, small enough for the caches of every processor."""


@dataclass(frozen=True)
class Knots:
    """Sorted points of the step function, as words, with the code at each and how codes rise to the next.

    `words[depth]` is the knots' word at that depth, `depths` how many words each knot has. `spread` tells which
    intervals are filled evenly up to the next knot's code; on the others the code stays.
    """

    words: tuple[UInt64Array, ...]
    depths: npt.NDArray[np.int64]
    codes: UInt32Array
    spread: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Level:
    """All nodes of one depth. An entry is a distinct word of a node; `first[node]` is the node's first entry."""

    first: IntpArray
    count: IntpArray
    words: UInt64Array
    at: UInt32Array  # the code of a value with exactly this word
    after: UInt32Array  # the code of a value right above this word
    slope: npt.NDArray[np.float64]  # codes per unit of the word above it
    room: UInt32Array  # codes up to the next knot's, for salted values
    child: IntpArray  # node of the next level, or -1


class Lookup:
    """The step function through `knots`; `top` is the code that values above the last knot stay below."""

    def __init__(self, knots: Knots, *, top: int) -> None:
        self._levels = _build(knots, top)
        self._grid = Grid(self._levels[0].words) if len(knots.codes) else None

    def codes(self, words: Words, rows: int, salt: npt.NDArray[np.float64] | None = None) -> UInt32Array:
        """Return the codes of `rows` values; `salt` (per row, 0 ≤ salt < 1) moves heavy values into their room."""
        if self._grid is None:
            return np.zeros(rows, np.uint32)
        word = words.at(0)
        entry = self._grid.last_at_or_below(word)
        result, chosen, node = self._evaluate(0, word, entry, salt)
        for depth in range(1, len(self._levels)):
            if not len(chosen):
                break
            word = words.at(depth, chosen)
            entry = _last_at_or_below(self._levels[depth], node, word)
            codes, tied, node = self._evaluate(depth, word, entry, None if salt is None else salt[chosen])
            result[chosen] = codes
            chosen = chosen[tied]
        return result

    def _evaluate(
        self, depth: int, word: UInt64Array, entry: IntpArray, salt: npt.NDArray[np.float64] | None
    ) -> tuple[UInt32Array, IntpArray, IntpArray]:
        level = self._levels[depth]
        own = level.words[entry]
        if depth + 1 < len(self._levels):
            result = np.where(word <= own, level.at[entry], level.after[entry])
            child = level.child[entry]
            tied = np.flatnonzero((word == own) & (child >= 0))
            node = child[tied]
        else:
            result, tied, node = level.at[entry], np.zeros(0, np.intp), np.zeros(0, np.intp)
        if level.slope.any():
            distance = np.maximum(word, own) - own
            result += (distance * level.slope[entry]).astype(np.uint32)
        if salt is not None:
            result += (level.room[entry] * salt).astype(np.uint32)
        return result, tied, node


class Grid:
    """Equal cells over a sorted array: a cell gives the first candidate, and a few steps lead to the right one."""

    def __init__(self, words: UInt64Array) -> None:
        self.low, self.high = words[0], words[-1]
        span = int(self.high) - int(self.low)
        self.shift = np.uint64(max(0, span.bit_length() - _GRID_BITS))
        cells = (span >> int(self.shift)) + 1
        starts = self.low + (np.arange(cells, dtype=np.uint64) << self.shift)
        before = np.searchsorted(words, starts, side="right") - 1
        widest = int(np.diff(before, append=len(words) - 1).max())
        self.steps = [1 << bit for bit in reversed(range(widest.bit_length()))]
        self.before = before.astype(np.uint16)
        self.words = np.concatenate([words, np.full(2 * widest + 1, 2**64 - 1, np.uint64)])
        self.last = len(words) - 1

    def last_at_or_below(self, word: UInt64Array) -> IntpArray:
        """Return the last entry at or below each word, and 0 where none is."""
        word = np.clip(word, self.low, self.high)
        entry: IntpArray = self.before[((word - self.low) >> self.shift).view(np.int64)].astype(np.intp)
        for step in self.steps:
            entry += (self.words[entry + step] <= word) * np.intp(step)
        np.minimum(entry, self.last, out=entry)
        return entry


def _last_at_or_below(level: _Level, node: IntpArray, word: UInt64Array) -> IntpArray:
    """Return each row's last entry at or below its word, within its node; the node's first entry if none is."""
    entry = level.first[node]
    end = entry + level.count[node] - 1
    for bit in reversed(range(int(level.count.max()).bit_length())):
        further = np.minimum(entry + (1 << bit), end)
        entry = np.where(level.words[further] <= word, further, entry)
    return entry


def _build(knots: Knots, top: int) -> list[_Level]:
    codes = knots.codes
    next_code = np.append(codes[1:], np.uint32(top))
    levels, nodes, depth = [], [(0, len(codes))], 0
    while nodes and len(codes):
        starts, ends, first = _entries(knots.words[depth], nodes)
        deeper = (ends - starts > 1) & (np.maximum.reduceat(knots.depths, starts) > depth + 1)
        word = knots.words[depth][starts]
        last_of_node = np.append(first[1:], len(starts)) - 1
        gap = np.append(word[1:] - word[:-1], np.uint64(0))
        gap[last_of_node] = 0
        rise = (next_code - codes)[ends - 1]
        spread = knots.spread[ends - 1]
        slope = np.divide(rise, gap, out=np.zeros(len(gap)), where=spread & (gap > 0))
        child = np.full(len(starts), -1, np.intp)
        child[deeper] = np.arange(deeper.sum())
        levels.append(
            _Level(
                first, np.diff(first, append=len(starts)), word, codes[starts], codes[ends - 1], slope,
                np.where(spread, 0, rise).astype(np.uint32), child,
            )
        )  # fmt: skip
        nodes = list(zip(starts[deeper].tolist(), ends[deeper].tolist(), strict=True))
        depth += 1
    return levels


def _entries(word: UInt64Array, nodes: Sequence[tuple[int, int]]) -> tuple[IntpArray, IntpArray, IntpArray]:
    """Cut each node's knots into runs of equal words; return the runs' starts and ends, and each node's first run."""
    starts: list[int] = []
    ends: list[int] = []
    first = []
    for low, high in nodes:
        first.append(len(starts))
        edges = np.flatnonzero(word[low + 1 : high] != word[low : high - 1]) + low + 1
        starts += [low, *edges.tolist()]
        ends += [*edges.tolist(), high]
    return np.array(starts, np.intp), np.array(ends, np.intp), np.array(first, np.intp)
