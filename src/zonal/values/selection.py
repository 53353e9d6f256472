"""Rows taken in another order, for every Arrow type, including those for which pyarrow has no `take` kernel."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zonal.errors import ColumnError, quoted

_MOST_BYTES = 2**31 - 1
"""What the 32-bit offsets of strings and lists reach; pyarrow joins a column's chunks before it takes from them."""

Arrow = TypeVar("Arrow", bound=pa.RecordBatch | pa.Table)


def take_rows(data: Arrow, order: npt.NDArray[np.int64]) -> Arrow:
    """Return the rows of `data` in this order; schema and metadata stay as they are."""
    indices = pa.array(order)
    columns = [_take_column(field, data.column(i), indices) for i, field in enumerate(data.schema)]
    taken: Arrow = type(data).from_arrays(columns, schema=data.schema)
    return taken


def _take_column(field: pa.Field, column: pa.Array | pa.ChunkedArray, indices: pa.Array) -> pa.Array | pa.ChunkedArray:
    if not _needs_help(field.type):
        if isinstance(column, pa.ChunkedArray) and column.num_chunks > 1 and column.nbytes >= _MOST_BYTES:
            return _take_in_parts(column, indices)
        return column.take(indices)
    try:
        if isinstance(column, pa.ChunkedArray):
            return pa.chunked_array([_take(_one_chunk(column), indices)], field.type)
        return _take(column, indices)
    except pa.ArrowNotImplementedError as error:
        raise ColumnError(f"Rows of column {quoted(field.name)} ({field.type}) can't be reordered: {error}.") from None


def _take_in_parts(column: pa.ChunkedArray, indices: pa.Array) -> pa.ChunkedArray:
    """Take from each chunk by itself: together their strings or lists may have more bytes than 32-bit offsets count."""
    starts = np.cumsum([0, *map(len, column.chunks)])
    parts = []
    step = max(1, len(indices) * (_MOST_BYTES // 8) // column.nbytes)
    for first in range(0, len(indices), step):
        rows = indices.slice(first, step).to_numpy()
        home = np.searchsorted(starts, rows, side="right") - 1
        order = np.argsort(home, kind="stable")
        taken = [column.chunk(c).take(pa.array(rows[home == c] - starts[c])) for c in np.unique(home)]
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        parts.append(pa.concat_arrays(taken).take(pa.array(back)))
    return pa.chunked_array(parts, column.type)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _needs_help(kind: pa.DataType) -> bool:
    """Tell whether a view or a run-end encoding is anywhere in the type (`array_take` has no kernel for them)."""
    if isinstance(kind, pa.BaseExtensionType):
        return _needs_help(kind.storage_type)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) or pa.types.is_run_end_encoded(kind):
        return True
    return any(_needs_help(kind.field(i).type) for i in range(kind.num_fields))


def _take(array: pa.Array, indices: pa.Array) -> pa.Array:
    kind = array.type
    if not _needs_help(kind):
        return array.take(indices)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _take(array.storage, indices))
    if pa.types.is_run_end_encoded(kind):
        taken = _take(pc.run_end_decode(array), indices)
        return pc.run_end_encode(taken, run_end_type=kind.run_end_type)
    if pa.types.is_struct(kind):
        return _take_struct(array, indices)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return _take_views(array, indices)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        offsets, sizes = array.offsets.take(indices), array.sizes.take(indices)
        mask = pc.is_null(array).take(indices)
        return type(array).from_arrays(offsets, sizes, array.values, type=kind, mask=mask)
    return _take_lists(array, indices)


def _take_views(array: pa.Array, indices: pa.Array) -> pa.Array:
    """Move the views (16 bytes each); the bytes that they point to stay where they are."""
    _, views, *data = array.buffers()
    stored = np.frombuffer(views, "V16", len(array), 16 * array.offset)
    moved = pa.py_buffer(np.ascontiguousarray(stored[indices.to_numpy()]))
    valid = pc.is_valid(array).take(indices).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(array.type, len(indices), [valid, moved, *data])


def _take_struct(array: pa.StructArray, indices: pa.Array) -> pa.Array:
    fields = [array.type.field(i) for i in range(array.type.num_fields)]
    children = [_take(array.field(i), indices) for i in range(len(fields))]
    mask = pc.is_null(array).take(indices) if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _take_lists(array: pa.Array, indices: pa.Array) -> pa.Array:
    """Take lists or maps: find the elements of each row, and take those from the child array."""
    rows, kind = indices.to_numpy(), array.type
    missing = pc.is_null(array).take(indices)
    if pa.types.is_fixed_size_list(kind):
        elements = ((rows + array.offset)[:, None] * kind.list_size + np.arange(kind.list_size)).ravel()
        offsets = []
    else:
        borders = array.offsets.to_numpy()
        lengths = np.where(missing.to_numpy(zero_copy_only=False), 0, borders[rows + 1] - borders[rows])
        ends = np.cumsum(lengths)
        elements = np.repeat(borders[rows] - (ends - lengths), lengths) + np.arange(lengths.sum())
        offsets = [pa.py_buffer(np.concatenate([[0], ends]).astype(borders.dtype))]
    child = _take(array.values, pa.array(elements))
    valid = pc.invert(missing).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(kind, len(indices), [valid, *offsets], children=[child])
