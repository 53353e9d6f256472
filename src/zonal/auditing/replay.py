"""Replay a log's queries on a table's metadata: what each reads, and how much of that without a match."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zonal.auditing.excess import Chances
from zonal.predicates.bound import Bound
from zonal.skipping.counts import Needed, QueryCounter
from zonal.snapshot import Files, Snapshot
from zonal.values.arrays import BoolArray, Float64Array, Int64Array

_MOST_FILES = 5_000
"""Files per query for which excess is computed; of more files, a systematic sample of about this size."""


@dataclass(frozen=True, eq=False)
class Replay:
    """What queries read of a table as it is: counts are exact, excess is estimated."""

    files: Int64Array
    """Files read, one number per query."""
    bytes: Int64Array
    """Bytes read, one number per query."""
    partition_files: Int64Array
    """Files of the partitions that might match, one number per query."""
    partition_bytes: Int64Array
    """Bytes of the partitions that might match, one number per query."""
    in_partition: BoolArray
    """Whether a partition might match a query; shape (partitions, queries)."""
    read: Float64Array
    """Weight of the queries that read a file, one number per file."""
    excess: Float64Array
    """Weight of the queries that read a file without a match, one number per file."""
    excess_files: Float64Array
    """Files read without a match, one number per query."""
    excess_bytes: Float64Array
    """Bytes read without a match, one number per query."""
    skipped: Mapping[str, tuple[float, float]]
    """What bounds skip, by column: mean shares of the table's files and bytes over the queries. A file counts for the
    first column (or columns, joined with ` or `) that excludes it."""
    skipped_by_partition: Mapping[str, tuple[float, float]]
    """What partition values skip, by column, as in `skipped`."""


def replay(snapshot: Snapshot, bounds: Sequence[Bound], weights: Float64Array, *, excess: bool = True) -> Replay:
    """Match every query against the table's files; `weights` sum to 1.

    Counts are those of `FileIndex.prune`. Without `excess`, what is read without a match stays 0.
    """
    files, tally = snapshot.files, QueryCounter(snapshot, bounds)
    chances = Chances(snapshot, tally.index) if excess else None
    sums = _Sums.of(files, len(bounds))
    for query, (bound, weight) in enumerate(zip(bounds, weights.tolist(), strict=True)):
        needed = tally.ask(bound)
        sums.add(query, needed, weight)
        if chances is not None:
            sums.add_excess(query, needed, weight, _for_nothing(chances, bound, needed.files, query))
    return sums.replay()


def _for_nothing(chances: Chances, bound: Bound, files: Int64Array, query: int) -> Float64Array:
    """Return for each file the chance that no row matches; of many files, one of every few stands for these.

    Which one that is differs from query to query, so that no file is always left out.
    """
    step = -(-len(files) // _MOST_FILES)
    if step <= 1:
        return chances.of_nothing(bound, files)
    starts = np.arange(0, len(files), step)
    sampled = np.minimum(starts + query % step, len(files) - 1)
    return np.repeat(chances.of_nothing(bound, files[sampled]), step)[: len(files)]


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the queries so far."""

    sizes: Int64Array
    weighed: Float64Array
    """The sizes as floats."""
    counts: Int64Array
    """Files, bytes, files of partitions and bytes of partitions; shape (4, queries)."""
    in_partition: BoolArray
    read: Float64Array
    excess: Float64Array
    for_nothing: Float64Array
    """Files and bytes; shape (2, queries)."""
    skipped: dict[str, Float64Array]
    skipped_by_partition: dict[str, Float64Array]

    @classmethod
    def of(cls, files: Files, queries: int) -> "_Sums":
        in_partition = np.zeros((int(files.partition.max(initial=-1)) + 1, queries), np.bool_)
        per_file = np.zeros((2, len(files)))
        counts = np.zeros((4, queries), np.int64)
        return cls(
            files.sizes,
            files.sizes.astype(np.float64),
            counts,
            in_partition,
            per_file[0],
            per_file[1],
            np.zeros((2, queries)),
            {},
            {},
        )

    def add(self, query: int, needed: Needed, weight: float) -> None:
        """Add what a query reads."""
        self.counts[:, query] = len(needed.files), needed.bytes, *needed.in_partitions
        self.in_partition[needed.partitions, query] = True
        self.read[needed.files] += weight  # no file occurs twice
        for sums, skipped in ((self.skipped, needed.by_bounds), (self.skipped_by_partition, needed.by_partition)):
            for name, amount in skipped.items():
                sums[name] = sums.get(name, np.zeros(2)) + weight * np.array(amount)

    def add_excess(self, query: int, needed: Needed, weight: float, nothing: Float64Array) -> None:
        """Add what a query reads without a match."""
        self.for_nothing[:, query] = nothing.sum(), np.einsum("i,i", nothing, self.weighed[needed.files])
        self.excess[needed.files] += weight * nothing

    def replay(self) -> Replay:
        """Return the sums; what columns skip, as shares of the table."""
        whole = np.maximum([len(self.sizes), self.sizes.sum()], 1)
        shares = [
            {name: (float(sums[0] / whole[0]), float(sums[1] / whole[1])) for name, sums in each.items()}
            for each in (self.skipped, self.skipped_by_partition)
        ]
        excess = np.minimum(self.excess, self.read)  # sums of rounded numbers may exceed it slightly
        files, sizes, partition_files, partition_sizes = self.counts
        return Replay(
            files, sizes, partition_files, partition_sizes, self.in_partition, self.read, excess,
            excess_files=self.for_nothing[0], excess_bytes=self.for_nothing[1],
            skipped=shares[0], skipped_by_partition=shares[1],
        )  # fmt: skip
