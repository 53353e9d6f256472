"""Build nulls of nested types that Arrow's writers take: a required field below a null struct must have a value."""

import pyarrow as pa
from pyarrow import types


def missing(rows: int, kind: pa.DataType) -> pa.Array:
    """Return `rows` nulls; Parquet's writer refuses those of `pa.nulls` where a struct has required fields."""
    if not types.is_struct(kind) or not kind.num_fields:
        return pa.nulls(rows, kind)
    children = [missing(rows, field.type) for field in kind]
    filled = [child if field.nullable else without_nulls(child) for child, field in zip(children, kind, strict=True)]
    return pa.Array.from_buffers(kind, rows, [pa.py_buffer(bytes((rows + 7) // 8))], rows, children=filled)


def without_nulls(array: pa.Array) -> pa.Array:
    """Return the array without its validity bitmap: nulls become the values stored below them."""
    kind = array.type
    if not array.null_count:
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, without_nulls(array.storage))
    if types.is_struct(kind):
        children = [array.field(i) for i in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(array), [None], 0, children=children)
    if types.is_nested(kind):
        return pa.Array.from_buffers(kind, len(array), [None, *array.buffers()[1:2]], 0, array.offset, [array.values])
    return pa.Array.from_buffers(kind, len(array), [None, *array.buffers()[1:]], 0, array.offset)


def empty(schema: pa.Schema) -> pa.Table:
    """Return a table without rows; `Schema.empty_table` has none for lists of extension types."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
