"""Decode the bytes of Parquet's statistics to Arrow arrays of a table column's type.

In between, values are plain Python: an int (in the smallest unit of a date, time, timestamp or decimal), a float or
bytes. These compare in the order of the column's type, whatever file they come from. A value that can't be converted
soundly becomes None: no bound.
"""

import math
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from zonal.snapshot import UNKNOWN, Bounds
from zonal.values.words import plain_type

Scalar: TypeAlias = int | float | bytes
StatisticConverter: TypeAlias = Callable[[Scalar, bool], Scalar | None]
"""Converts a value of the file's type to the table's type; True rounds up, False rounds down."""

NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
DAY = 86_400
PHYSICAL = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_BARE = {
    "BOOLEAN": pa.bool_(), "INT32": pa.int32(), "INT64": pa.int64(), "INT96": pa.timestamp("ns"),
    "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "BYTE_ARRAY": pa.binary(),
}  # fmt: skip
_INTEGERS = {
    (physical, bits, signed): getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    for physical, bits in (("INT32", 8), ("INT32", 16), ("INT32", 32), ("INT64", 64))
    for signed in (True, False)
}
_TIMES = {("INT32", "ms"): pa.time32("ms"), ("INT64", "us"): pa.time64("us"), ("INT64", "ns"): pa.time64("ns")}
_NAMED = {
    **{(name, "BYTE_ARRAY"): pa.string() for name in ("STRING", "ENUM", "JSON")},
    ("BSON", "BYTE_ARRAY"): pa.binary(),
    ("DATE", "INT32"): pa.date32(),
    ("UUID", "16"): pa.uuid(),
    ("FLOAT16", "2"): pa.float16(),
    **{("UNKNOWN", physical): pa.null() for physical in PHYSICAL},
}
"""Keys are the annotation and the physical type, or the length of a FIXED_LEN_BYTE_ARRAY."""
_FORMATS = {"FLOAT": "<f", "DOUBLE": "<d"}


@dataclass(frozen=True)
class ParquetLeaf:
    """A leaf column of a Parquet file: a primitive field of its schema."""

    path: str
    index: int
    """Its number among the leaves, and so among the chunks of a row group."""
    physical: str
    """BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY."""
    kind: pa.DataType
    """The Arrow type that the annotations describe."""
    length: int
    """Bytes of a FIXED_LEN_BYTE_ARRAY."""
    field_id: int | None
    nullable: bool
    repeated: bool
    """Below a list or a map, where a row has any number of values and bounds of values say little about rows."""
    ordered: bool
    """Whether `min_value` and `max_value` are in the order of `kind`."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Undecoded statistics of one column in one unit: a row group or a page."""

    lower: bytes | None = None
    upper: bytes | None = None
    nulls: int = UNKNOWN
    nans: int = UNKNOWN


NOTHING = Statistics()


@dataclass(frozen=True)
class Annotation:
    """A logical type of the format; the name is empty for a type that this reader doesn't know."""

    name: str
    precision: int = 0
    scale: int = 0
    unit: str = ""
    utc: bool = False
    bits: int = 0
    signed: bool = True


Range: TypeAlias = tuple[Scalar | None, Scalar | None]


def ranges(leaf: ParquetLeaf | None, kind: pa.DataType, units: Iterable[Statistics]) -> list[Range]:
    """Decode the bounds of many units of one column, as values of `kind`; None where there is no sound bound."""
    kind = plain_type(kind)
    read = None if leaf is None else _reader(leaf)
    convert = None if leaf is None else _converter(plain_type(leaf.kind), kind)
    if read is None or convert is None:
        return [(None, None) for _ in units]
    fits = _fits(kind)
    return [_range(unit, read, convert, fits) for unit in units]


_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_DAYS_1900 = -25_567


def without_julian(ranges: Sequence[Range], kind: pa.DataType) -> list[Range]:
    """Drop ranges that begin before 1900, for files with dates in the Julian calendar or times on old clocks.

    Spark shifts such values by up to some days when it reads the file, and leaves later ones unchanged.
    """
    kind = plain_type(kind)
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        return list(ranges)
    first = _DAYS_1900 * (_PER_DAY[kind.unit] if pa.types.is_timestamp(kind) else 1)
    if pa.types.is_date64(kind):
        first = _DAYS_1900 * _PER_DAY["ms"]
    return [(low, high) if isinstance(low, int) and low >= first else (None, None) for low, high in ranges]


def bounds(leaf: ParquetLeaf | None, kind: pa.DataType, ranges: Sequence[Range], units: Sequence[Statistics]) -> Bounds:
    """Build arrays from ranges and counts; types other than floats have no NaN."""
    floats = pa.types.is_floating(plain_type(kind)) and (leaf is None or pa.types.is_floating(leaf.kind))
    return Bounds(
        lower=array([lower for lower, _ in ranges], kind),
        upper=array([upper for _, upper in ranges], kind),
        nulls=np.array([unit.nulls for unit in units], np.int64),
        nans=np.array([unit.nans if floats else 0 for unit in units], np.int64),
    )


def array(values: Sequence[Scalar | None], kind: pa.DataType) -> pa.Array:
    """Build an array of a column's type from values in its unit; strings give `large_binary`."""
    if isinstance(kind, pa.BaseExtensionType) and not is_text(kind):
        return pa.ExtensionArray.from_storage(kind, array(values, kind.storage_type))
    kind = plain_type(kind)
    types = pa.types
    if is_text(kind):
        return pa.array(values, pa.large_binary())
    if types.is_decimal(kind):
        return _decimals(values, kind)
    if types.is_temporal(kind) and not types.is_interval(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    if types.is_boolean(kind):
        return pa.array([None if value is None else bool(value) for value in values], kind)
    if types.is_float16(kind):
        return pa.array([None if value is None else np.float16(value) for value in values], kind)
    if types.is_nested(kind) or all(value is None for value in values):
        return pa.nulls(len(values), kind)
    return pa.array(values, kind)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type is one of Arrow's string types."""
    kind = plain_type(kind)
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def converted(number: int, precision: int, scale: int) -> Annotation:
    """Return the logical type of a ConvertedType, the deprecated enumeration (LogicalTypes.md)."""
    if 11 <= number <= 18:
        return Annotation("INTEGER", bits=8 << (number - 11) % 4, signed=number >= 15)
    names = {0: "STRING", 1: "MAP", 2: "MAP", 3: "LIST", 4: "ENUM", 6: "DATE", 19: "JSON", 20: "BSON"}
    others = {
        5: Annotation("DECIMAL", precision=precision, scale=scale),
        7: Annotation("TIME", unit="ms", utc=True),
        8: Annotation("TIME", unit="us", utc=True),
        9: Annotation("TIMESTAMP", unit="ms", utc=True),
        10: Annotation("TIMESTAMP", unit="us", utc=True),
    }
    return others.get(number) or Annotation(names.get(number, ""))


def leaf_kind(physical: str, length: int, annotation: Annotation | None) -> tuple[pa.DataType, bool]:
    """Return a column's Arrow type, and whether the format defines an order for it.

    With an annotation that is unknown or doesn't fit the physical type, it is the physical type, without an order.
    """
    bare = pa.binary(length) if physical == "FIXED_LEN_BYTE_ARRAY" else _BARE[physical]
    if annotation is None:
        return bare, physical != "INT96"
    kind = _annotated(physical, length, annotation)
    return (bare, False) if kind is None else (kind, True)


def _annotated(physical: str, length: int, annotation: Annotation) -> pa.DataType | None:
    name, unit = annotation.name, annotation.unit
    if name == "DECIMAL" and physical in ("INT32", "INT64", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        precision, scale = annotation.precision, annotation.scale
        if not 0 < precision <= 76 or not 0 <= scale <= precision:
            return None
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    if name == "INTEGER":
        return _INTEGERS.get((physical, annotation.bits, annotation.signed))
    if name == "TIMESTAMP" and physical == "INT64" and unit:
        return pa.timestamp(unit, "UTC" if annotation.utc else None)
    if name == "TIME":
        return _TIMES.get((physical, unit))
    return _NAMED.get((name, physical if physical != "FIXED_LEN_BYTE_ARRAY" else str(length)))


def trusted(leaf: ParquetLeaf, created_by: str) -> bool:
    """Tell whether the writer's minima and maxima of this column can be relied on.

    Ignored are: byte strings of parquet-mr before 1.10 and parquet-cpp before 1.3 (PARQUET-251, PARQUET-686), and
    decimals in byte strings, which need a comparison of their own: parquet-cpp under that name compared signed bytes
    (PARQUET-1655), Polars merges pages by unsigned bytes (polars#29347), and those of varying length are right only in
    parquet-mr (arrow-rs#10860).
    """
    if not leaf.physical.endswith("BYTE_ARRAY"):
        return True
    writer = re.match(r"\s*(parquet-mr|parquet-cpp) version (\d+)\.(\d+)", created_by)
    if writer and (int(writer[2][:9]), int(writer[3][:9])) < ((1, 10) if writer[1] == "parquet-mr" else (1, 3)):
        return False
    if not pa.types.is_decimal(leaf.kind):
        return True
    if leaf.physical == "BYTE_ARRAY":
        return writer is not None and writer[1] == "parquet-mr"
    return not created_by.startswith(("parquet-cpp version", "Polars"))


def _range(
    unit: Statistics,
    read: Callable[[bytes], Scalar | None],
    convert: StatisticConverter,
    fits: Callable[[Scalar], Scalar | None],
) -> Range:
    lower = None if unit.lower is None else read(unit.lower)
    upper = None if unit.upper is None else read(unit.upper)
    # A writer with a NaN in one bound has compared values with NaN, so that the other bound is wrong, too.
    if _is_nan(lower) or _is_nan(upper):
        return None, None
    if lower is not None and upper is not None and lower > upper:  # type: ignore[operator]
        return None, None  # written in another order, such as unsigned for signed
    lower = None if lower is None else convert(lower, False)
    upper = None if upper is None else convert(upper, True)
    return _zero(None if lower is None else fits(lower), -0.0), _zero(None if upper is None else fits(upper), 0.0)


def _is_nan(value: Scalar | None) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _zero(value: Scalar | None, zero: float) -> Scalar | None:
    """Make a bound of zero hold for 0.0 and -0.0, as parquet.thrift demands (ColumnOrder)."""
    return zero if isinstance(value, float) and value == 0 else value


def _reader(leaf: ParquetLeaf) -> Callable[[bytes], Scalar | None] | None:
    """Return how to decode the PLAIN bytes of a column; None for types whose order is not defined."""
    kind = plain_type(leaf.kind)
    signed = not pa.types.is_unsigned_integer(kind)
    if leaf.physical == "BOOLEAN":
        return lambda raw: raw[0] & 1 if len(raw) == 1 else None
    if leaf.physical in ("INT32", "INT64"):
        width = int(leaf.physical[3:]) // 8
        return lambda raw: int.from_bytes(raw, "little", signed=signed) if len(raw) == width else None
    if leaf.physical in _FORMATS or pa.types.is_float16(kind):
        layout = struct.Struct(_FORMATS.get(leaf.physical, "<e"))
        return lambda raw: layout.unpack(raw)[0] if len(raw) == layout.size else None
    if pa.types.is_decimal(kind):
        return lambda raw: int.from_bytes(raw, "big", signed=True) if raw else None
    if leaf.physical == "INT96":  # older writers compared its bytes, which isn't the order of its values
        return None
    return lambda raw: raw


def _converter(source: pa.DataType, target: pa.DataType) -> StatisticConverter | None:
    """Return how to convert values of a file's type to the table's type; None where no conversion is sound."""
    types = pa.types
    if types.is_integer(source):
        return _from_integer(target)
    if types.is_boolean(source):
        return _same if types.is_boolean(target) else None
    if types.is_floating(source):
        return _same if types.is_floating(target) and target.bit_width >= source.bit_width else None
    if types.is_decimal(source):
        return _from_decimal(source.scale, target)
    if types.is_date(source) and types.is_timestamp(target) and target.tz is None:
        return _scaled(DAY * NANOS["s"], NANOS[target.unit])
    if types.is_date(source) and types.is_date(target):
        return _scaled(DAY * 1000 if types.is_date64(target) else 1, 1)
    alike = types.is_time(source) and types.is_time(target)
    if types.is_timestamp(source) and types.is_timestamp(target):
        # A local time and an instant differ by an offset that only a reader knows.
        alike = (source.tz is None) == (target.tz is None)
    if alike:
        return _scaled(NANOS[source.unit], NANOS[target.unit])
    return _from_bytes(source, target)


def _from_integer(target: pa.DataType) -> StatisticConverter | None:
    if pa.types.is_integer(target):
        return _same
    return _as_float if pa.types.is_float64(target) else _from_decimal(0, target)


def _from_decimal(scale: int, target: pa.DataType) -> StatisticConverter | None:
    if not pa.types.is_decimal(target):
        return None
    shift = target.scale - scale
    return _scaled(10 ** max(shift, 0), 10 ** max(-shift, 0))


def _from_bytes(source: pa.DataType, target: pa.DataType) -> StatisticConverter | None:
    if pa.types.is_fixed_size_binary(target):
        width = target.byte_width
        if pa.types.is_fixed_size_binary(source) and source.byte_width == width:
            # A bound may be truncated; padded with zeros, it stays on its side of every value of the full width.
            return lambda value, _: bytes(value).ljust(width, b"\0") if isinstance(value, bytes) else None
        return None
    to_binary = any(test(target) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view))
    if pa.types.is_fixed_size_binary(source):
        return _same if to_binary else None
    from_bytes = pa.types.is_binary(source) or is_text(source)
    return _same if from_bytes and (to_binary or is_text(target)) else None


def _same(value: Scalar, _: bool) -> Scalar:
    return value


def _scaled(factor: int, divisor: int) -> StatisticConverter:
    def convert(value: Scalar, up: bool) -> Scalar | None:
        if not isinstance(value, int):
            return None
        return -(-value * factor // divisor) if up else value * factor // divisor

    return convert


def _as_float(value: Scalar, up: bool) -> Scalar:
    """Round outwards: engines differ in whether they compare the integer or its nearest float."""
    near = float(value)
    if int(near) != value:
        near = math.nextafter(near, math.inf if up else -math.inf)
    return near


def _fits(kind: pa.DataType) -> Callable[[Scalar], Scalar | None]:
    """Return a check that replaces values which the type can't hold by None."""
    types = pa.types
    if types.is_decimal(kind):
        least, most = 1 - 10**kind.precision, 10**kind.precision - 1
    elif types.is_unsigned_integer(kind):
        least, most = 0, 2**kind.bit_width - 1
    elif types.is_integer(kind) or (types.is_temporal(kind) and not types.is_interval(kind)):
        least, most = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    elif types.is_fixed_size_binary(kind):
        width = kind.byte_width
        return lambda value: value if isinstance(value, bytes) and len(value) == width else None
    else:
        return lambda value: value
    return lambda value: value if isinstance(value, int) and least <= value <= most else None


def _decimals(values: Sequence[Scalar | None], kind: pa.DataType) -> pa.Array:
    """Build decimals from the two's complement that Arrow stores: exact, as Python's Decimal would round."""
    width = kind.bit_width // 8
    present = np.array([value is not None for value in values], np.bool_)
    data = b"".join(int(value or 0).to_bytes(width, "little", signed=True) for value in values)
    validity = pa.py_buffer(np.packbits(present, bitorder="little").tobytes())
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(data)])
