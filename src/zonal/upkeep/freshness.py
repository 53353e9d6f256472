"""What look-ups and ranges read of a table against what they would of a fresh layout, predicted from bounds alone."""

from dataclasses import replace

import numpy as np

from zonal.layouts.cuts import more_files
from zonal.layouts.layout import CURVES, Layout
from zonal.snapshot import Snapshot
from zonal.upkeep.boxes import TOP, FileBoxes, bounds_of, boxes_of
from zonal.upkeep.forecast import MOST_POINTS, Forecast
from zonal.upkeep.questions import guessed
from zonal.values.arrays import Float64Array

MOST_PARTITIONS = 32
"""The largest partitions stand for all: each is a prediction of its own."""
_ROUNDS = 2


def lookup_shares(snapshot: Snapshot, layout: Layout) -> tuple[float, float] | None:
    """Return the mean shares of bytes that made-up queries on the layout's columns read now, and of a fresh layout.

    Where the table is predicted to be better than fresh, it counts as fresh. None for a table without files, and for a
    tree, which is made for the queries of a log.
    """
    files, columns = snapshot.files, layout.curve_columns
    if layout.kind not in CURVES or not len(files) or not all(name in snapshot.physical for name in columns):
        return None
    bounds, more = bounds_of(snapshot, columns), more_files(layout)
    weight = np.bincount(files.partition, files.sizes)
    now = fresh = total = 0.0
    for part in np.argsort(-weight, kind="stable")[:MOST_PARTITIONS]:
        mine = np.flatnonzero(files.partition == part)
        sizes = files.sizes[mine].astype(np.float64)
        boxes = boxes_of(files.rows, bounds, mine)
        for _ in range(_ROUNDS):
            boxes = _evened(boxes, sizes)
        forecast = Forecast(layout, boxes, sizes, guessed(boxes), more)
        everything = np.arange(len(mine))
        now += (reads := forecast.now(everything))
        fresh += min(forecast.merged(everything), reads)
        total += float(sizes.sum())
    return (now / total, fresh / total) if total else None


def _evened(boxes: FileBoxes, sizes: Float64Array) -> FileBoxes:
    """Move codes so that points of the files are spread evenly: where many bounds lie together, they have too many."""
    counts = np.maximum(MOST_POINTS * sizes / max(float(sizes.sum()), 1.0), 1).astype(np.int64)
    points = np.sort(boxes.points(np.arange(len(sizes)), counts, seed=1), axis=0)
    low, high = boxes.low.copy(), boxes.high.copy()
    for column in range(points.shape[1]):
        below = np.searchsorted(points[:, column], boxes.low[:, column], "left")
        within = np.searchsorted(points[:, column], boxes.high[:, column], "right")
        low[:, column] = np.minimum(below * (TOP + 1) // len(points), TOP)
        high[:, column] = np.clip(within * (TOP + 1) // len(points) - 1, low[:, column], TOP)
    return replace(boxes, low=low, high=high)
