"""Files and bytes that each query of a log needs, counted as `skipping.files` decides.

A predicate is matched once against all files with the same partition values, and each conjunct only against the files
that those before it left. Nothing is kept per query and file, so a log of any length takes the memory of one query.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from zonal.predicates.bound import Bound, conjuncts
from zonal.skipping.files import PartitionIndex
from zonal.skipping.index import Index, columns_of, label_of
from zonal.snapshot import Files, LazyBounds, Snapshot
from zonal.values.arrays import BoolArray, Int64Array

Amount: TypeAlias = tuple[int, int]
"""A number of files, and their bytes."""

_FEW = 0.25
"""Below this share of all files, gathering their bounds is faster than comparing the whole column."""
_MOST_SLICES = 1000
"""The most classes of files that are concatenated one by one."""


@dataclass(frozen=True, eq=False)
class Needed:
    """What one query needs."""

    files: Int64Array
    """Numbers of the files that might match; in order within a partition."""
    bytes: int
    in_partitions: Amount
    """What the partitions that might match hold."""
    partitions: Int64Array
    """Numbers of the partitions that might match."""
    by_partition: Mapping[str, Amount]
    """What partition values skipped, by column."""
    by_bounds: Mapping[str, Amount]
    """What bounds skipped, by column."""


class QueryCounter:
    """A snapshot's files, indexed for many queries, all of which are given at the start."""

    def __init__(self, snapshot: Snapshot, bounds: Iterable[Bound]) -> None:
        files = snapshot.files
        names = list(dict.fromkeys(name for bound in bounds for name in columns_of(bound)))
        for lazy in (files.bounds, files.partition_bounds):
            if isinstance(lazy, LazyBounds):
                lazy.load(names)
        self.index = Index(files.rows, files.bounds)
        self._sizes = files.sizes
        self._classes = _FileClasses.of(snapshot, names)

    def ask(self, predicate: Bound) -> Needed:
        """Count what the predicate needs, and what excludes the rest, exactly as `FileIndex.prune` does."""
        partitions = self._classes.index.skip(predicate)
        at = self._classes.files_of(partitions.kept)
        inside = self._classes.amount(partitions.kept)
        left, taken, by = self._by_bounds(predicate, at, inside)
        return Needed(
            files=left,
            bytes=taken,
            in_partitions=inside,
            partitions=self._classes.partitions_of(partitions.kept),
            by_partition={name: self._classes.amount(mask) for name, mask in partitions.by.items()},
            by_bounds=by,
        )

    def _by_bounds(self, predicate: Bound, at: Int64Array, amount: Amount) -> tuple[Int64Array, int, dict[str, Amount]]:
        """Return the files that bounds keep, their bytes, and what each column skips."""
        by: dict[str, Amount] = {}
        taken = amount[1]
        for part in conjuncts(predicate):
            might = self._might_match(part, at)
            count = int(np.count_nonzero(might))
            if count == len(at):
                continue
            skipped, matching = len(at) - count, np.flatnonzero(might)
            at = matching if len(at) == len(self.index) else at[matching]
            left = int(self._sizes[at].sum())
            name = label_of(part)
            before = by.get(name, (0, 0))
            by[name] = (before[0] + skipped, before[1] + taken - left)
            taken = left
        return at, taken, by

    def _might_match(self, part: Bound, at: Int64Array) -> BoolArray:
        if len(at) == len(self.index):
            return self.index.might_match(part)
        if len(at) > _FEW * len(self.index):
            return self.index.might_match(part)[at]
        return self.index.might_match(part, at)


@dataclass(frozen=True, eq=False)
class _FileClasses:
    """Classes of files with the same values of the partition columns that queries name."""

    index: PartitionIndex
    """One file of each class."""
    everything: Int64Array
    """All file numbers, ascending."""
    number: Int64Array
    """The class of each file."""
    order: Int64Array
    """The files, class by class."""
    starts: Int64Array
    """Where each class begins in `order`, and the end."""
    files: Int64Array
    """How many files each class has."""
    bytes: Int64Array
    pair_class: Int64Array
    """The class of each pair of a class and a partition with files of it."""
    pair_partition: Int64Array
    """The partition of each such pair."""

    @classmethod
    def of(cls, snapshot: Snapshot, names: Sequence[str]) -> "_FileClasses":
        files = snapshot.files
        number = _class_numbers(files, names)
        order = np.argsort(number, kind="stable")
        starts = np.searchsorted(number[order], np.arange(int(number.max(initial=-1)) + 2))
        first = order[starts[:-1]]
        bounds = {name: files.partition_bounds[name].take(first) for name in names if name in files.partition_bounds}
        buckets = [replace(each, values=each.values[first]) for each in files.buckets]
        width = int(files.partition.max(initial=0)) + 1
        pairs = np.unique(number * width + files.partition)
        return cls(
            PartitionIndex(files.rows[first], bounds, buckets, snapshot.schema),
            np.arange(len(files)),
            number,
            order,
            starts,
            np.diff(starts),
            np.add.reduceat(files.sizes[order], starts[:-1]) if len(order) else np.zeros(0, np.int64),
            pairs // width,
            pairs % width,
        )

    def files_of(self, kept: BoolArray) -> Int64Array:
        """Return the files of some classes."""
        chosen = np.flatnonzero(kept)
        if len(chosen) > min(_FEW * len(kept), _MOST_SLICES):
            return self.everything if len(chosen) == len(kept) else np.flatnonzero(kept[self.number])
        parts = [self.order[self.starts[each] : self.starts[each + 1]] for each in chosen.tolist()]
        return np.concatenate(parts) if parts else self.everything[:0]

    def amount(self, kept: BoolArray) -> Amount:
        """Return the files and bytes of some classes."""
        return int(self.files[kept].sum()), int(self.bytes[kept].sum())

    def partitions_of(self, kept: BoolArray) -> Int64Array:
        """Return the partitions that have files of some classes, possibly several times."""
        return self.pair_partition[kept[self.pair_class]]


def _class_numbers(files: Files, names: Sequence[str]) -> Int64Array:
    """Number the files so that two have the same number where partition values can't tell them apart."""
    number = np.zeros(len(files), np.int64)
    index = Index(files.rows, files.partition_bounds)
    for name in names:
        if name in files.partition_bounds:
            column = index.column(name)
            flags = column.all_null + 2 * (column.nulls != 0) + 4 * (column.nans != 0)
            for values in (column.lower, column.upper, flags):
                number = _refined(number, values.astype(np.int64))
    for buckets in files.buckets:
        if buckets.column in names:
            number = _refined(number, buckets.values)
    return number


def _refined(number: Int64Array, values: Int64Array) -> Int64Array:
    """Split classes by a value of each file; the new numbers stay below the number of files."""
    codes = np.unique(values, return_inverse=True)[1]
    both: Int64Array = np.unique(number * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    return both
