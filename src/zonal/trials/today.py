"""What queries read of a table as it is, exactly, from its metadata: the baseline of every candidate."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zonal.predicates.bound import Bound
from zonal.skipping.counts import QueryCounter
from zonal.skipping.shares import PREDICTED, is_worse
from zonal.snapshot import Snapshot
from zonal.trials.prediction import Prediction
from zonal.values.arrays import BoolArray, Float64Array, Int64Array


@dataclass(frozen=True, eq=False)
class Standing:
    """What the table's files and its partitions skip today."""

    current: Prediction
    """With partition values and the files' own bounds."""
    partition_only: Prediction
    """With partition values alone, as if there were no order within partitions."""
    in_partition: BoolArray
    """Whether each partition might hold what each query needs, in the shape (partitions, queries)."""


def standing(snapshot: Snapshot, bounds: Sequence[Bound], weights: Sequence[float] | Float64Array) -> Standing:
    """Match every query against the table's files."""
    files, counter = snapshot.files, QueryCounter(snapshot, bounds)
    total = max(int(files.sizes.sum()), 1)
    kept, inside = np.zeros(len(bounds)), np.zeros(len(bounds))
    in_partition = np.zeros((int(files.partition.max(initial=-1)) + 1, len(bounds)), np.bool_)
    for query, bound in enumerate(bounds):
        needed = counter.ask(bound)
        kept[query] = needed.bytes / total
        inside[query] = needed.in_partitions[1] / total
        in_partition[needed.partitions, query] = True
    weight = np.asarray(weights, np.float64)
    return Standing(
        Prediction.of(len(files), kept, kept, weight), Prediction.of(len(files), inside, inside, weight), in_partition
    )


def current(snapshot: Snapshot, bounds: Sequence[Bound], weights: Sequence[float] | Float64Array) -> Prediction:
    """Return what queries read of the table as it is."""
    return standing(snapshot, bounds, weights).current


def regressions(before: Prediction, after: Prediction) -> Int64Array:
    """Return the queries that read more than before by more than the prediction's error, the worst first."""
    worse = np.flatnonzero(is_worse(before.shares, after.shares, PREDICTED))
    return worse[np.argsort(before.shares[worse] - after.shares[worse], kind="stable")]
