"""What look-ups and ranges read of a table against what they would of a fresh layout, predicted from bounds alone."""

import numpy as np

from zonal.layouts.layout import CURVES, Layout
from zonal.snapshot import Snapshot
from zonal.upkeep.boxes import bounds_of, boxes_of
from zonal.upkeep.forecast import Forecast
from zonal.upkeep.questions import guessed

MOST_PARTITIONS = 32
"""The largest partitions stand for all: each is a prediction of its own."""


def lookup_shares(snapshot: Snapshot, layout: Layout) -> tuple[float, float] | None:
    """Return the mean shares of bytes that made-up queries on the layout's columns read now, and of a fresh layout.

    None for a table without files, and for a tree, which is made for the queries of a log.
    """
    files, columns = snapshot.files, layout.curve_columns
    if layout.kind not in CURVES or not len(files) or not all(name in snapshot.physical for name in columns):
        return None
    bounds = bounds_of(snapshot, columns)
    weight = np.bincount(files.partition, files.sizes)
    now = fresh = total = 0.0
    for part in np.argsort(-weight, kind="stable")[:MOST_PARTITIONS]:
        mine = np.flatnonzero(files.partition == part)
        if not files.sizes[mine].sum():
            continue
        boxes = boxes_of(files.rows, bounds, mine)
        forecast = Forecast(layout, boxes, files.sizes[mine].astype(np.float64), guessed(boxes))
        everything = np.arange(len(mine))
        now += forecast.now(everything)
        fresh += forecast.merged(everything)
        total += float(files.sizes[mine].sum())
    return (now / total, fresh / total) if total else None
