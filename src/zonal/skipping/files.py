"""Which of a table's files a predicate needs: partition values first, then the files' own bounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from zonal.predicates.bound import Bound, Point, Ranges, conjuncts
from zonal.skipping.index import Index, Skipped
from zonal.snapshot import UNKNOWN, Bounds, Buckets, Snapshot
from zonal.values.arrays import BoolArray, Int64Array
from zonal.values.columns import find, leaf_type

MAX_POINTS = 1000
"""More values than this are not hashed one by one."""


@dataclass(frozen=True, eq=False)
class Pruned:
    """The files that a predicate needs."""

    in_partitions: BoolArray
    """Files of the partitions that might match."""
    kept: BoolArray
    """Files that might match."""
    by_partition: Mapping[str, BoolArray]
    """Files that partition values skipped, by column."""
    by_bounds: Mapping[str, BoolArray]
    """Files that bounds skipped, by column."""


class FileIndex:
    """A snapshot's files, indexed so that many predicates can be matched against them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        files = snapshot.files
        self._partitions = PartitionIndex(files.rows, files.partition_bounds, files.buckets, snapshot.schema)
        self._bounds = Index(files.rows, files.bounds)

    def prune(self, predicate: Bound) -> Pruned:
        """Keep every file that might hold a row for which the predicate is true."""
        partitions = self._partitions.skip(predicate)
        bounds = self._bounds.skip(predicate)
        return Pruned(
            in_partitions=partitions.kept,
            kept=partitions.kept & bounds.kept,
            by_partition=partitions.by,
            by_bounds={name: left for name, mask in bounds.by.items() if (left := mask & partitions.kept).any()},
        )


class PartitionIndex:
    """Partition values and buckets of files, indexed so that many predicates can be matched against them."""

    def __init__(
        self, rows: Int64Array, bounds: Mapping[str, Bounds], buckets: Sequence[Buckets], schema: pa.Schema
    ) -> None:
        self._values = Index(rows, bounds)
        self._buckets = buckets
        self._schema = schema

    def skip(self, predicate: Bound) -> Skipped:
        """Keep the files whose partition might hold a row for which the predicate is true."""
        values = self._values.skip(predicate)
        kept = values.kept.copy()
        by = dict(values.by)
        for name, mask in self._bucket_masks(predicate, values.kept):  # a column may have several bucket fields
            kept &= ~mask
            by[name] = by[name] | mask if name in by else mask
        return Skipped(kept, by)

    def _bucket_masks(self, predicate: Bound, kept: BoolArray) -> Iterator[tuple[str, BoolArray]]:
        """Yield the files whose bucket holds none of an equality's values."""
        left = kept.copy()
        for part in conjuncts(predicate):
            for buckets in self._buckets:
                if isinstance(part, Ranges) and part.column == buckets.column and not part.nan:
                    wanted = self._buckets_of(part, buckets)
                    if wanted is None:
                        continue
                    excluded = left & ~np.isin(buckets.values, [*wanted, UNKNOWN])
                    if excluded.any():
                        yield bucket_label(part.column), excluded
                        left &= ~excluded

    def _buckets_of(self, ranges: Ranges, buckets: Buckets) -> set[int] | None:
        values = points_of(ranges, self._schema)
        if values is None:
            return None
        wanted = [buckets.bucket_of(value) for value in values]
        return None if None in wanted else {bucket for bucket in wanted if bucket is not None}


def telling_buckets(snapshot: Snapshot, column: str) -> list[Buckets]:
    """Return the buckets that tell equal values of a column apart; those of some types are never asked."""
    found = [buckets for buckets in snapshot.files.buckets if buckets.column == column]
    return [buckets for buckets in found if buckets.bucket_of(_example(snapshot.schema, column)) is not None]


def _example(schema: pa.Schema, column: str) -> object | None:
    """Return some value of a column, as an equality would ask for it; None where none could be."""
    kind = leaf_type(schema, find(schema, column))
    stored = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if pa.types.is_fixed_size_binary(stored):
        return _value(bytes(stored.byte_width), kind)
    is_text = pa.types.is_string(stored) or pa.types.is_large_string(stored)
    return _value(b"" if is_text or pa.types.is_binary(stored) or pa.types.is_large_binary(stored) else 0, kind)


def bucket_label(column: str) -> str:
    """Name the buckets of a column as the reason for skipping."""
    return f"bucket of {column}"


def points_of(ranges: Ranges, schema: pa.Schema) -> list[object] | None:
    """Return the values of ranges that are all single points, in the column's own type; else None."""
    points = [interval.low for interval in ranges.intervals if interval.low == interval.high]
    if len(points) != len(ranges.intervals) or len(points) > MAX_POINTS or ranges.nan:
        return None
    kind = leaf_type(schema, find(schema, ranges.column))
    values = [_value(point, kind) for point in points]
    return None if any(value is None for value in values) else values


def _value(point: Point, kind: pa.DataType) -> object | None:
    """Convert a point of the domain back to a value; None where that is not certain."""
    if isinstance(kind, pa.BaseExtensionType) or point is None:
        return point
    try:
        if isinstance(point, bytes):
            return point.decode() if pa.types.is_string(kind) or pa.types.is_large_string(kind) else point
        if isinstance(point, float) or pa.types.is_integer(kind):
            return point
        if pa.types.is_boolean(kind):
            return bool(point)
        if pa.types.is_decimal(kind):
            return Decimal(point).scaleb(-kind.scale)
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return None if pa.types.is_time(kind) else pa.scalar(point, width).cast(kind).as_py()
    except (UnicodeDecodeError, ValueError, OverflowError, ImportError, ArithmeticError):
        return None
