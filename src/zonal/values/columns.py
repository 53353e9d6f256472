"""Columns by name: dotted paths to struct leaves, and which types can be clustered by."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from zonal.errors import ColumnError, quoted, suggestion


def find(schema: pa.Schema, name: str) -> tuple[int, ...]:
    """Return the path of field positions that `name` means, or raise a `ColumnError` with the nearest name.

    A top-level column of exactly this name comes first; dots lead into structs otherwise.

    >>> find(pa.schema({"id": pa.int64(), "geo": pa.struct({"lat": pa.float64()})}), "geo.lat")
    (1, 0)
    """
    path = next(_paths(schema, name), None)
    if path is None:
        raise ColumnError(f"Unknown column {quoted(name)}. {suggestion(name, leaves(schema))}")
    if len(schema.get_all_field_indices(schema.names[path[0]])) > 1:
        raise ColumnError(f"Column {quoted(name)} is ambiguous: the data has several of that name. Rename one.")
    return path


def leaf_type(schema: pa.Schema, path: Sequence[int]) -> pa.DataType:
    """Return the type at the end of a path that `find` returned."""
    kind = schema.field(path[0]).type
    for position in path[1:]:
        kind = kind.field(position).type
    return kind


def leaf(data: pa.RecordBatch | pa.Table, path: Sequence[int]) -> pa.ChunkedArray:
    """Return the values at the end of a path; a leaf below a null struct is null."""
    column = data.column(path[0])
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for position in path[1:]:
        chunks = [pc.struct_field(chunk, [position]) for chunk in chunks]
    return pa.chunked_array(chunks, type=leaf_type(data.schema, path))


def leaves(schema: pa.Schema) -> list[str]:
    """List every column, and every struct leaf by its dotted path."""
    return [name for field in schema for name in _leaf_names(field)]


def _leaf_names(field: pa.Field) -> Iterator[str]:
    if pa.types.is_struct(field.type) and field.type.num_fields:
        yield from (f"{field.name}.{name}" for child in field.type for name in _leaf_names(child))
    else:
        yield field.name


def _paths(fields: pa.Schema | pa.StructType, name: str) -> Iterator[tuple[int, ...]]:
    """Yield the paths that `name` can mean, those with the longest first name first."""
    by_length = sorted(range(len(fields)), key=lambda i: -len(fields.field(i).name))
    for position in by_length:
        field = fields.field(position)
        if field.name == name:
            yield (position,)
        elif pa.types.is_struct(field.type) and name.startswith(field.name + "."):
            yield from ((position, *rest) for rest in _paths(field.type, name[len(field.name) + 1 :]))


def with_dictionaries(schema: pa.Schema, columns: Iterable[pa.ChunkedArray]) -> pa.Schema:
    """Return the schema with the types of those columns that are dictionary-encoded."""
    fields = [
        field.with_type(column.type) if pa.types.is_dictionary(column.type) else field
        for field, column in zip(schema, columns, strict=True)
    ]
    return pa.schema(fields, schema.metadata)
