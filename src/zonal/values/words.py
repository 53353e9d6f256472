"""Arrow values of every filterable type as unsigned 64-bit words whose order is the values' order.

A number is one word; a decimal is two or four; a string or a byte sequence is as many as it has groups of eight bytes,
the last one padded with zeros. Two values compare as their sequences of words do, so that ranks, keys and trees work
on words alone and know no types.
"""

import re
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zonal.values.arrays import IntpArray, UInt64Array

BLOCK_ROWS = 32_768
"""Rows worked on at a time: the temporary arrays of a block stay in the processor's second-level cache."""

_SIGN = np.uint64(1 << 63)
_NAN = np.uint64(0x7FF8 << 48)
_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


class Words(Protocol):
    """The words of a run of rows."""

    def at(self, depth: int, rows: IntpArray | None = None) -> UInt64Array:
        """Return word number `depth` of all rows, or of some; past a value's end it is zero."""


class FixedWords:
    """Values that all have the same number of words: one array per depth."""

    def __init__(self, *words: UInt64Array) -> None:
        self.words = words

    def at(self, depth: int, rows: IntpArray | None = None) -> UInt64Array:
        word = self.words[depth]
        return word if rows is None else word[rows]


class ByteWords:
    """Byte sequences of any length, read eight bytes at a time from Arrow's own buffer."""

    _KEEP = np.array([0, *(2**64 - (1 << (64 - 8 * count)) for count in range(1, 9))], np.uint64)

    def __init__(self, offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> None:
        self.offsets = offsets
        self.data = data if len(data) >= 8 else np.concatenate([data, np.zeros(8 - len(data), np.uint8)])
        self.every_position = np.ndarray((len(self.data) - 7,), "<u8", self.data, strides=(1,))

    def at(self, depth: int, rows: IntpArray | None = None) -> UInt64Array:
        first, end = self.offsets[:-1], self.offsets[1:]
        if rows is not None:
            first, end = first[rows], end[rows]
        start = first + 8 * depth
        last = len(self.every_position) - 1
        word = self.every_position[np.minimum(start, last)]
        word.byteswap(inplace=True)
        if len(start) and start.max() > last:  # near the buffer's end the eight bytes begin too early: shift them out
            word <<= (8 * np.clip(start - last, 0, 7)).astype(np.uint64)
        word &= self._KEEP[np.clip(end - start, 0, 8)]
        return word


def family_of(kind: pa.DataType) -> str | None:
    """Name the types whose words compare with those of `kind`; None where rows can't be ordered by it.

    >>> family_of(pa.int32()), family_of(pa.timestamp("us", "UTC")), family_of(pa.list_(pa.int8()))
    ('int', 'timestamp[us]', None)
    """
    kind = plain_type(kind)
    types = pa.types
    if types.is_uint64(kind):
        return "uint64"
    if types.is_timestamp(kind) or types.is_duration(kind):
        return f"{'timestamp' if types.is_timestamp(kind) else 'duration'}[{kind.unit}]"
    if types.is_decimal(kind):
        return f"decimal{256 if types.is_decimal256(kind) else 128}[{kind.scale}]"
    for name, tests in _SIMPLE_FAMILIES.items():
        if any(test(kind) for test in tests):
            return name
    return None


_SIMPLE_FAMILIES = {
    "null": (pa.types.is_null,),
    "int": (pa.types.is_boolean, pa.types.is_integer),
    "float": (pa.types.is_floating,),
    "date": (pa.types.is_date,),
    "time": (pa.types.is_time,),
    "bytes": (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
        pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary,
    ),
}  # fmt: skip
_SCALED = re.compile(r"(timestamp|duration)\[(\w+)\]")


def comparable(family: str, other: str) -> bool:
    """Tell whether values of one family can be turned into words of the other: equal, or times of another unit."""
    if family == other or "null" in (family, other):
        return True
    one, two = _SCALED.fullmatch(family), _SCALED.fullmatch(other)
    return one is not None and two is not None and one[1] == two[1]


def plain_array(array: pa.Array) -> pa.Array:
    """Unwrap extension types, run-end encoding and views; a dictionary keeps its indices."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        elif pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
            array = array.cast(pa.large_binary())
        else:
            return array


def decoded_array(array: pa.Array) -> pa.Array:
    """Unwrap extension types, run-end encoding, views and dictionaries."""
    array = plain_array(array)
    return plain_array(array.dictionary_decode()) if isinstance(array, pa.DictionaryArray) else array


def blocks(array: pa.ChunkedArray) -> Iterator[tuple[int, pa.Array]]:
    """Cut a column into runs of at most `BLOCK_ROWS` rows, each with the number of its first row."""
    start = 0
    for chunk in array.chunks:
        for offset in range(0, len(chunk), BLOCK_ROWS):
            yield start + offset, chunk.slice(offset, BLOCK_ROWS)
        start += len(chunk)


def validity(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return which rows hold a value, or None where all do."""
    if array.null_count == 0:
        return None
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    return _bits(array.buffers()[0], array)


def words_in(family: str) -> int:
    """Return how many words every value of a family has; "bytes" alone has any number."""
    return {"decimal128": 2, "decimal256": 4}.get(family.partition("[")[0], 1)


def words_of(array: pa.Array, family: str) -> Words:
    """Turn the values of one plain array into words of `family`; a null's words mean nothing."""
    kind = array.type
    if family == "null" or pa.types.is_null(kind):
        return FixedWords(np.zeros(len(array), np.uint64))
    if family == "bytes":
        return byte_words(array)
    if family == "float":
        return FixedWords(_float_words(array))
    if family.startswith("decimal"):
        return FixedWords(*_decimal_words(array, words_in(family)))
    if family == "uint64":
        return FixedWords(values_of(array, np.uint64))
    return FixedWords(_integers(array, family).view(np.uint64) ^ _SIGN)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Unwrap dictionaries, run-end encoding and extension types."""
    while True:
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            kind = kind.value_type
        else:
            return kind


def values_of(array: pa.Array, dtype: "npt.DTypeLike") -> npt.NDArray[Any]:
    """View the values' buffer of a fixed-width array, without a copy."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), dtype)
    return _view(buffer, dtype, len(array), array.offset)


def booleans_of(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return the values of a boolean array; below nulls they mean nothing."""
    return _bits(array.buffers()[1], array)


def _view(buffer: pa.Buffer, dtype: "npt.DTypeLike", count: int = -1, first: int = 0) -> npt.NDArray[Any]:
    """View a buffer, read-only: it is the caller's data, and a write into it would change their rows."""
    view = np.frombuffer(buffer, dtype, count, first * np.dtype(dtype).itemsize)
    view.flags.writeable = False
    return view


def _bits(buffer: pa.Buffer, array: pa.Array) -> npt.NDArray[np.bool_]:
    first = array.offset // 8
    bits = _view(buffer, np.uint8, (array.offset + len(array) + 7) // 8 - first, first)
    skip = array.offset - 8 * first
    return np.unpackbits(bits, bitorder="little")[skip : skip + len(array)].view(np.bool_)


def _integers(array: pa.Array, family: str) -> npt.NDArray[np.int64]:
    kind = array.type
    if pa.types.is_boolean(kind):
        return booleans_of(array).astype(np.int64)
    name = {"int": "u" if pa.types.is_unsigned_integer(kind) else "i"}.get(family, "i")
    values = values_of(array, f"{name}{kind.bit_width // 8}").astype(np.int64)
    if pa.types.is_date64(kind):
        values //= 86_400_000
    elif family == "time":
        values *= _NANOS[kind.unit]
    elif (scaled := _SCALED.fullmatch(family)) and scaled[2] != kind.unit:
        finer, coarser = _NANOS[scaled[2]], _NANOS[kind.unit]
        if finer > coarser:
            values //= finer // coarser
        else:
            ratio = coarser // finer
            most = (2**63 - 1) // ratio
            values = np.clip(values, -most, most) * ratio
    return values


def _float_words(array: pa.Array) -> UInt64Array:
    """Order floats as Spark and DuckDB do: -inf … -0.0 = 0.0 … inf, then NaN."""
    values = values_of(array, f"f{array.type.bit_width // 8}").astype(np.float64)
    values += 0.0  # turns -0.0 into 0.0
    bits = values.view(np.uint64)
    bits[np.isnan(values)] = _NAN
    bits ^= (bits.view(np.int64) >> 63).view(np.uint64) | _SIGN
    return bits


def _decimal_words(array: pa.Array, count: int) -> list[UInt64Array]:
    kind = array.type
    if kind.bit_width != 64 * count:
        wide = pa.decimal128 if count == 2 else pa.decimal256
        array = array.cast(wide(38 if count == 2 else 76, kind.scale))
    stored = values_of(array, f"V{8 * count}").view(np.uint64).reshape(-1, count)
    words = [stored[:, count - 1 - depth].copy() for depth in range(count)]
    words[0] ^= _SIGN
    return words


def byte_words(array: pa.Array) -> "ByteWords":
    """Return the words of texts and byte sequences, of any length or a fixed one."""
    kind = array.type
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        offsets = np.arange(array.offset, array.offset + len(array) + 1, dtype=np.int64) * width
        data = array.buffers()[1]
    else:
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        _, positions, data = array.buffers()
        if positions is None or not len(array):
            offsets = np.zeros(len(array) + 1, np.int64)
        else:
            stored = _view(positions, np.int64 if wide else np.int32, len(array) + 1, array.offset)
            offsets = stored.astype(np.int64)
    return ByteWords(offsets, _view(data, np.uint8) if data else np.zeros(0, np.uint8))
