"""Bucket partitions of Iceberg: the bucket of each file, and the bucket of a value."""

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from zonal.snapshot import UNKNOWN, Buckets
from zonal.tables.iceberg.bounds import EXACT, MICROS, NANOS, IcebergLeaf
from zonal.tables.iceberg.live_files import LiveFiles


def buckets(
    live: LiveFiles, specs: Mapping[int, PartitionSpec], columns: Mapping[int, IcebergLeaf]
) -> tuple[Buckets, ...]:
    """Give the bucket of each file for every column and number of buckets."""
    hashed = {
        (field.source_id, field.transform.num_buckets)
        for spec in specs.values()
        for field in spec.fields
        if isinstance(field.transform, BucketTransform)
        and field.source_id in columns
        and field.transform.can_transform(columns[field.source_id].type)
    }
    return tuple(_buckets(live, specs, columns[source], count) for source, count in sorted(hashed))


def _buckets(live: LiveFiles, specs: Mapping[int, PartitionSpec], leaf: IcebergLeaf, count: int) -> Buckets:
    transform: BucketTransform[Any] = BucketTransform(count)
    field_ids = {
        spec_id: field.field_id
        for spec_id, spec in specs.items()
        for field in spec.fields
        if field.source_id == leaf.field_id and field.transform == transform
    }
    values = [values.get(field_ids.get(spec_id, UNKNOWN)) for spec_id, values in live.partitions]
    known = [value if isinstance(value, int) and 0 <= value < count else UNKNOWN for value in values]
    of_value = transform.transform(leaf.type)
    return Buckets(leaf.name, partial(_bucket_of, leaf.type, of_value), np.array(known, np.int64)[live.partition])


def _bucket_of(kind: PrimitiveType, of_value: Callable[[Any], int | None], value: object) -> int | None:
    """Hash a value only in the column's own type: `1.0` and `1` have different hashes."""
    try:
        if isinstance(kind, DecimalType) and isinstance(value, (Decimal, int)) and not isinstance(value, bool):
            return of_value(Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), context=EXACT))
        wanted = next((types for kinds, types in _VALUES if isinstance(kind, kinds)), ())
        if type(value) not in wanted or _has_zone(value) != isinstance(kind, (TimestamptzType, TimestamptzNanoType)):
            return None
        return of_value(value)
    except (ArithmeticError, AttributeError, TypeError, ValueError, struct.error):
        return None


def _has_zone(value: object) -> bool:
    return isinstance(value, (datetime, time)) and value.tzinfo is not None


_VALUES: Sequence[tuple[type | tuple[type, ...], tuple[type, ...]]] = (
    ((IntegerType, LongType), (int,)),
    (StringType, (str,)),
    ((BinaryType, FixedType), (bytes,)),
    (DateType, (date,)),
    (TimeType, (time,)),
    ((*MICROS, *NANOS), (datetime,)),
    (UUIDType, (UUID, bytes)),
)
