"""Rows that are equal in every bit: null equals null, a NaN only the same NaN, and -0.0 isn't 0.0."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zonal.values.arrays import BoolArray, Int64Array
from zonal.values.checksum import list_items
from zonal.values.selection import take_rows
from zonal.values.words import booleans_of, decoded_array, family_of, validity, values_of


def equal_rows(one: pa.Table, other: pa.Table) -> BoolArray:
    """Tell for each row of two tables of the same schema and length whether it is equal to the other's.

    >>> one, other = pa.table({"a": [0.0, None, 2.0]}), pa.table({"a": [-0.0, None, 2.0]})
    >>> equal_rows(one, other)
    array([False,  True,  True])
    """
    same = np.ones(one.num_rows, np.bool_)
    if one.num_rows:
        for mine, theirs in zip(one.columns, other.columns, strict=True):
            same &= _equal(_whole(mine), _whole(theirs))
    return same


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays([decoded_array(chunk) for chunk in column.chunks])


def _equal(one: pa.Array, other: pa.Array) -> BoolArray:
    one, other = decoded_array(one), decoded_array(other)
    mine, theirs = _valid(one), _valid(other)
    same: BoolArray = mine == theirs
    if not len(one) or pa.types.is_null(one.type):
        return same
    return same & (_values_equal(one, other, mine & theirs) | ~mine)


def _valid(array: pa.Array) -> BoolArray:
    valid = validity(array)
    return np.ones(len(array), np.bool_) if valid is None else valid


def _values_equal(one: pa.Array, other: pa.Array, valid: BoolArray) -> BoolArray:
    """Compare values; what is said of rows where one of them is null means nothing."""
    kind = one.type
    if pa.types.is_struct(kind):
        same = np.ones(len(one), np.bool_)
        for number in range(kind.num_fields):
            same &= _equal(one.field(number), other.field(number))
        return same
    if kind.num_fields:  # lists and maps
        return _lists_equal(one, other, valid)
    if pa.types.is_boolean(kind):
        return np.equal(booleans_of(one), booleans_of(other))
    if family_of(kind) == "bytes":
        equal: BoolArray = pc.fill_null(pc.equal(one, other), False).to_numpy(zero_copy_only=False)
        return equal
    width = kind.bit_width // 8
    mine, theirs = (values_of(array, f"V{width}").view(np.uint8).reshape(len(one), width) for array in (one, other))
    bits: BoolArray = (mine == theirs).all(axis=1)
    return bits


def _lists_equal(one: pa.Array, other: pa.Array, valid: BoolArray) -> BoolArray:
    """Compare lists item by item, those of the same length together."""
    lengths = np.diff(_offsets(one))
    rows = np.flatnonzero(valid & (lengths == np.diff(_offsets(other))))
    mine, theirs = (_items(_whole(take_rows(pa.table({"": array}), rows).column(0))) for array in (one, other))
    wrong = np.concatenate([[0], np.cumsum(~_equal(mine, theirs))])
    ends = np.cumsum(lengths[rows])
    same = np.zeros(len(one), np.bool_)
    same[rows] = wrong[ends] == wrong[ends - lengths[rows]]
    return same


def _offsets(array: pa.Array) -> Int64Array:
    """Return where each list's items begin among all, and where the last one's end."""
    if pa.types.is_fixed_size_list(array.type):
        starts: Int64Array = (np.arange(len(array) + 1, dtype=np.int64) + array.offset) * array.type.list_size
        return starts
    offsets: Int64Array = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return offsets


def _items(array: pa.Array) -> pa.Array:
    """Return the items of lists of which none is null, in order."""
    offsets = _offsets(array)
    first, last = int(offsets[0]), int(offsets[-1])
    items = array.values if pa.types.is_fixed_size_list(array.type) else list_items(array)
    return items.slice(first, last - first)
