"""How wide files are in a column, as a part of the column's whole range: what tells a compaction that mixed them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.auditing.audit import Width
from zonal.auditing.replaced import Replaced
from zonal.files import Bounds, Files, Ints, LazyBounds, Snapshot
from zonal.line import Floats64, line_of
from zonal.skipping import ColumnIndex

_SPOT = 0.01
"""Where four fifths of the bounds lie within this part of the range, a few outliers make it …"""
_FEWEST = 10
"""… if there are this many bounds at all."""


@dataclass(frozen=True, eq=False)
class Measured:
    """How wide each file is."""

    widths: Floats64
    """Each file's part of the column's range; NaN for files with nothing but nulls."""
    ends: Ints
    """The files with the least and the greatest bound, which tell the range to others."""


def measured(bounds: Bounds, rows: Ints) -> Measured | None:
    """Measure files in one column; None where no file has bounds.

    Numbers and times lie on a line as they are, texts by eight bytes behind what all of them have in common. Where a
    few outliers stretch the line so much that the others lie in one spot, values are placed by their rank instead. A
    file without bounds is as wide as the column, as nothing skips it; a file of one value counts as one of the
    distinct bounds.
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


def _places(values: npt.NDArray[np.generic]) -> Floats64:
    """Place sorted values between 0 and 1."""
    positions = line_of(values).positions
    place = positions / positions[-1] if positions[-1] > 0 else positions
    last = len(values) - 1
    if len(values) >= _FEWEST and place[round(0.9 * last)] - place[round(0.1 * last)] < _SPOT:
        return np.linspace(0.0, 1.0, len(values))
    return place


class Total(NamedTuple):
    """Widths added up by bytes: those of some files taken from those of all give the others'."""

    width: float
    bytes: int

    @property
    def mean(self) -> float | None:
        """Return the mean by bytes; None where no file has a width."""
        return max(self.width, 0.0) / self.bytes if self.bytes > 0 else None

    def without(self, part: "Total") -> "Total":
        """Return what is left."""
        return Total(self.width - part.width, self.bytes - part.bytes)


def total_width(widths: Floats64, sizes: Ints) -> Total:
    """Add up the widths of files that have one."""
    known = ~np.isnan(widths)
    weight = np.maximum(sizes[known], 1)
    return Total(float(widths[known] @ weight.astype(np.float64)), int(weight.sum()))


def mean_width(widths: Floats64, sizes: Ints) -> float | None:
    """Return the mean by bytes; None where no file has a width."""
    return total_width(widths, sizes).mean


def joined(parts: Sequence[Bounds]) -> Bounds:
    """Put the bounds of several sets of files of one type behind each other."""
    return Bounds(
        pa.concat_arrays([part.lower for part in parts]),
        pa.concat_arrays([part.upper for part in parts]),
        np.concatenate([part.nulls for part in parts]),
        np.concatenate([part.nans for part in parts]),
    )


class Widths:
    """The filtered columns of which files have bounds, with every file's width in them."""

    def __init__(self, snapshot: Snapshot, columns: Sequence[str]) -> None:
        self._files = snapshot.files
        bounds = snapshot.files.bounds
        if isinstance(bounds, LazyBounds):
            bounds.load(columns)
        self._bounds: dict[str, Bounds] = {}
        self._own: dict[str, Measured] = {}
        self._totals: dict[str, Total] = {}
        for name in dict.fromkeys(columns):
            own = measured(bounds[name], snapshot.files.rows) if name in bounds and len(snapshot.files) else None
            if own is not None:
                self._bounds[name], self._own[name] = bounds[name], own
                self._totals[name] = total_width(own.widths, snapshot.files.sizes)

    def among(self, files: Ints) -> tuple[Width, ...]:
        """Hold files against all the others."""
        found = []
        for name, own in self._own.items():
            mine = total_width(own.widths[files], self._files.sizes[files])
            if mine.mean is not None:
                found.append(Width(name, mine.mean, self._totals[name].without(mine).mean))
        return _sorted(found)

    def unbounded(self, files: Ints) -> tuple[str, ...]:
        """Return the columns of which none of these files has bounds."""
        chosen = {name: bounds.take(files) for name, bounds in self._bounds.items()}
        return tuple(
            name
            for name, bounds in chosen.items()
            if bounds.lower.null_count == bounds.upper.null_count == len(files)
            and not np.isnan(self._own[name].widths[files]).all()
        )

    def since(self, files: Files, chosen: Ints, before: Replaced) -> tuple[Width, ...]:
        """Hold some of `files` against those that they replaced, on the line of the column as it is now."""
        return _sorted(self._since(files, chosen, before))

    def _since(self, files: Files, chosen: Ints, before: Replaced) -> Iterator[Width]:
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
            found = measured(joined(parts), rows)
            width = None if found is None else mean_width(found.widths[: len(chosen)], files.sizes[chosen])
            if found is not None and width is not None:
                past = mean_width(found.widths[len(chosen) : -len(ends)], older.sizes[before.files])
                yield Width(name, width, past)


def _sorted(widths: Iterable[Width]) -> tuple[Width, ...]:
    return tuple(sorted(widths, key=lambda each: (-(each.times or 0.0), -each.width)))
