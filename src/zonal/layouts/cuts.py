"""Cuts of sorted keys into files and row groups: at the borders of the curve's cells, near the target size.

A file that ends at the end of a large cell is a box; one that ends at a fixed count covers parts of two cells that may
lie far apart, and its bounds span both. The size of the border between two rows is the highest bit in which their keys
differ (docs/decisions.md has the measured effect).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zonal.layouts.layout import TREE, Layout
from zonal.values.arrays import Int64Array, UInt64Array

SMALLEST, LARGEST = 0.5, 1.8
"""Every piece has between these shares of the target size, where there are enough rows."""
MORE = 1.45
"""How many times more pieces than wanted may be left where fewer would have to join cells."""

_WINDOW = 0.6, 1.4
_NODE, _JOINED = 1.2, 1.5
"""Shares of the target up to which the rows of a tree's node stay together, and up to which neighbors are joined."""
_ROUNDS = 4
_COUNT_ERROR = 0.015


def cell_cuts(words: Sequence[UInt64Array], target_rows: float, *, more: float = 1.0) -> Int64Array:
    """Return the positions at which pieces of about `target_rows` rows begin; the first is 0.

    `words` are the keys in their sorted order, the most significant word first. The sizes are within 0.5 and 1.8 of
    the target, and the number of pieces is about rows / target, or up to `more` times as many where that saves
    joining cells.

    >>> cell_cuts([np.array([0, 1, 2, 3, 8, 9, 10, 11, 12, 13], np.uint64)], 5)
    array([0, 4])
    """
    rows = len(words[0])
    if rows == 0:
        return np.zeros(0, np.int64)
    target = max(float(target_rows), 1.0)
    borders = _borders(words)
    wanted = rows / target
    tried, factor = [], 1.0
    for _ in range(_ROUNDS):
        tried.append(_cut(borders, target * factor))
        if abs(len(tried[-1]) - wanted) <= max(_COUNT_ERROR * wanted, 0.5):
            break
        factor = float(np.clip(factor * len(tried[-1]) / wanted, SMALLEST / _WINDOW[0], LARGEST / _WINDOW[1]))
    enough = [cuts for cuts in tried if len(cuts) >= (1 - _COUNT_ERROR) * wanted]
    best = min(enough, key=len) if enough else max(tried, key=len)
    return _merged(borders, best, most_rows=LARGEST * target, pieces=more * wanted)


def tree_cuts(words: Sequence[UInt64Array], target_rows: float) -> Int64Array:
    """Return the positions at which pieces begin if the first word is a path through a tree (see `zonal.layouts.tree`).

    Rows of a node stay together where they are at most 1.2 times the target; a leaf with more is cut at the cells of
    the words after the path. Neighbors of which one has less than half of the target are joined up to 1.5 times.

    >>> tree_cuts([np.array([0, 0, 0, 1 << 62, 1 << 63, 1 << 63], np.uint64), np.arange(6, dtype=np.uint64)], 3)
    array([0, 4])
    """
    path, *inside = words
    target = max(float(target_rows), 1.0)
    steps = _borders([path])
    starts: list[int] = []
    waiting = [(0, len(path))] if len(path) else []
    while waiting:
        start, end = waiting.pop()
        if end - start <= _NODE * target:
            starts.append(start)
            continue
        middle = start + 1 + int(steps[start + 1 : end].argmax())
        if steps[middle]:
            waiting += [(middle, end), (start, middle)]
        else:
            starts += (start + cell_cuts([word[start:end] for word in inside], target)).tolist()
    return _joined(_borders(words), np.array(starts, np.int64), least=SMALLEST * target, most=_JOINED * target)


def _joined(borders: npt.NDArray[np.int16], starts: Int64Array, *, least: float, most: float) -> Int64Array:
    """Join neighbors of which one has fewer than `least` rows, over the smallest borders first, up to `most` rows."""
    first = list(range(len(starts)))  # at the last part of a joined piece its first, and at the first its last
    last = list(range(len(starts)))
    ends = np.append(starts[1:], len(borders)).tolist()
    begins = starts.tolist()
    kept = np.ones(len(starts), np.bool_)
    for part in (np.argsort(borders[starts[1:]], kind="stable") + 1).tolist():
        left, right = first[part - 1], last[part]
        sizes = begins[part] - begins[left], ends[right] - begins[part]
        if min(sizes) < least and sum(sizes) <= most:
            kept[part] = False
            first[right], last[left] = left, right
    return starts[kept]


def key_cuts(kind: str, words: Sequence[UInt64Array], target_rows: float, *, more: float = 1.0) -> Int64Array:
    """Cut the sorted keys of a layout of this kind: a tree's at its nodes, a curve's at its cells."""
    return tree_cuts(words, target_rows) if kind == TREE else cell_cuts(words, target_rows, more=more)


def file_cuts(layout: Layout, words: Sequence[UInt64Array], files: float) -> Int64Array:
    """Cut sorted keys into about `files` files; up to 1.45 times as many where that keeps cells whole."""
    return key_cuts(layout.kind, words, len(words[0]) / files, more=more_files(layout))


def more_files(layout: Layout) -> float:
    """Return how many times more files than wanted there may be.

    One sorted column can be cut anywhere; the cells of several columns are worth some more files.
    """
    return 1.0 if layout.kind == "linear" or len(layout.columns) == 1 else MORE


def cuts_within(
    words: Sequence[UInt64Array], starts: Int64Array, target_rows: float, *, kind: str = "zorder"
) -> list[Int64Array]:
    """Cut each piece again, as files into row groups; positions are relative to the piece."""
    ends = [*starts[1:], len(words[0])][: len(starts)]
    return [
        key_cuts(kind, [word[start:end] for word in words], target_rows)
        for start, end in zip(starts, ends, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Borders between pieces as keys: a row belongs to piece i if i of the borders are at or below its key."""

    borders: tuple[UInt64Array, ...]

    @classmethod
    def at(cls, words: Sequence[UInt64Array], starts: Int64Array) -> "Cuts":
        """Take the borders of the cells that begin at these positions; borders between equal keys become one.

        Rows that lie between two keys of a sample then belong to the right cell.
        """
        after = [word[starts[1:]] for word in words]
        before = [word[starts[1:] - 1] for word in words]
        borders = np.stack(_cell_starts(before, after))
        if len(starts) > 1:
            borders = np.unique(borders, axis=1)
        return cls(tuple(borders))

    @property
    def pieces(self) -> int:
        """Count the pieces."""
        return len(self.borders[0]) + 1

    def assign(self, words: Sequence[UInt64Array]) -> npt.NDArray[np.int32]:
        """Return the number of the piece that each row belongs to."""
        if len(self.borders) == 1:
            pieces = np.searchsorted(self.borders[0], words[0], side="right")
        else:
            pieces = np.searchsorted(self._narrow(self.borders), self._narrow(words), side="right")
        return pieces.astype(np.int32)

    def _narrow(self, words: Sequence[UInt64Array]) -> npt.NDArray[np.int64]:
        """Map keys of several words to single numbers that compare with the borders in the same way."""
        narrow = np.zeros(len(words[0]), np.int64)
        for word, border in zip(words, self.borders, strict=True):
            values = np.unique(border)
            place = np.searchsorted(values, word)
            narrow *= 2 * len(values) + 1
            narrow += 2 * place + (np.append(values, np.uint64(0))[place] == word)
        return narrow


def _cell_starts(before: Sequence[UInt64Array], after: Sequence[UInt64Array]) -> list[UInt64Array]:
    """Return the least key of the cell that `after` begins: its bits down to the highest that differs from `before`.

    >>> [word.tolist() for word in _cell_starts([np.array([5], np.uint64)], [np.array([13], np.uint64)])]
    [[8]]
    """
    starts = []
    same = np.ones(len(after[0]), np.bool_)  # whether the words so far are equal, so that a later word decides
    for old, new in zip(before, after, strict=True):
        changed = old ^ new
        for shift in (1, 2, 4, 8, 16, 32):
            changed |= changed >> np.uint64(shift)
        start = new & ~(changed >> np.uint64(1))  # the highest bit that differs is set, and stays
        starts.append(np.where(same, start, np.uint64(0)))
        same &= old == new
    return starts


def _borders(words: Sequence[UInt64Array]) -> npt.NDArray[np.int16]:
    """Return the size of the border before each row: the number of the highest bit that differs, 0 if none."""
    sizes = np.zeros(len(words[0]), np.int16)
    for place, word in enumerate(reversed(words)):
        changed = word[1:] ^ word[:-1]
        top = np.frexp((changed & ~(changed >> np.uint64(1))).astype(np.float64))[1]
        np.copyto(sizes[1:], top + 64 * place, where=changed != 0, casting="unsafe")
    return sizes


def _merged(borders: npt.NDArray[np.int16], cuts: list[int], *, most_rows: float, pieces: float) -> Int64Array:
    """Join neighbors over the smallest borders (two halves of a cell) until there are few enough pieces."""
    starts = np.array(cuts, np.int64)
    excess = len(cuts) - max(round(pieces), 1)
    before = np.arange(-1, len(cuts) - 1)  # a linked list of the pieces that are left
    after = np.append(np.arange(1, len(cuts)), len(cuts))
    ends = np.append(starts[1:], len(borders))
    kept = np.ones(len(cuts), np.bool_)
    for piece in np.argsort(borders[starts[1:]], kind="stable") + 1:
        if excess <= 0:
            break
        left = before[piece]
        if ends[piece] - starts[left] <= most_rows:
            kept[piece] = False
            ends[left] = ends[piece]
            after[left] = after[piece]
            if after[piece] < len(cuts):
                before[after[piece]] = left
            excess -= 1
    return starts[kept]


def _cut(borders: npt.NDArray[np.int16], target: float) -> list[int]:
    rows = len(borders)
    least, most = int(np.ceil(_WINDOW[0] * target)), max(int(_WINDOW[1] * target), 1)
    start, cuts = 0, [0]
    while rows - start > most:
        first, last = start + least, min(start + most, rows - least)
        if last < first:
            break
        window = borders[first : last + 1]
        best = int(window.argmax())
        # Rows of one key have no border between them: keep to the target, and don't leave a small rest.
        start = first + best if window[best] else min(start + round(target), last)
        cuts.append(start)
    return cuts
