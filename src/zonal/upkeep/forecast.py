"""What queries read of some files now, and after these are merged, predicted from the files' bounds alone."""

from dataclasses import dataclass

import numpy as np

from zonal.layouts import curves
from zonal.layouts.cuts import cell_cuts
from zonal.layouts.layout import CURVES, Layout
from zonal.upkeep.boxes import BITS, TOP, FileBoxes
from zonal.upkeep.questions import Questions
from zonal.values.arrays import Float64Array, Int64Array, UInt64Array

FILE_POINTS = 128
"""Points that stand for the rows of a file of the target size."""
LEAST_POINTS = 8
MOST_POINTS = 8192
EDGE = 0.05
"""Share of a group's rows at either end of a column that its span leaves out: a few late rows don't make it wide."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """Predicts merges of files of one partition."""

    layout: Layout
    boxes: FileBoxes
    sizes: Float64Array
    questions: Questions
    more: float = 1.0
    """As for `cell_cuts`: how many times more files than wanted there may be."""

    def now(self, files: Int64Array) -> float:
        """Return the mean bytes that a query reads of these files."""
        return self.questions.reads(self.boxes.low[files], self.boxes.high[files], self.sizes[files])

    def merged(self, files: Int64Array) -> float:
        """Return the mean bytes that a query would read of them, were they clustered together."""
        points = self._points(files)
        total = float(self.sizes[files].sum())
        wanted = total / self.layout.file_bytes
        if wanted < 1.5:
            return self.questions.reads(points.min(axis=0)[None], points.max(axis=0)[None], np.array([total]))
        key = self.keys(points, delays(points))
        order = np.argsort(key, kind="stable")
        starts = cell_cuts([key[order]], len(key) / wanted, more=self.more)
        low = np.minimum.reduceat(points[order], starts, axis=0)
        high = np.maximum.reduceat(points[order], starts, axis=0)
        rows = np.diff(np.append(starts, len(key)))
        return self.questions.reads(low, high, rows * (total / len(key)))

    def delays(self, files: Int64Array) -> tuple[int, ...]:
        """Return by how many bits each column waits in the key of a merge of these files."""
        return delays(self._points(files))

    def keys(self, points: Int64Array, waits: tuple[int, ...]) -> UInt64Array:
        """Return the keys of points as a merge would give them: ranks of their own, delayed by the columns' spans."""
        kind = self.layout.kind if self.layout.kind in CURVES else "zorder"
        bits = min(BITS, 64 // points.shape[1])
        codes = [_ranked(points[:, at]) >> np.uint32(BITS - bits + wait) for at, wait in enumerate(waits)]
        return curves.encode(kind, codes, bits)[0]

    def _points(self, files: Int64Array) -> Int64Array:
        counts = np.maximum(FILE_POINTS * self.sizes[files] / self.layout.file_bytes, LEAST_POINTS)
        counts *= min(1.0, MOST_POINTS / counts.sum())
        return self.boxes.points(files, np.maximum(counts, 1).astype(np.int64))


def delays(points: Int64Array) -> tuple[int, ...]:
    """Return by how many bits each column waits: k where the points cover 2^-k of the table, relative to the widest.

    Ranks of a group's own rows would spend the first bits on a column of which the group has little to tell apart,
    such as the time of young rows; queries on the other columns would read more of each such group.
    """
    first, last = np.quantile(points, [EDGE, 1 - EDGE], axis=0)
    return delays_of(first, last)


def delays_of(first: Float64Array | Int64Array, last: Float64Array | Int64Array) -> tuple[int, ...]:
    """Return the delays of a group by the codes of each column between which it lies, without the edges."""
    covered = np.clip((last - first + 1) / (1 - 2 * EDGE) / (TOP + 1), 2.0 ** -(BITS // 2), 1.0)
    waits = np.round(-np.log2(covered)).astype(int)
    return tuple((waits - waits.min()).tolist())


def _ranked(codes: Int64Array) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """Return the rank of each code among all, scaled to `BITS` bits; equal codes share one."""
    below = np.searchsorted(np.sort(codes), codes, side="left")
    return (below * (TOP + 1) // max(len(codes), 1)).astype(np.uint32)
