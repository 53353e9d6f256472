"""Prepare a sample of a table as the `Ground` on which layouts are tried."""

import numpy as np

from zonal.advising.decidable import decidable, float_columns
from zonal.advising.ground import Ground
from zonal.advising.queries import BoundQueries, Fit, filter_weights, halves
from zonal.snapshot import Snapshot
from zonal.study.look import Looked, limits_of, row_group_shares
from zonal.tables.protocol import Table
from zonal.trials.boxes import boxes_of, code
from zonal.trials.today import Standing
from zonal.trials.trial import Trial


def ground_of(
    table: Table,
    snapshot: Snapshot,
    asked: BoundQueries,
    fit: Fit,
    stands: Standing,
    looked: Looked,
    *,
    target_file_bytes: int,
    seed: int,
    parted: bool = True,
    size_asked: bool = True,
) -> Ground:
    """Prepare the sampled columns for trying candidate layouts.

    The queries are split into training and held-out queries unless `parted` is false, as for a given layout.
    `size_asked` as in `Ground`.
    """
    names = looked.rows.data.column_names
    every = np.arange(len(asked))
    learn, held = halves(asked, seed) if parted else (every, every)
    coded = code(looked.rows.data, names, limits_of(snapshot, names))
    floats = float_columns(snapshot, names)
    decided = tuple(decidable(bound, floats) for bound in asked.bounds)
    sample = Trial(
        looked.rows,
        coded,
        boxes_of(decided, coded),
        asked.weights,
        looked.partition_rows,
        looked.row_bytes,
        stands.in_partition if snapshot.partitioning else None,
    )
    filtered = filter_weights(asked)[0]
    return Ground(
        snapshot=snapshot,
        asked=asked,
        decided=decided,
        fit=fit,
        standing=stands,
        groups_today=row_group_shares(table, snapshot, names, asked.bounds, stands.current.shares),
        sample=sample,
        learn=learn,
        held=held,
        columns=tuple(name for name in filtered if name in names and name not in snapshot.partitioning),
        target_file_bytes=target_file_bytes,
        rows=looked.table_rows,
        row_seconds=looked.row_seconds,
        seed=seed,
        size_asked=size_asked,
    )
