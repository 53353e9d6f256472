"""Dictionary-encode columns of few values for the shuffle: rows carry indices, each payload the dictionary once.

Moving, encoding and writing an index costs a fraction of what a text does, and Parquet stores dictionary indices, too.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

MOST_VALUES = 4096
LEAST_REPEATS = 32
"""A column is dictionary-encoded if it has at most so many distinct values, each at least so often on average."""


def few_valued(rows: pa.Table) -> tuple[str, ...]:
    """Return the names of the string and binary columns that have few distinct values in these rows."""
    most = min(MOST_VALUES, rows.num_rows // LEAST_REPEATS)
    return tuple(
        field.name
        for field, column in zip(rows.schema, rows.columns, strict=True)
        if _is_text(field.type)
        and rows.schema.names.count(field.name) == 1
        and pc.count_distinct(column).as_py() <= most
    )


def with_numbers(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows with these columns dictionary-encoded, with one dictionary per column."""
    for name in names:
        at = rows.schema.get_field_index(name)
        column = rows.column(at)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        encoded = _one_array(column.unify_dictionaries())
        rows = rows.set_column(at, rows.schema.field(at).with_type(encoded.type), encoded)
    return rows


def _one_array(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Join the chunks of a column that have one dictionary."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if not column.num_chunks:
        return pa.array([], column.type)
    indices = pa.concat_arrays([chunk.indices for chunk in column.chunks])
    return pa.DictionaryArray.from_arrays(indices, column.chunk(0).dictionary)


def numbers_of(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows with the plain indices of these dictionary-encoded columns."""
    for name in names:
        at = rows.schema.get_field_index(name)
        encoded = rows.column(at).combine_chunks()
        (chunk,) = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else (encoded,)
        rows = rows.set_column(at, numbers_field(rows.schema.field(at)), chunk.indices)
    return rows


def numbers_field(field: pa.Field) -> pa.Field:
    """Return the field that holds the indices of a dictionary-encoded column."""
    return pa.field(field.name, pa.int32(), field.nullable)


def values_schema(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """Return the schema of the one row that holds the dictionary of each column as a list."""
    return pa.schema([pa.field(name, pa.list_(schema.field(name).type)) for name in names])


def values_of(rows: pa.Table, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """Return the row that holds the dictionary of each column."""
    lists = []
    for name, field in zip(names, schema, strict=True):
        values = rows.column(name).chunk(0).dictionary
        lists.append(pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values, type=field.type))
    return pa.RecordBatch.from_arrays(lists, schema=schema)


def restored(rows: pa.RecordBatch, values: pa.RecordBatch) -> pa.RecordBatch:
    """Turn the indices of these columns back into dictionary-encoded columns."""
    for name, column in zip(values.schema.names, values.columns, strict=True):
        at = rows.schema.get_field_index(name)
        encoded = pa.DictionaryArray.from_arrays(rows.column(at), column.values)
        rows = rows.set_column(at, rows.schema.field(at).with_type(encoded.type), encoded)
    return rows


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
