"""Make the manifest entry of a new data file, with the metrics that the table's settings ask for."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StringType,
    StructType,
)

from zonal.errors import TableError, quoted
from zonal.plan.rewrite import ColumnMetrics, DeleteFile, Written
from zonal.tables.iceberg.field_ids import (
    CONTENT,
    DATA,
    DELETE_PATH,
    DELETE_POSITION,
    FORMAT,
    LOWER_BOUNDS,
    NAN_COUNTS,
    NULL_COUNTS,
    PARTITION,
    PATH,
    POSITION_DELETES,
    RECORDS,
    REFERENCED,
    SIZE,
    SORT_ORDER_ID,
    UPPER_BOUNDS,
    Fields,
)
from zonal.values.arrays import Int64Array

COLUMN_SIZES, VALUE_COUNTS = 108, 109
DEFAULT, BY_COLUMN = "write.metadata.metrics.default", "write.metadata.metrics.column."
MOST_INFERRED = "write.metadata.metrics.max-inferred-column-defaults"
TRUNCATED = 16
"""Characters or bytes that Iceberg keeps of a bound by default."""


@dataclass(frozen=True)
class Kept:
    """What a manifest says of one leaf column."""

    field_id: int
    type: PrimitiveType
    counts: bool = True
    bounds: bool = True
    length: int | None = TRUNCATED
    """Characters or bytes that are kept of a bound; None keeps all."""


def kept_metrics(schema: Schema, properties: Mapping[str, str], keys: Sequence[str]) -> tuple[Kept, ...]:
    """Decide what is kept of each leaf of the schema, in order; of `keys`, never less than bounds cut at 16.

    As Java does: columns below lists and maps have counts only, and without a default setting only the first hundred
    leaves have metrics.
    """
    leaves = list(_leaves(schema.as_struct(), "", repeated=False))
    most = _number(properties.get(MOST_INFERRED), 100)
    inferred = f"truncate({TRUNCATED})"
    return tuple(
        _kept(
            leaf,
            properties.get(BY_COLUMN + leaf.name)
            or properties.get(DEFAULT)
            or (inferred if position < most else "none"),
            is_key=leaf.name in keys,
        )
        for position, leaf in enumerate(leaves)
    )


def data_file(
    written: Written,
    kept: Sequence[Kept],
    *,
    partition: Mapping[int, Any],
    sort_order_id: int | None = None,
) -> Fields:
    """Describe a new file for its manifest entry; columns after those in `kept` are row lineage, without metrics.

    NaN is above all numbers for Spark, but bounds leave it out. Java's `InclusiveMetricsEvaluator` skips a file for
    `>`, `>=`, `=` and `in` by its upper bound, whatever it counts of NaN, and for every comparison where it counts as
    many of them as values. So a column that holds a NaN has no upper bound, and if it holds no number, no count of NaN.
    What is left is sound: the lower bound holds for NaN as well, a count that isn't 0 skips nothing, and neither does
    one that is missing. `StrictMetricsEvaluator`, by which whole files are deleted, needs an upper bound to say that
    `<`, `<=`, `=` or `in` is true of all rows; by a lower bound alone it says so of `>`, `>=`, `<>` and `not in`, which
    are true of NaN.
    """
    if len(written.columns) < len(kept):
        raise TableError(
            f"The new file {quoted(written.path, limit=300)} has {len(written.columns)} columns instead of {len(kept)}."
        )
    pairs = [(one, column) for one, column in zip(kept, written.columns, strict=False) if one.counts]
    lower = {one.field_id: _bound(one, column.lower, upper=False) for one, column in pairs}
    upper = {one.field_id: _bound(one, column.upper, upper=True) for one, column in pairs if not column.nans}
    return {
        CONTENT: DATA,
        PATH: written.path,
        FORMAT: "PARQUET",
        PARTITION: partition,
        RECORDS: written.rows,
        SIZE: written.size,
        COLUMN_SIZES: {one.field_id: column.size for one, column in pairs},
        VALUE_COUNTS: {one.field_id: column.values for one, column in pairs},
        NULL_COUNTS: {one.field_id: column.nulls for one, column in pairs},
        NAN_COUNTS: {one.field_id: column.nans for one, column in pairs if _counts_nans(one, column)},
        LOWER_BOUNDS: {number: bound for number, bound in lower.items() if bound is not None},
        UPPER_BOUNDS: {number: bound for number, bound in upper.items() if bound is not None},
        SORT_ORDER_ID: sort_order_id,
    }


def delete_file(stored: DeleteFile, path: str, positions: Int64Array, partition: Mapping[int, Any]) -> Fields:
    """Describe a file of positions of one data file, by which readers know that it is about no other."""
    return {
        CONTENT: POSITION_DELETES,
        PATH: stored.location,
        FORMAT: "PARQUET",
        PARTITION: partition,
        RECORDS: stored.rows,
        SIZE: stored.size,
        LOWER_BOUNDS: {DELETE_PATH: path.encode(), DELETE_POSITION: to_bytes(LongType(), int(positions[0]))},
        UPPER_BOUNDS: {DELETE_PATH: path.encode(), DELETE_POSITION: to_bytes(LongType(), int(positions[-1]))},
        REFERENCED: path,
    }


# --- settings ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Leaf:
    name: str
    field_id: int
    type: PrimitiveType
    repeated: bool


def _leaves(kind: IcebergType, name: str, *, repeated: bool, field_id: int = 0) -> Iterator[_Leaf]:
    """Walk depth first, which is the order of Parquet's columns."""
    if isinstance(kind, StructType):
        children = [(field.name, field) for field in kind.fields]
    elif isinstance(kind, ListType):
        children, repeated = [("element", kind.element_field)], True
    elif isinstance(kind, MapType):
        children, repeated = [("key", kind.key_field), ("value", kind.value_field)], True
    else:
        assert isinstance(kind, PrimitiveType)  # noqa: S101
        yield _Leaf(name, field_id, kind, repeated)
        return
    for child, field in children:
        path = f"{name}.{child}" if name else child
        yield from _leaves(field.field_type, path, repeated=repeated, field_id=field.field_id)


def _kept(leaf: _Leaf, mode: str, *, is_key: bool) -> Kept:
    mode = mode.strip().lower()
    match = re.fullmatch(r"truncate\(([0-9]{1,9})\)", mode)
    length = int(match[1]) if match else None if mode == "full" else TRUNCATED  # Java takes the default for nonsense
    counts, bounds = is_key or mode != "none", is_key or mode not in ("none", "counts")
    if is_key and length is not None:
        length = max(length, TRUNCATED)
    return Kept(leaf.field_id, leaf.type, counts, bounds and not leaf.repeated, length)


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,9}", text) else default


def _counts_nans(kept: Kept, column: ColumnMetrics) -> bool:
    only_nans = column.nans > 0 and column.nans >= column.values - column.nulls
    return isinstance(kept.type, (FloatType, DoubleType)) and not only_nans


# --- bounds --------------------------------------------------------------------------------------------------------


def _bound(kept: Kept, scalar: pa.Scalar | None, *, upper: bool) -> bytes | None:
    if not kept.bounds or scalar is None or not scalar.is_valid:
        return None
    value = plain(scalar)
    if isinstance(kept.type, (FloatType, DoubleType)):
        if math.isnan(value):
            return None
        value = (0.0 if upper else -0.0) if value == 0 else value  # both zeros may be there, and -0.0 comes first
    if isinstance(kept.type, DecimalType):
        value = value if isinstance(value, Decimal) else Decimal(value)
    if kept.length is not None and isinstance(kept.type, StringType):
        value = truncated_text(value, kept.length, upper=upper)
    elif kept.length is not None and isinstance(kept.type, BinaryType):
        value = truncated_bytes(value, kept.length, upper=upper)
    return None if value is None else to_bytes(kept.type, value)


def plain(scalar: pa.Scalar) -> Any:  # noqa: ANN401
    """Return dates and times as numbers: Python's own end in the year 9999."""
    kind = scalar.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(scalar.value)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return scalar.cast(pa.int32()).as_py()
    if pa.types.is_temporal(kind):
        return scalar.cast(pa.int64()).as_py()
    return scalar.as_py()


def truncated_text(text: str, length: int, *, upper: bool) -> str | None:
    """Cut a bound at a number of characters; an upper bound is rounded up, or None where nothing is above.

    >>> truncated_text("zonal", 3, upper=False), truncated_text("zonal", 3, upper=True)
    ('zon', 'zoo')
    """
    cut = text[:length]
    if not upper or len(text) <= length:
        return cut
    for end in range(len(cut) - 1, -1, -1):
        code = ord(cut[end]) + 1
        code = 0xE000 if 0xD800 <= code <= 0xDFFF else code  # no surrogates in UTF-8
        if code <= 0x10FFFF:
            return cut[:end] + chr(code)
    return None


def truncated_bytes(value: bytes, length: int, *, upper: bool) -> bytes | None:
    """Cut a bound at a number of bytes; an upper bound is rounded up, or None where nothing is above."""
    cut = value[:length]
    if not upper or len(value) <= length:
        return cut
    kept = cut.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
