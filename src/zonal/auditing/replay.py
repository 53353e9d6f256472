"""A log's queries asked again: what each reads of a table's files, and what of that for nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zonal.auditing.excess import Chances
from zonal.predicates.bound import Bound
from zonal.skipping.counts import Needed, QueryCounter
from zonal.snapshot import Files, Snapshot
from zonal.values.arrays import BoolArray, Float64Array, Int64Array

_MOST_FILES = 5_000
"""Files of a query of which excess is computed; of more, for every so many files once."""


@dataclass(frozen=True, eq=False)
class Replay:
    """What queries read of a table as it is: counts are exact, excess is estimated."""

    files: Int64Array
    """A number a query: files that it reads, …"""
    bytes: Int64Array
    """… and their bytes."""
    partition_files: Int64Array
    """A number a query: files of the partitions that might match, …"""
    partition_bytes: Int64Array
    """… and their bytes."""
    in_partition: BoolArray
    """A row a partition and a column a query: whether the partition might hold what the query needs."""
    read: Float64Array
    """A number a file: weight of the queries that read it."""
    excess: Float64Array
    """A number a file: weight of the queries that read it and find nothing there."""
    excess_files: Float64Array
    """A number a query: files that it reads for nothing, …"""
    excess_bytes: Float64Array
    """… and their bytes."""
    skipped: Mapping[str, tuple[float, float]]
    """By column, what bounds skip: the share of the table's files and of its bytes, in the mean over the queries. A
    file counts for the first column (or columns, joined with ` or `) that excludes it."""
    skipped_by_partition: Mapping[str, tuple[float, float]]
    """The same of partition values."""


def replay(snapshot: Snapshot, bounds: Sequence[Bound], weights: Float64Array, *, excess: bool = True) -> Replay:
    """Ask every query of the table's files; `weights` sum to 1.

    Counts are those of `FileIndex.prune`. Without `excess`, what is read for nothing stays 0.
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
    """Return the chance of each file that no row matches; of many files, one in the midst of a few stands for them.

    Which one that is differs from query to query, so that no file is always left out.
    """
    step = -(-len(files) // _MOST_FILES)
    if step <= 1:
        return chances.of_nothing(bound, files)
    starts = np.arange(0, len(files), step)
    asked = np.minimum(starts + query % step, len(files) - 1)
    return np.repeat(chances.of_nothing(bound, files[asked]), step)[: len(files)]


@dataclass(frozen=True, eq=False)
class _Sums:
    """What was added up over the queries so far."""

    sizes: Int64Array
    weighed: Float64Array
    """The sizes as floats."""
    counts: Int64Array
    """A row each for files, bytes, and both of partitions; a column a query."""
    in_partition: BoolArray
    read: Float64Array
    excess: Float64Array
    for_nothing: Float64Array
    """A row each for files and bytes; a column a query."""
    skipped: dict[str, Float64Array]
    skipped_by_partition: dict[str, Float64Array]

    @classmethod
    def of(cls, files: Files, queries: int) -> "_Sums":
        in_partition = np.zeros((int(files.partition.max(initial=-1)) + 1, queries), np.bool_)
        a_file = np.zeros((2, len(files)))
        counts = np.zeros((4, queries), np.int64)
        return cls(
            files.sizes,
            files.sizes.astype(np.float64),
            counts,
            in_partition,
            a_file[0],
            a_file[1],
            np.zeros((2, queries)),
            {},
            {},
        )

    def add(self, query: int, needed: Needed, weight: float) -> None:
        """Count a query's files."""
        self.counts[:, query] = len(needed.files), needed.bytes, *needed.in_partitions
        self.in_partition[needed.partitions, query] = True
        self.read[needed.files] += weight  # no file comes twice
        for sums, skipped in ((self.skipped, needed.by_bounds), (self.skipped_by_partition, needed.by_partition)):
            for name, amount in skipped.items():
                sums[name] = sums.get(name, np.zeros(2)) + weight * np.array(amount)

    def add_excess(self, query: int, needed: Needed, weight: float, nothing: Float64Array) -> None:
        """Count what a query finds nothing in."""
        self.for_nothing[:, query] = nothing.sum(), np.einsum("i,i", nothing, self.weighed[needed.files])
        self.excess[needed.files] += weight * nothing

    def replay(self) -> Replay:
        """Return the sums; what columns skip, as shares of the table."""
        whole = np.maximum([len(self.sizes), self.sizes.sum()], 1)
        shares = [
            {name: (float(sums[0] / whole[0]), float(sums[1] / whole[1])) for name, sums in each.items()}
            for each in (self.skipped, self.skipped_by_partition)
        ]
        excess = np.minimum(self.excess, self.read)  # which sums of rounded numbers may exceed by little
        files, sizes, partition_files, partition_sizes = self.counts
        return Replay(
            files, sizes, partition_files, partition_sizes, self.in_partition, self.read, excess,
            excess_files=self.for_nothing[0], excess_bytes=self.for_nothing[1],
            skipped=shares[0], skipped_by_partition=shares[1],
        )  # fmt: skip
