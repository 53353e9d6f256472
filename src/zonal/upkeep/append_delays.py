"""Rows that are about to be appended, seen as part of their table: how much of each column they cover."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.snapshot import UNKNOWN, Bounds, Snapshot
from zonal.upkeep.boxes import bounds_of, boxes_of
from zonal.upkeep.forecast import EDGE, delays_of


def arriving_delays(
    snapshot: Snapshot, columns: Sequence[str], arriving: Sequence[pa.ChunkedArray], rows: int
) -> tuple[int, ...]:
    """Return by how many bits each column waits in the key of rows that arrive, as in a merge of them; empty for none.

    `arriving` has a sample of each column. The rows of a partition are ranked among their own, as the partition is kept
    as a table of its own.
    """
    if snapshot.partitioning or not len(snapshot.files) or not rows:
        return ()
    known = bounds_of(snapshot, columns)
    try:
        bounds = [None if each is None else _with(each, new) for each, new in zip(known, arriving, strict=True)]
    except pa.ArrowException:  # values that the bounds' type can't hold
        return ()
    boxes = boxes_of(np.append(snapshot.files.rows, rows), bounds, np.arange(len(snapshot.files) + 1))
    waits = delays_of(boxes.low[-1], boxes.high[-1])
    return waits if any(waits) else ()


def _with(bounds: Bounds, arriving: pa.ChunkedArray) -> Bounds:
    """Add one more file to a column's bounds: the rows that arrive, without a few at either end."""
    values = arriving.drop_null()
    values = values.take(pc.sort_indices(values))
    ends = [round(EDGE * (len(values) - 1)), round((1 - EDGE) * (len(values) - 1))]
    low, high = (values.take([end]).combine_chunks() if len(values) else pa.nulls(1) for end in ends)
    kind, unknown = bounds.lower.type, np.array([UNKNOWN])
    return Bounds.joined([bounds, Bounds(low.cast(kind), high.cast(kind), unknown, unknown)])
