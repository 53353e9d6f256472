"""Bounds of Iceberg columns, from metrics and from partition values.

Everything is found by field id, so that renamed columns keep their bounds, and is given in the column's present type.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform, TimeTransform, Transform, TruncateTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from zonal.snapshot import UNKNOWN, Bounds, LazyBounds
from zonal.tables.iceberg.arrow_schema import bound_type
from zonal.tables.iceberg.live_files import LiveFiles
from zonal.values.arrays import Int64Array

EXACT = Context(prec=100, traps=[Inexact, InvalidOperation])
_FLOATS = (FloatType, DoubleType)
MICROS = (TimestampType, TimestamptzType)
NANOS = (TimestampNanoType, TimestamptzNanoType)
_NO_OVERFLOW = 2**30
"""Half the range of a Java int: widths of `truncate` and hours up to here have not wrapped around."""
_DAY = {"D": 1, "us": 86_400_000_000, "ns": 86_400_000_000_000}


class IcebergLeaf(NamedTuple):
    """A column, or the leaf of a struct, that has one value per row."""

    name: str
    field_id: int
    type: PrimitiveType
    bound_type: pa.DataType


def fields(schema: Schema) -> dict[str, NestedField]:
    """List columns and struct leaves by dotted path, which Iceberg keeps unique; lists and maps are one column."""
    return dict(_walk(schema.as_struct(), ""))


def _walk(struct_type: StructType, above: str) -> Iterator[tuple[str, NestedField]]:
    for field in struct_type.fields:
        if isinstance(field.field_type, StructType):
            yield from _walk(field.field_type, f"{above}{field.name}.")
        else:
            yield f"{above}{field.name}", field


def leaves(schema: Schema) -> dict[int, IcebergLeaf]:
    """List by field id what can have bounds: everything but lists and maps."""
    return {
        field.field_id: IcebergLeaf(name, field.field_id, field.field_type, bound_type(field.field_type))
        for name, field in fields(schema).items()
        if isinstance(field.field_type, PrimitiveType)
    }


# --- metrics -------------------------------------------------------------------------------------------------------


def column_bounds(live: LiveFiles, columns: Mapping[int, IcebergLeaf]) -> LazyBounds:
    """Decode metrics on demand; every column is there, with null bounds where a manifest has none.

    A file without metrics of a column says nothing of it, not even that it lacks the column: in version 3 a column that
    was added later has its initial default there.
    """
    return LazyBounds({leaf.name: partial(_decoded, live, leaf) for leaf in columns.values()})


def _decoded(live: LiveFiles, leaf: IcebergLeaf) -> Bounds:
    lower = [value for part in live.metrics for value in _stored(part.lower.get(leaf.field_id), part.count)]
    upper = [value for part in live.metrics for value in _stored(part.upper.get(leaf.field_id), part.count)]
    below, above = _decoder(leaf.type, upper=False), _decoder(leaf.type, upper=True)
    none = np.empty(0, np.int64)
    nulls = [part.nulls.get(leaf.field_id, np.full(part.count, UNKNOWN)) for part in live.metrics]
    nans = [part.nans.get(leaf.field_id, np.full(part.count, UNKNOWN)) for part in live.metrics]
    return _bounds(
        leaf,
        [None if value is None else below(value) for value in lower],
        [None if value is None else above(value) for value in upper],
        np.concatenate([none, *nulls]),
        np.concatenate([none, *nans]),
    )


def _stored(values: pa.Array | None, count: int) -> Sequence[bytes | None]:
    return [None] * count if values is None else values.to_pylist()


def _bounds(
    leaf: IcebergLeaf, lower: Sequence[object], upper: Sequence[object], nulls: Int64Array, nans: Int64Array
) -> Bounds:
    low, high = pa.array(lower, leaf.bound_type), pa.array(upper, leaf.bound_type)
    if not pa.types.is_null(leaf.bound_type):
        crossed = pc.fill_null(pc.greater(low, high), False)
        if pc.any(crossed).as_py():  # damaged: neither can be trusted
            low, high = (pc.if_else(crossed, pa.scalar(None, leaf.bound_type), bound) for bound in (low, high))
    return Bounds(low, high, nulls, nans if isinstance(leaf.type, _FLOATS) else np.zeros(len(nulls), np.int64))


def _decoder(kind: PrimitiveType, *, upper: bool) -> Callable[[bytes], object]:
    """Choose how to decode "Appendix D: Single-value serialization"; bytes that don't fit the type give None.

    Types may have been promoted since: an int is stored in 4 bytes for what is a long now, and a date for a timestamp.
    """
    fill = b"\xff" if upper else b"\0"
    if isinstance(kind, StringType) and not upper:
        # Beam pads bounds with zero bytes (apache/beam#38580), which puts a lower bound above the value itself.
        return lambda value: value.rstrip(b"\0")
    if isinstance(kind, (StringType, BinaryType)):
        return lambda value: value
    if isinstance(kind, FixedType):  # cut like binary
        return lambda value: value.ljust(len(kind), fill) if len(value) <= len(kind) else None
    if isinstance(kind, UUIDType):
        # Java before Iceberg 1.11 compares both halves as signed numbers (apache/iceberg#14216). Bounds whose first
        # halves differ in sign are crossed then, and dropped; second halves are not relied on.
        return lambda value: value[:8].ljust(16, fill) if len(value) == 16 else None
    if isinstance(kind, DecimalType):
        return partial(_decimal, kind)
    return partial(_number, {struct.calcsize(form): (form, factor) for form, factor in _forms(kind)})


def _forms(kind: PrimitiveType) -> Sequence[tuple[str, int]]:
    """List the forms a fixed-width value may be stored in, each with a factor to the type's own unit."""
    if isinstance(kind, (*MICROS, *NANOS)):
        return ("<q", 1), ("<i", _DAY[_unit(kind)])
    if isinstance(kind, DoubleType):
        return ("<d", 1), ("<f", 1)
    if isinstance(kind, LongType):
        return ("<q", 1), ("<i", 1)
    one = {BooleanType: "<?", IntegerType: "<i", DateType: "<i", TimeType: "<q", FloatType: "<f"}.get(type(kind))
    return ((one, 1),) if one else ()


def _number(forms: Mapping[int, tuple[str, int]], value: bytes) -> object:
    form, factor = forms.get(len(value), ("", 1))
    if not form:
        return None
    (number,) = struct.unpack(form, value)
    if factor > 1:
        number *= factor
        return number if -(2**63) <= number < 2**63 else None
    return None if number != number else number  # noqa: PLR0124 - NaN: a bound that says nothing


def _decimal(kind: DecimalType, value: bytes) -> Decimal | None:
    unscaled = int.from_bytes(value, "big", signed=True)
    return _unscaled(kind, unscaled) if value else None


def _unscaled(kind: DecimalType, unscaled: int) -> Decimal | None:
    return Decimal(unscaled).scaleb(-kind.scale, EXACT) if abs(unscaled) < 10**kind.precision else None


def _unit(kind: PrimitiveType) -> str:
    return "ns" if isinstance(kind, NANOS) else "us" if isinstance(kind, MICROS) else "D"


# --- partitions ----------------------------------------------------------------------------------------------------


class _Known(NamedTuple):
    """What one partition value implies for its source column: a range, and whether all rows are null or NaN."""

    lower: Any = None
    upper: Any = None
    all_null: bool | None = None
    all_nan: bool | None = None


def partition_bounds(
    live: LiveFiles, specs: Mapping[int, PartitionSpec], columns: Mapping[int, IcebergLeaf]
) -> LazyBounds:
    """Return the bounds that partition values imply for their source columns.

    Files whose spec has no field of a column have null bounds and UNKNOWN counts there.
    """
    fields = {field.source_id for spec in specs.values() for field in _used(spec)}
    sources = [columns[source] for source in sorted(fields & columns.keys())]
    return LazyBounds({leaf.name: partial(_of_partitions, live, specs, leaf) for leaf in sources})


def _used(spec: PartitionSpec) -> Iterator[PartitionField]:
    kinds = (IdentityTransform, TimeTransform, TruncateTransform, BucketTransform)
    return (field for field in spec.fields if isinstance(field.transform, kinds))


def _of_partitions(live: LiveFiles, specs: Mapping[int, PartitionSpec], leaf: IcebergLeaf) -> Bounds:
    known = [_all_known(leaf, specs.get(spec_id), values) for spec_id, values in live.partitions]
    none = np.empty(len(known), np.int64)
    bounds = _bounds(leaf, [one.lower for one in known], [one.upper for one in known], none, none)
    numbers = {None: UNKNOWN, False: 0, True: 1}
    nulls = np.array([numbers[one.all_null] for one in known], np.int64)[live.partition]
    nans = np.array([numbers[one.all_nan] for one in known], np.int64)[live.partition]
    return Bounds(
        bounds.lower.take(pa.array(live.partition)),
        bounds.upper.take(pa.array(live.partition)),
        np.where(nulls == 1, live.rows, nulls),
        np.where(nans == 1, live.rows, nans) if isinstance(leaf.type, _FLOATS) else np.zeros_like(nans),
    )


def _all_known(leaf: IcebergLeaf, spec: PartitionSpec | None, values: Mapping[int, object]) -> _Known:
    """Intersect the ranges that all fields of a spec imply for a column."""
    known = _Known()
    for field in _used(spec) if spec else ():
        if field.source_id == leaf.field_id and field.field_id in values:
            one = _known(leaf, field, values[field.field_id])
            known = _Known(
                max((bound for bound in (known.lower, one.lower) if bound is not None), default=None),
                min((bound for bound in (known.upper, one.upper) if bound is not None), default=None),
                known.all_null if one.all_null is None else one.all_null,
                known.all_nan if one.all_nan is None else one.all_nan,
            )
    return known


def _known(leaf: IcebergLeaf, field: PartitionField, value: Any) -> _Known:  # noqa: ANN401
    """Invert a transform. All of them give null for null and for nothing else ("Partition Transforms")."""
    if value is None:
        return _Known(all_null=True, all_nan=False)
    if value != value:  # noqa: PLR0124 - NaN
        return _Known(all_null=False, all_nan=True)
    try:
        lower, upper = _inverse(leaf.type, field.transform, value)
        pa.array([lower, upper], leaf.bound_type)
    except (ArithmeticError, AttributeError, TypeError, ValueError):  # a value that the column's type doesn't have
        return _Known()
    return _Known(lower, upper, all_null=False, all_nan=False)


def _inverse(kind: PrimitiveType, transform: Transform[Any, Any], value: Any) -> tuple[Any, Any]:  # noqa: ANN401
    if isinstance(transform, TimeTransform):
        return _period(kind, str(transform), value)
    if isinstance(transform, TruncateTransform):
        return _truncated(kind, transform.width, value)
    exact = _plain(kind, value) if isinstance(transform, IdentityTransform) else None
    return exact, exact


def _plain(kind: PrimitiveType, value: Any) -> Any:  # noqa: ANN401
    if isinstance(kind, DecimalType):
        return _unscaled(kind, int(value.scaleb(kind.scale, EXACT)))
    return value.encode() if isinstance(value, str) else value


def _period(kind: PrimitiveType, transform: str, value: int) -> tuple[int | None, int | None]:
    """Return the first and last value of a year, month, day or hour, None where the type can't hold it."""
    unit = _unit(kind)
    first, last = value, value
    if value <= 0 and not (unit == "D" and transform == "day"):
        # Java before Iceberg 0.11 rounded towards 1970: its day 0 holds 1969-12-31 as well (apache/iceberg#1680).
        first = value - 1
    if transform == "hour":
        start, stop = first * _DAY[unit] // 24, (last + 1) * _DAY[unit] // 24
    else:
        start, stop = _days(transform, first) * _DAY[unit], _days(transform, last + 1) * _DAY[unit]
    bits = 32 if unit == "D" else 64
    if transform == "hour" and abs(value) > _NO_OVERFLOW:
        return None, None  # Java keeps 32 bits of the hours, and 2**63 microseconds have more
    if unit != "D" and value < -1:
        # Java takes the last microsecond of a period's first second, before 1970, for the period before it.
        stop += _DAY[unit] // 86_400
    return _in_bits(bits, start), _in_bits(bits, stop - 1)


def _in_bits(bits: int, number: int) -> int | None:
    """Return a number if it fits into so many signed bits."""
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def _days(transform: str, value: int) -> int:
    """Return the days from 1970 to the start of a period, in the proleptic Gregorian calendar."""
    if transform == "day":
        return value
    months = value * 12 if transform == "year" else value
    # The calendar repeats every 400 years, which keeps numpy within its range.
    cycles, months = divmod(months, 4800)
    return cycles * 146_097 + int(np.datetime64(months, "M").astype("datetime64[D]").astype(np.int64))


def _truncated(kind: PrimitiveType, width: int, value: Any) -> tuple[Any, Any]:  # noqa: ANN401
    if isinstance(kind, (IntegerType, LongType)):
        # Java's v - (((v % W) + W) % W) wraps around below the least value, and its sum may for a large W. Only the
        # first can be seen: no multiple of W comes out. The column may have been an int then, and be a long now.
        if value % width or width > _NO_OVERFLOW:
            return None, None
        bits = 32 if isinstance(kind, IntegerType) else 64
        return _in_bits(bits, value), _in_bits(bits, value + width - 1)
    if isinstance(kind, DecimalType):
        unscaled = int(value.scaleb(kind.scale, EXACT))
        return _unscaled(kind, unscaled), _unscaled(kind, unscaled + width - 1)
    if isinstance(kind, StringType):
        # Counted in UTF-16 units, of which there are never fewer than characters: a longer text is always seen.
        text = value.encode()
        return text, text + b"\xff" if len(value.encode("utf-16-le")) >= 2 * width else text
    return (
        (value, _successor(value) if len(value) >= width else value) if isinstance(kind, BinaryType) else (None, None)
    )


def _successor(prefix: bytes) -> bytes | None:
    """Return the least bytes above everything with this prefix, None where there are none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
