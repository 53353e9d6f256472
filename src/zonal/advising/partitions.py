"""Search for a better partitioning with a curve inside; for information, as zonal doesn't repartition in place."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.advising.ground import Ground
from zonal.layouts.layout import Layout
from zonal.trials.trial import Trial
from zonal.values.arrays import Int64Array
from zonal.values.columns import find, leaf
from zonal.values.sample import Sample

MOST_PARTITIONS = 1000
_TRIED = 3
_UNITS = ("day", "month")


@dataclass(frozen=True, eq=False)
class Partitioned:
    """A partitioning, with the sample in it."""

    by: str
    """The partition field for people: `region`, `day(ts)`."""
    partitions: int
    trial: Trial
    layout: Layout


def best_partitioning(ground: Ground) -> Partitioned | None:
    """Return the partitioning by a filtered column under which the training queries read least.

    Columns with few values partition by value, times by day or month. A partition has at least one file, so that only
    partitionings that leave files of about the target size are tried.
    """
    files = ground.rows * ground.sample.row_bytes / ground.target_file_bytes
    most = min(MOST_PARTITIONS, max(2, int(files)))
    best: tuple[float, Partitioned] | None = None
    for name in ground.columns[:_TRIED]:
        parts = _parts(ground.screening, name, most)
        inside = tuple(other for other in ground.columns if other != name)[:2]
        if parts is None or not inside:
            continue
        layout = ground.layout("zorder" if len(inside) > 1 else "linear", inside)
        by, number = parts
        rough = replace(layout, row_group_rows=2**62)
        score = ground.predicted(rough, _in_parts(ground.screening, number, ground.rows)).mean
        if best is None or score < best[0]:
            measured = _parts(ground.measuring, name, 2 * most)
            if measured is not None:
                trial = _in_parts(ground.measuring, measured[1], ground.rows)
                best = score, Partitioned(by, len(trial.partition_rows), trial, layout)
    return None if best is None else best[1]


def _parts(trial: Trial, name: str, most: int) -> tuple[str, Int64Array] | None:
    """Return a partition field, and each row's partition number by a column's values, days or months."""
    codes = trial.coded.codes[:, trial.coded.columns.index(name)]
    distinct = len(np.unique(codes))
    if 2 <= distinct <= most and distinct * 20 <= len(codes):
        return name, np.unique(codes, return_inverse=True)[1].astype(np.int64)
    column = leaf(trial.rows.data, find(trial.rows.data.schema, name))
    if not pa.types.is_temporal(column.type) or pa.types.is_time(column.type) or pa.types.is_duration(column.type):
        return None
    for unit in _UNITS:
        floors = pc.floor_temporal(column.cast(pa.timestamp("us"), safe=False), unit=unit).cast(pa.int64())
        numbers = np.unique(pc.fill_null(floors, -(2**62)).to_numpy(), return_inverse=True)[1]
        if 2 <= int(numbers.max(initial=0)) + 1 <= most:
            return f"{unit}({name})", numbers.astype(np.int64)
    return None


def _in_parts(trial: Trial, number: Int64Array, rows: int) -> Trial:
    """Return the trial with another partitioning, whose values skip by the bounds of the rows."""
    weight = np.bincount(number, trial.row_weights)
    share = weight / max(float(weight.sum()), 1e-300)
    partition_rows = {part: max(1, round(rows * of_all)) for part, of_all in enumerate(share.tolist())}
    return replace(trial, rows=Sample(trial.rows.data, number), partition_rows=partition_rows, in_partition=None)
