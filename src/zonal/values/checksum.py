"""A checksum of rows that doesn't depend on their order: equal before and after a rewrite, unless a value changed.

Each row is hashed to 64 bits, every value together with its column, and the hashes are added up. Rows that are lost,
doubled or changed, and values that moved to another row, change the sum, but for a chance of 2^-64. It detects
accidents, and is no protection against rows that are forged to fit.
"""

import itertools
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zonal.values.arrays import Int64Array, UInt64Array
from zonal.values.words import ByteWords, booleans_of, byte_words, family_of, plain_array, validity, values_of

MODULUS = 2**64
_STEP = 0x9E3779B97F4A7C15
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_PARTITION = np.uint64(0xE7037ED1A0B428DB)
_NULL = np.uint64(0xD6E8FEB86659FD93)
_LENGTH = np.uint64(0xA0761D6478BD642F)
_BLOCK_ROWS = 8192
"""Rows worked on at a time: their temporary arrays are small enough to be reused instead of being mapped anew."""
_KEPT = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
_MOST_TOGETHER, _STEPS = 8, (16, 32, 64)
"""How many words of each text are read for all rows at once, then for the longer texts; the rest is read one by one."""


def row_checksum(data: pa.Table | pa.RecordBatch, partition: Int64Array | int = 0) -> int:
    """Return the checksum of rows, each in a partition; the checksum of two sets together is their sum modulo 2^64.

    >>> table = pa.table({"a": [1, 2, 2], "b": ["x", "y", None]})
    >>> row_checksum(table) == row_checksum(table.take([2, 0, 1]))
    True
    >>> row_checksum(table) == row_checksum(table.set_column(1, "b", pa.array(["y", "x", None])))
    False
    """
    return sum(int(block.sum(dtype=np.uint64)) + len(block) for block in _hash_blocks(data, partition)) % MODULUS


def row_hashes(data: pa.Table, partition: int = 0) -> UInt64Array:
    """Return one number per row: equal rows, bit by bit and null by null, have equal ones.

    >>> hashes = row_hashes(pa.table({"a": [1, 2, 1], "b": [None, "y", None]}))
    >>> hashes[0] == hashes[2], hashes[0] == hashes[1]
    (np.True_, np.False_)
    """
    return np.concatenate([np.empty(0, np.uint64), *_hash_blocks(data, partition)])


def _hash_blocks(data: pa.Table | pa.RecordBatch, partition: Int64Array | int) -> Iterator[UInt64Array]:
    """Yield the hashes of some rows at a time, in order."""
    table = data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
    parts = np.full(table.num_rows, partition, np.uint64) if isinstance(partition, int) else partition.view(np.uint64)
    start = 0
    scratch = np.empty(_BLOCK_ROWS, np.uint64)
    for batch in table.to_batches():
        columns = [_blocks(plain_array(column)) for column in batch.columns]
        for first in range(0, batch.num_rows, _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, batch.num_rows)
            rows = parts[start + first : start + last] * _PARTITION
            for number, column in enumerate(columns):
                rows += _scaled(column(first, last), _factor(number), scratch)
            yield _mixed(rows)
        start += batch.num_rows


def _scaled(numbers: UInt64Array, factor: np.uint64, scratch: UInt64Array) -> UInt64Array:
    """Fold the upper half of each word into the lower one and multiply by a factor, in reused memory.

    The highest bit of a product with an odd number doesn't depend on the factor: without folding, two changes of it
    in different columns would cancel each other.
    """
    scaled = scratch[: len(numbers)]
    if numbers.itemsize == 8:
        np.right_shift(numbers, np.uint64(32), out=scaled)
        np.bitwise_xor(scaled, numbers, out=scaled)
    else:
        scaled[:] = numbers
    return np.multiply(scaled, factor, out=scaled)


def _blocks(array: pa.Array) -> Callable[[int, int], UInt64Array]:
    """Return a function that gives the numbers of the values in a range of rows."""
    if isinstance(array, pa.DictionaryArray):
        known = _values(array.dictionary)
        return lambda first, last: _numbered(array.slice(first, last - first), known)
    if not array.null_count and _is_word(array.type):
        words = values_of(array, f"u{array.type.bit_width // 8}")
        return lambda first, last: words[first:last]
    return lambda first, last: _values(array.slice(first, last - first))


def _is_word(kind: pa.DataType) -> bool:
    """Tell whether a type has a fixed width of at most eight bytes."""
    return pa.types.is_primitive(kind) and not pa.types.is_boolean(kind) and kind.bit_width <= 64


@lru_cache(maxsize=1024)
def _factor(number: int) -> np.uint64:
    """Return an odd factor for the column, or the word of a value, with this number."""
    mixed = (number + 1) * _STEP % MODULUS
    mixed = (mixed ^ mixed >> 31) * int(_MIX) % MODULUS
    return np.uint64(mixed | 1)


def _mixed(numbers: UInt64Array) -> UInt64Array:
    """Spread each number over all 64 bits, in place."""
    numbers ^= numbers >> np.uint64(32)
    numbers *= _MIX
    numbers ^= numbers >> np.uint64(29)
    return numbers


def _values(array: pa.Array) -> UInt64Array:
    """Return one number per value, in an array that may be the caller's data."""
    array = plain_array(array)
    kind = array.type
    if isinstance(array, pa.DictionaryArray):
        return _numbered(array, _values(array.dictionary))
    if pa.types.is_null(kind):
        return np.full(len(array), _NULL)
    return _with_nulls(_stored(array), validity(array))


def _numbered(array: pa.DictionaryArray, known: UInt64Array) -> UInt64Array:
    """Return one number per value of a dictionary array, given the numbers of its dictionary."""
    if not len(known):
        return np.full(len(array), _NULL)
    indices = array.indices if not array.indices.null_count else array.indices.fill_null(0)
    return _with_nulls(known[indices.to_numpy()], validity(array.indices))


def _with_nulls(numbers: UInt64Array, valid: npt.NDArray[np.bool_] | None) -> UInt64Array:
    """Give nulls a number of their own, whatever bytes are stored for them."""
    return numbers if valid is None else np.where(valid, numbers, _NULL)


def _stored(array: pa.Array) -> UInt64Array:
    kind = array.type
    if pa.types.is_struct(kind):
        return _struct(array)
    if pa.types.is_fixed_size_list(kind):
        starts = (np.arange(len(array) + 1, dtype=np.int64) + array.offset) * kind.list_size
        return _lists(starts, array.values)
    if kind.num_fields:  # lists and maps
        return _lists(np.array(array.offsets.to_numpy(zero_copy_only=False), np.int64), list_items(array))
    if pa.types.is_boolean(kind):
        return booleans_of(array).astype(np.uint64)
    if family_of(kind) == "bytes":
        return _bytes(byte_words(array))
    width = kind.bit_width // 8
    if width <= 8:
        stored: UInt64Array = values_of(array, f"u{width}")
        return stored if width == 8 else stored.astype(np.uint64)
    parts = values_of(array, f"V{width}").view(np.uint64).reshape(len(array), width // 8)
    return _combined([parts[:, part] for part in range(width // 8)])


def _combined(words: list[UInt64Array]) -> UInt64Array:
    scratch = np.empty(len(words[0]), np.uint64)
    numbers = np.zeros(len(words[0]), np.uint64)
    for depth, word in enumerate(words):
        numbers += _scaled(word, _factor(depth), scratch)
    return _mixed(numbers)


def _struct(array: pa.StructArray) -> UInt64Array:
    children = [_values(array.field(number)) for number in range(array.type.num_fields)]
    return _combined(children) if children else np.zeros(len(array), np.uint64)


def list_items(array: pa.Array) -> pa.Array:
    """Return the items that the offsets of lists or maps count; a map's are structs of key and value."""
    if pa.types.is_map(array.type):
        return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    return array.values


def _lists(offsets: npt.NDArray[np.int64], items: pa.Array) -> UInt64Array:
    """Add up the items of each list, each multiplied by a factor of its position."""
    first, last = int(offsets[0]), int(offsets[-1])
    numbers = _mixed(_values(items.slice(first, last - first)).copy())
    lengths = np.diff(offsets)
    place = np.arange(first, last, dtype=np.int64) - np.repeat(offsets[:-1], lengths)
    numbers *= (place.astype(np.uint64) << np.uint64(1)) | np.uint64(1)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(numbers, dtype=np.uint64)])
    return _mixed(sums[offsets[1:] - first] - sums[offsets[:-1] - first] + lengths.astype(np.uint64) * _LENGTH)


def _bytes(words: ByteWords) -> UInt64Array:
    """Read eight bytes of each text at a time, and take the CRC-32 of what is left of very long ones."""
    first, last = int(words.offsets[0]), int(words.offsets[-1])
    data = np.zeros((last - first) // 8 * 8 + 16, np.uint8)
    data[: last - first] = words.data[first:last]
    starts, lengths = words.offsets[:-1] - first, np.diff(words.offsets)
    numbers = lengths.astype(np.uint64) * _LENGTH
    longest = -(-int(lengths.max(initial=0)) // 8)
    _add_words(numbers, data, starts, lengths, range(min(longest, _MOST_TOGETHER)))
    for begin, end in itertools.pairwise((_MOST_TOGETHER, *_STEPS)):
        left = np.flatnonzero(lengths > 8 * begin)
        if not len(left):
            return _mixed(numbers)
        some = numbers[left]
        _add_words(some, data, starts[left], lengths[left], range(begin, min(end, longest)))
        numbers[left] = some
    left = np.flatnonzero(lengths > 8 * _STEPS[-1])
    rest, ends = (starts[left] + 8 * _STEPS[-1]).tolist(), (starts[left] + lengths[left]).tolist()
    sums = [zlib.crc32(data[start:end].data) for start, end in zip(rest, ends, strict=True)]
    numbers[left] += np.array(sums, np.uint64) * _factor(_STEPS[-1])
    return _mixed(numbers)


def _add_words(
    numbers: UInt64Array, data: npt.NDArray[np.uint8], starts: Int64Array, lengths: Int64Array, depths: range
) -> None:
    """Add some words of each text, padded with zeros; each word is put together from two aligned ones."""
    aligned = data.view("<u8")
    bits = (starts.view(np.uint64) & np.uint64(7)) * np.uint64(8)
    rest = np.uint64(63) - bits
    scratch = np.empty(len(numbers), np.uint64)
    at = (starts >> 3) + depths.start
    left = lengths - 8 * depths.start
    here = aligned.take(at, mode="clip")
    for depth in depths:
        at += 1
        following = aligned.take(at, mode="clip")
        word = here >> bits
        word |= (following << rest) << np.uint64(1)
        word &= _KEPT.take(left, mode="clip")
        numbers += _scaled(word, _factor(depth), scratch)
        here = following
        left -= 8
