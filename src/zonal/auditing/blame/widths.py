"""Measure how wide files are, as a share of a column's whole range: a compaction that mixes rows widens them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zonal.auditing.audit import Width
from zonal.auditing.blame.replaced import Replaced
from zonal.skipping.index import ColumnIndex
from zonal.skipping.line import line_of
from zonal.snapshot import Bounds, Files, LazyBounds, Snapshot
from zonal.values.arrays import BoolArray, Float64Array, Int64Array

WIDER = 2.0
"""Factor from which files are called wider, and below whose inverse they are called narrower."""
_SPOT = 0.01
"""Share of the range within which four fifths of the bounds must lie for the rest to be outliers."""
_FEWEST = 10
"""Least number of bounds that may have outliers."""


@dataclass(frozen=True, eq=False)
class Measured:
    """How wide each file is."""

    widths: Float64Array
    """Each file's share of the column's range; NaN for files with only nulls."""
    ends: Int64Array
    """The files with the least and the greatest bound, which define the range."""


def measured(bounds: Bounds, rows: Int64Array) -> Measured | None:
    """Measure files in one column; None where no file has bounds.

    Numbers and times lie on a line as they are, texts by the eight bytes after their common prefix. Where a few
    outliers stretch the line so much that the others lie in one spot, values are placed by rank instead. A file
    without bounds is as wide as the column, as nothing skips it; a file of one value counts as one of the distinct
    bounds.
    """
    index = ColumnIndex(bounds, rows)
    lower, upper, values = index.lower, index.upper, index.values
    if not len(values):
        return None
    place = _places(values)
    low = np.clip(lower, 0, len(values) - 1)
    high = np.clip(upper, 0, len(values) - 1)
    width = np.maximum(place[high] - place[low], 0.0)
    width[(lower < 0) & (upper >= len(values))] = 1.0
    width[width <= 0] = 1 / len(values)
    width[index.all_null] = np.nan
    least, greatest = np.where(lower < 0, len(values), lower), np.where(upper >= len(values), -1, upper)
    return Measured(width, np.array([np.argmin(least), np.argmax(greatest)], np.int64))


def _places(values: npt.NDArray[np.generic]) -> Float64Array:
    """Place sorted values between 0 and 1."""
    positions = line_of(values).positions
    place = positions / positions[-1] if positions[-1] > 0 else positions
    last = len(values) - 1
    if len(values) >= _FEWEST and place[round(0.9 * last)] - place[round(0.1 * last)] < _SPOT:
        return np.linspace(0.0, 1.0, len(values))
    return place


def mean_width(widths: Float64Array, sizes: Int64Array) -> float | None:
    """Return the mean weighted by bytes; None where no file has a width."""
    known = ~np.isnan(widths)
    weight = np.maximum(sizes[known], 1).astype(np.float64)
    return float(widths[known] @ weight / weight.sum()) if len(weight) else None


class Widths:
    """The width of every file in each filtered column for which files have bounds."""

    def __init__(self, snapshot: Snapshot, columns: Sequence[str], read: BoolArray | None = None) -> None:
        """Measure the files; `read` tells which ones queries read: only those are compared, where there are any."""
        self._files = snapshot.files
        bounds = snapshot.files.bounds
        if isinstance(bounds, LazyBounds):
            bounds.load(columns)
        sizes = np.maximum(snapshot.files.sizes, 1).astype(np.float64)
        self._bounds: dict[str, Bounds] = {}
        self._own: dict[str, Measured] = {}
        self._weighed: dict[str, Float64Array] = {}
        for name in dict.fromkeys(columns):
            own = measured(bounds[name], snapshot.files.rows) if name in bounds and len(snapshot.files) else None
            if own is not None:
                self._bounds[name], self._own[name] = bounds[name], own
                self._weighed[name] = _weighed(own.widths, sizes, read)

    @property
    def columns(self) -> list[str]:
        """Return the columns that are measured."""
        return list(self._own)

    def among(self, files: Int64Array) -> tuple[Width, ...]:
        """Compare files with all others that are read or, if none is, with all others."""
        found = []
        for name, weighed in self._weighed.items():
            mine, others = _means(weighed[:, files].sum(axis=1, keepdims=True), weighed)
            if not np.isnan(mine[0]):
                found.append(Width(name, float(mine[0]), None if np.isnan(others[0]) else float(others[0])))
        return widest_first(found)

    def tails(self, groups: Sequence[Int64Array]) -> dict[str, tuple[Float64Array, Float64Array]]:
        """Compare each group of files together with all later groups with all other files.

        By column, the widths of both, one number per group; NaN where there are no others, or no width is known.
        """
        files, number = np.concatenate(groups), np.repeat(np.arange(len(groups)), list(map(len, groups)))
        found = {}
        for name, weighed in self._weighed.items():
            sums = np.array([np.bincount(number, row, len(groups)) for row in weighed[:, files]])
            found[name] = _means(np.cumsum(sums[:, ::-1], axis=1)[:, ::-1], weighed)
        return found

    def unbounded(self, files: Int64Array) -> tuple[str, ...]:
        """Return the columns for which none of these files has bounds."""
        chosen = {name: bounds.take(files) for name, bounds in self._bounds.items()}
        return tuple(
            name
            for name, bounds in chosen.items()
            if bounds.lower.null_count == bounds.upper.null_count == len(files)
            and not np.isnan(self._own[name].widths[files]).all()
        )

    def since(self, files: Files, chosen: Int64Array, before: Replaced) -> tuple[Width, ...]:
        """Compare some of `files` with those that they replaced, as shares of the column's range today."""
        return widest_first(self._since(files, chosen, before))

    def _since(self, files: Files, chosen: Int64Array, before: Replaced) -> Iterator[Width]:
        older = None if before.version is None else before.version.files
        if older is not None and isinstance(older.bounds, LazyBounds):
            older.bounds.load(self._bounds)
        for name, now in self._bounds.items():
            mine, theirs = files.bounds.get(name), None if older is None else older.bounds.get(name)
            if older is None or mine is None or theirs is None:
                continue
            ends = self._own[name].ends
            parts = [mine.take(chosen), theirs.take(before.files), now.take(ends)]
            if len({part.lower.type for part in parts}) > 1:
                continue  # the column had a type whose bounds today's can't hold
            rows = np.concatenate([files.rows[chosen], older.rows[before.files], self._files.rows[ends]])
            found = measured(Bounds.joined(parts), rows)
            width = None if found is None else mean_width(found.widths[: len(chosen)], files.sizes[chosen])
            if found is not None and width is not None:
                past = mean_width(found.widths[len(chosen) : -len(ends)], older.sizes[before.files])
                yield Width(name, width, past)


def _weighed(widths: Float64Array, sizes: Float64Array, read: BoolArray | None) -> Float64Array:
    """Return widths times bytes, and bytes, first of the files that are read, then of all; shape (4, files)."""
    known = ~np.isnan(widths)
    every = np.array([np.where(known, widths, 0.0) * sizes, known * sizes])
    return np.concatenate([every if read is None else every * read, every])


def _means(mine: Float64Array, weighed: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the mean widths of some files, whose sums are given, and of all others; NaN where there are none.

    Files that are read count; where none is read, all do.
    """
    others = weighed.sum(axis=1, keepdims=True) - mine
    found = []
    for sums in (mine, others):
        means = np.divide(sums[::2], sums[1::2], out=np.full_like(sums[::2], np.nan), where=sums[1::2] > 0.5)
        found.append(np.maximum(np.where(np.isnan(means[0]), means[1], means[0]), 0.0))
    return found[0], found[1]


def widest_first(widths: Iterable[Width]) -> tuple[Width, ...]:
    """Order widths by how many times wider files became."""
    return tuple(sorted(widths, key=lambda each: (-(each.times or 0.0), -each.width)))
