"""Coarse cells of a table, and the group of runs in each cell whose merge saves queries most per byte."""

from collections.abc import Iterator

import numpy as np

from zonal.layouts import curves
from zonal.layouts.layout import CURVES
from zonal.upkeep.boxes import BITS
from zonal.upkeep.forecast import Forecast
from zonal.upkeep.merges import Terms
from zonal.values.arrays import Int64Array, UInt64Array

_POINTS = 32
"""Points of a file by whose majority it belongs to a cell."""
_FILLED = 0.6
"""Cells are cut until the newest run fills this share of the files that it is worth."""
_LEAST = 1.4
"""Files' worth below which a group is one file already."""


def cell_groups(
    forecast: Forecast, files: Int64Array, runs: Int64Array, wait: float, terms: Terms
) -> Iterator[Int64Array]:
    """Yield of each cell its smallest runs, as many as save most per byte; positions as in the forecast's boxes."""
    if not len(files):
        return
    cell = _cells(forecast, files, runs, wait)
    for number in np.unique(cell):
        mine = cell == number
        group = _best(forecast, files[mine], runs[mine], terms)
        if group is not None:
            yield group


def _best(forecast: Forecast, files: Int64Array, runs: Int64Array, terms: Terms) -> Int64Array | None:
    """Try the two smallest runs, the three smallest and so on; None where no group has enough to tell apart."""
    files, runs = _overlapping(forecast, files, runs)
    numbers, place = np.unique(runs, return_inverse=True)
    sizes = np.bincount(place, forecast.sizes[files])
    best, most = None, -np.inf
    for count in range(2, len(numbers) + 1):
        group = files[np.isin(place, np.argsort(sizes, kind="stable")[:count])]
        size = float(forecast.sizes[group].sum())
        largest = float(np.sort(sizes)[count - 1])
        if size < _LEAST * forecast.layout.target_file_bytes or size > terms.amplification * (size - largest):
            continue  # a large run is not rewritten for the sake of a few rows
        now = forecast.now(group)
        gain = (now - forecast.merged(group)) / size if now * terms.scans >= size else 0.0
        if gain > most:
            best, most = group, gain
    return best


def _overlapping(forecast: Forecast, files: Int64Array, runs: Int64Array) -> tuple[Int64Array, Int64Array]:
    kept = forecast.boxes.overlapping(files)
    return files[kept], runs[kept]


def _cells(forecast: Forecast, files: Int64Array, runs: Int64Array, wait: float) -> Int64Array:
    """Return the cell in which most points of each file lie."""
    keys, width = _keys(forecast, files)
    newest = keys.reshape(len(files), _POINTS)[runs == runs.max()].ravel()
    bits = next((bits for bits in range(min(width, 16)) if _spread(newest, width - bits) >= _FILLED * wait), 16)
    cells = (keys >> np.uint64(width - bits) if bits else np.zeros_like(keys)).reshape(len(files), _POINTS)
    return np.array([_majority(each) for each in cells], np.int64)


def _keys(forecast: Forecast, files: Int64Array) -> tuple[UInt64Array, int]:
    """Return the keys of points of each file in the codes of the whole table, and their number of bits."""
    points = forecast.boxes.points(files, np.full(len(files), _POINTS))
    bits = min(BITS, 64 // points.shape[1])
    codes = [(points[:, at] >> (BITS - bits)).astype(np.uint32) for at in range(points.shape[1])]
    kind = forecast.layout.kind if forecast.layout.kind in CURVES else "zorder"
    return curves.encode(kind, codes, bits)[0], bits * points.shape[1]


def _spread(keys: UInt64Array, shift: int) -> float:
    """Return over how many cells keys are spread, as if evenly."""
    cells = keys >> np.uint64(shift) if shift < 64 else np.zeros_like(keys)
    counts = np.unique(cells, return_counts=True)[1].astype(np.float64)
    return float(counts.sum() ** 2 / (counts**2).sum())


def _majority(cells: UInt64Array) -> int:
    values, counts = np.unique(cells, return_counts=True)
    return int(values[counts.argmax()])
