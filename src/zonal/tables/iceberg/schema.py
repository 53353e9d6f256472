"""Convert an Arrow schema to that of a new Iceberg table; a column whose values don't fit is refused by name."""

from collections.abc import Iterator, Sequence
from itertools import count

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from zonal.errors import TableError, quoted

_SIMPLE: dict[pa.DataType, IcebergType] = {
    pa.bool_(): BooleanType(),
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), IntegerType()),
    **dict.fromkeys((pa.int64(), pa.uint32()), LongType()),
    **dict.fromkeys((pa.float16(), pa.float32()), FloatType()),
    pa.float64(): DoubleType(),
    pa.date32(): DateType(),
    **dict.fromkeys((pa.time32("s"), pa.time32("ms"), pa.time64("us")), TimeType()),
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), StringType()),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), BinaryType()),
    pa.uuid(): UUIDType(),
}


def new_schema(schema: pa.Schema) -> Schema:
    """Convert a schema; all columns are optional, and the ids are provisional: the catalog assigns its own."""
    numbers = count(1)
    converted = Schema(*_fields(list(schema), "", numbers))
    try:
        converted.find_type(1)
        _ = converted.column_names
    except ValueError as error:  # `a.b` and a field `b` of `a`
        raise TableError(f"Iceberg can't tell these columns apart: {quoted(str(error), limit=200)}") from None
    return converted


def _fields(fields: Sequence[pa.Field], above: str, numbers: Iterator[int]) -> list[NestedField]:
    seen: set[str] = set()
    converted = []
    for field in fields:
        if field.name in seen or not field.name:
            raise TableError(f"Iceberg can't have several columns called {quoted(above + field.name)}. Rename one.")
        seen.add(field.name)
        number = next(numbers)
        kind = _type(field.type, above + field.name, numbers)
        converted.append(NestedField(number, field.name, kind, required=False))
    return converted


def _type(kind: pa.DataType, path: str, numbers: Iterator[int]) -> IcebergType:
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type, path, numbers)
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        return TimestamptzType() if kind.tz else TimestampType()
    if pa.types.is_fixed_size_binary(kind):
        return FixedType(kind.byte_width)
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return DecimalType(kind.precision, kind.scale)
    if pa.types.is_struct(kind) and kind.num_fields:
        return StructType(*_fields(list(kind), f"{path}.", numbers))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        number = next(numbers)
        return ListType(number, _type(kind.value_type, f"{path}.element", numbers), element_required=False)
    if pa.types.is_map(kind):
        key, value = next(numbers), next(numbers)
        return MapType(
            key,
            _type(kind.key_type, f"{path}.key", numbers),
            value,
            _type(kind.item_type, f"{path}.value", numbers),
            value_required=False,
        )
    raise TableError(
        f"Column {quoted(path)} has the type {kind}, which Iceberg doesn't have. Convert or leave out the column first."
    )
