"""Columns of few values on their way: a row carries the number of its value, and a payload the values once.

Moving, encoding and writing a number costs a fraction of what a text does; Parquet's dictionaries store them so, too.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

MOST_VALUES = 4096
LEAST_REPEATS = 32
"""A column is worth numbers if it has at most so many values, each so often on average."""


def few_valued(some: pa.Table) -> tuple[str, ...]:
    """Name the columns of texts and bytes that have few values in these rows."""
    most = min(MOST_VALUES, some.num_rows // LEAST_REPEATS)
    return tuple(
        field.name
        for field, column in zip(some.schema, some.columns, strict=True)
        if _is_text(field.type)
        and some.schema.names.count(field.name) == 1
        and pc.count_distinct(column).as_py() <= most
    )


def with_numbers(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows with dictionaries in these columns, one a column."""
    for name in names:
        at = rows.schema.get_field_index(name)
        column = rows.column(at).combine_chunks()
        whole = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
        encoded = whole.dictionary_encode()
        rows = rows.set_column(at, rows.schema.field(at).with_type(encoded.type), encoded)
    return rows


def numbers_of(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows with numbers instead of the dictionaries of these columns."""
    for name in names:
        at = rows.schema.get_field_index(name)
        numbers = rows.column(at).combine_chunks()
        (chunk,) = numbers.chunks if isinstance(numbers, pa.ChunkedArray) else (numbers,)
        rows = rows.set_column(at, numbers_field(rows.schema.field(at)), chunk.indices)
    return rows


def numbers_field(field: pa.Field) -> pa.Field:
    """Return what stands for a column in rows with numbers."""
    return pa.field(field.name, pa.int32(), field.nullable)


def values_schema(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Return the schema of the one row that has the values of each column in a list."""
    return pa.schema([pa.field(name, pa.list_(schema.field(name).type)) for name in names])


def values_of(rows: pa.Table, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """Return the row with the values of each column."""
    lists = []
    for name, field in zip(names, schema, strict=True):
        values = rows.column(name).chunk(0).dictionary
        lists.append(pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values, type=field.type))
    return pa.RecordBatch.from_arrays(lists, schema=schema)


def restored(rows: pa.RecordBatch, values: pa.RecordBatch) -> pa.RecordBatch:
    """Put dictionaries of these values in the place of numbers."""
    for name, column in zip(values.schema.names, values.columns, strict=True):
        at = rows.schema.get_field_index(name)
        found = pa.DictionaryArray.from_arrays(rows.column(at), column.values)
        rows = rows.set_column(at, rows.schema.field(at).with_type(found.type), found)
    return rows


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
