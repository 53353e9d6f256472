"""Partition values of rows, by the transforms of Iceberg's specification; identity is Delta's only one.

Workers have no PyIceberg, so the transforms are computed here, over whole columns.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from zonal.errors import ColumnError
from zonal.plan.append import PartitionField
from zonal.values.arrays import Int64Array, UInt8Array, UInt32Array

_MICROS_PER_HOUR = 3_600_000_000
_MICROS_PER_DAY = 24 * _MICROS_PER_HOUR


def partition_values(rows: pa.Table, field: PartitionField) -> pa.Array:
    """Return the partition value of each row, null for a null.

    >>> rows = pa.table({"name": ["iceberg", None]})
    >>> partition_values(rows, PartitionField((0,), "bucket", 100)).to_pylist()
    [89, None]
    """
    values = _source(rows, field.column)
    if field.transform == "identity":
        return values
    if field.transform == "void":
        return pa.nulls(len(values), values.type)
    if field.transform == "truncate":
        return _truncated(values, field.width)
    if field.transform == "bucket":
        return _where_valid(values, _hashes(values) % np.int64(field.width))
    return _where_valid(values, _PERIODS[field.transform](values))


def _source(rows: pa.Table, path: tuple[int, ...]) -> pa.Array:
    column = rows.column(path[0])
    for position in path[1:]:
        column = pc.struct_field(column, [position])
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _where_valid(values: pa.Array, result: Int64Array) -> pa.Array:
    missing = values.is_null().to_numpy(zero_copy_only=False)
    return pa.array(result.astype(np.int32), pa.int32(), mask=missing)


def _integers(values: pa.Array) -> Int64Array:
    """Return integers, days or microseconds as 64-bit numbers; 0 for a null."""
    stored = values
    if types.is_timestamp(stored.type) and stored.type.unit != "us":
        stored = stored.cast(pa.timestamp("us", stored.type.tz))
    if types.is_temporal(stored.type):
        stored = stored.view(pa.int32() if stored.type.bit_width == 32 else pa.int64())
    numbers: Int64Array = pc.fill_null(stored.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return numbers


# --- time ------------------------------------------------------------------------------------------------------------


def _days(values: pa.Array) -> Int64Array:
    numbers = _integers(values)
    return numbers if types.is_date(values.type) else numbers // _MICROS_PER_DAY


def _months(values: pa.Array) -> Int64Array:
    return _days(values).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _years(values: pa.Array) -> Int64Array:
    return _days(values).astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64)


def _hours(values: pa.Array) -> Int64Array:
    return _integers(values) // _MICROS_PER_HOUR


_PERIODS: Mapping[str, Callable[[pa.Array], Int64Array]] = {
    "year": _years,
    "month": _months,
    "day": _days,
    "hour": _hours,
}


# --- truncate --------------------------------------------------------------------------------------------------------


def _truncated(values: pa.Array, width: int) -> pa.Array:
    """Round numbers down to a multiple of the width; cut texts to so many characters, and binary to so many bytes."""
    kind = values.type
    if types.is_string(kind) or types.is_large_string(kind):
        return pc.utf8_slice_codeunits(values, 0, width)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return pc.binary_slice(values, 0, width)
    if types.is_decimal(kind):
        known = values.unique()
        cut = pa.array([None if one is None else _floor(one, width, kind.scale) for one in known.to_pylist()], kind)
        return cut.take(pc.index_in(values, known))
    if types.is_integer(kind):
        numbers = _integers(values)
        cut = (numbers - numbers % width).astype(kind.to_pandas_dtype())  # below the least number, as in Java, it wraps
        return pa.array(cut, kind, mask=values.is_null().to_numpy(zero_copy_only=False))
    raise ColumnError(f"A column of type {kind} can't be truncated.")


def _floor(number: "pa.Decimal128Scalar", width: int, scale: int) -> object:
    unscaled = int(number.scaleb(scale))
    return type(number)(unscaled - unscaled % width).scaleb(-scale)


# --- bucket ----------------------------------------------------------------------------------------------------------


def _hashes(values: pa.Array) -> Int64Array:
    """Return the 32-bit Murmur3 hash of each value without its sign bit ("Appendix B: 32-bit Hash Requirements")."""
    kind = values.type
    if types.is_integer(kind) or types.is_temporal(kind):
        numbers = _integers(values)
        data, lengths = numbers.astype("<i8").view(np.uint8), np.full(len(numbers), 8, np.int64)
    else:
        data, lengths = _bytes(values)
    return (_murmur3(data, lengths) & np.uint32(0x7FFFFFFF)).astype(np.int64)


def _bytes(values: pa.Array) -> tuple[UInt8Array, Int64Array]:
    """Return the bytes of all values one after the other, and the length of each; a null has none."""
    kind = values.type
    if types.is_decimal(kind):
        texts = [None if one is None else _two_complement(int(one.scaleb(kind.scale))) for one in values.to_pylist()]
        values = pa.array(texts, pa.large_binary())
    plain = pc.fill_null(values.cast(pa.large_binary()), b"")
    if len(plain) == 0:
        return np.zeros(0, np.uint8), np.zeros(0, np.int64)
    offsets = np.frombuffer(plain.buffers()[1], np.int64)[plain.offset : plain.offset + len(plain) + 1]
    held = plain.buffers()[2]
    data = np.zeros(0, np.uint8) if held is None else np.frombuffer(held, np.uint8)[offsets[0] : offsets[-1]]
    return data, np.diff(offsets)


def _two_complement(number: int) -> bytes:
    """Return the shortest big-endian form of a number.

    >>> _two_complement(1420).hex(), _two_complement(-1).hex(), _two_complement(128).hex()
    ('058c', 'ff', '0080')
    """
    bits = number.bit_length() if number >= 0 else (number + 1).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _murmur3(data: UInt8Array, lengths: Int64Array) -> UInt32Array:
    """Return the Murmur3 hash (x86, 32 bits, seed 0) of many values at once.

    All values are hashed block by block, longest first, so that those that have a block are always in front.
    """
    order = np.argsort(-lengths, kind="stable")
    starts = (np.cumsum(lengths) - lengths)[order]
    sizes = lengths[order]
    padded = np.concatenate([data, np.zeros(4, np.uint8)])
    hashes = np.zeros(len(lengths), np.uint32)
    blocks = sizes // 4
    with np.errstate(over="ignore"):
        for block in range(int(blocks.max(initial=0))):
            having = int(np.searchsorted(-blocks, -block, side="left"))
            hashes[:having] ^= _mixed(_words(padded, starts[:having] + 4 * block))
            hashes[:having] = _rotated(hashes[:having], 13) * np.uint32(5) + np.uint32(0xE6546B64)
        tails = sizes % 4
        rest = _words(padded, starts + 4 * blocks) & _MASKS[tails]
        hashes ^= np.where(tails > 0, _mixed(rest), np.uint32(0))
        hashes ^= sizes.astype(np.uint32)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            hashes = (hashes ^ (hashes >> np.uint32(shift))) * np.uint32(factor)
        hashes ^= hashes >> np.uint32(16)
    unsorted = np.empty_like(hashes)
    unsorted[order] = hashes
    return unsorted


_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)
"""The bytes that a word behind the last block has, by their number."""


def _words(data: UInt8Array, starts: Int64Array) -> UInt32Array:
    """Return the little-endian words that begin at these bytes."""
    words = np.zeros(len(starts), np.uint32)
    for at in range(4):
        words |= data[starts + at].astype(np.uint32) << np.uint32(8 * at)
    return words


def _mixed(words: UInt32Array) -> UInt32Array:
    mixed: UInt32Array = _rotated(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return mixed


def _rotated(words: UInt32Array, bits: int) -> UInt32Array:
    rotated: UInt32Array = (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
    return rotated
