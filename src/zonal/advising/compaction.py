"""Simulate a compaction: the same rows in the same order, in fewer, larger files."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from zonal.snapshot import UNKNOWN, Bounds, Buckets, Snapshot
from zonal.values.arrays import Int64Array

FEWER = 0.7
"""Largest share of the files that may be left for a compaction to be worth trying."""


@dataclass(frozen=True, eq=False)
class Merged:
    """A table after a compaction."""

    snapshot: Snapshot
    rewritten: Int64Array
    """Positions of the files that were joined with others."""


def merged(snapshot: Snapshot, target_file_bytes: int, columns: list[str]) -> Merged | None:
    """Join neighbors in each partition, in the order in which they were written, up to the target size.

    Only the bounds of `columns` are kept. None where there would be nearly as many files as before.
    """
    files = snapshot.files
    order = np.lexsort((np.arange(len(files)), files.added_by, files.partition))
    group = _groups(files.partition[order], files.sizes[order], target_file_bytes)
    count = int(group[-1]) + 1 if len(group) else 0
    if count > FEWER * len(files):
        return None
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    joined = _Joined(order, starts)
    known: Mapping[str, Bounds] = files.bounds
    sizes = np.diff(starts, append=len(order))
    new = replace(
        files,
        paths=files.paths.take(pa.array(order[starts])),
        sizes=joined.total(files.sizes),
        rows=joined.total(files.rows),
        deleted=joined.total(files.deleted),
        delete_files=joined.total(files.delete_files),
        added_by=files.added_by[order[starts]],
        layout_ids=pa.nulls(count, pa.string()),
        partition=files.partition[order[starts]],
        bounds={name: joined.bounds(known[name]) for name in columns if name in known},
        partition_bounds={name: joined.first(bounds) for name, bounds in files.partition_bounds.items()},
        buckets=tuple(Buckets(b.column, b.bucket_of, b.values[order[starts]]) for b in files.buckets),
    )
    return Merged(replace(snapshot, files=new), order[np.repeat(sizes > 1, sizes)])


def _groups(partition: Int64Array, sizes: Int64Array, target: int) -> Int64Array:
    """Number the new files; one begins with every partition, and where the last one has reached the target."""
    if not len(sizes):
        return np.zeros(0, np.int64)
    ends = np.cumsum(sizes)
    firsts = np.flatnonzero(np.diff(partition, prepend=partition[0] - 1))
    before = np.repeat(ends[firsts] - sizes[firsts], np.diff(firsts, append=len(sizes)))
    place = (ends - before - (sizes + 1) // 2) // target
    new = (np.diff(partition, prepend=partition[0] - 1) != 0) | (np.diff(place, prepend=-1) != 0)
    return np.cumsum(new) - 1


@dataclass(frozen=True, eq=False)
class _Joined:
    """Runs of consecutive files, of which each becomes one file."""

    order: Int64Array
    starts: Int64Array

    def total(self, counts: Int64Array) -> Int64Array:
        """Add up the counts of each run; with an unknown count, the sum is unknown."""
        sums = np.add.reduceat(counts[self.order], self.starts)
        known = np.logical_and.reduceat(counts[self.order] != UNKNOWN, self.starts)
        return np.where(known, sums, UNKNOWN)

    def first(self, bounds: Bounds) -> Bounds:
        """Return the bounds of the first file of each run, for partition values, which are equal in a run."""
        at = self.order[self.starts]
        return Bounds(
            bounds.lower.take(pa.array(at)), bounds.upper.take(pa.array(at)), bounds.nulls[at], bounds.nans[at]
        )

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return bounds that cover each run; with an unknown bound, the run's is unknown."""
        return Bounds(
            self._extreme(bounds.lower, "min"),
            self._extreme(bounds.upper, "max"),
            self.total(bounds.nulls),
            self.total(bounds.nans),
        )

    def _extreme(self, values: pa.Array, which: str) -> pa.Array:
        group = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.order)))
        kind = values.type
        plain = values.storage if isinstance(values, pa.ExtensionArray) else values
        table = pa.table({"group": group, "value": plain.take(pa.array(self.order))})
        options = pa.compute.ScalarAggregateOptions(skip_nulls=False)
        extremes = table.group_by("group", use_threads=False).aggregate([("value", which, options)])
        column = extremes.sort_by("group").column(f"value_{which}").combine_chunks()
        column = column.cast(plain.type)
        return pa.ExtensionArray.from_storage(kind, column) if isinstance(kind, pa.BaseExtensionType) else column
