"""Order rows inside their row groups so that they take few bytes: the order there changes no statistics.

The columns of an order become one 64-bit word per row, with the number of its row group in the highest bits. Columns
for which no bits are left don't count, and rows that are equal in all others stay in the key's order.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from zonal.layouts.sort import stable_order
from zonal.values.arrays import BoolArray, Int64Array, UInt64Array
from zonal.values.columns import find, leaf
from zonal.values.words import decoded_array, family_of, validity, words_in, words_of

_WORD = 64
_SIGN, _HIGHEST = np.uint64(1 << 63), np.uint64(2**64 - 1)


class Codes(NamedTuple):
    """A number for each row, and how many bits it takes."""

    values: UInt64Array
    bits: int


def sorted_inside(order: Int64Array, starts: Sequence[int], data: pa.Table, columns: Sequence[str]) -> Int64Array:
    """Sort the row numbers in `order` by these columns inside of each row group; `starts` says where those begin.

    Every row stays in its row group.
    """
    sizes = np.diff([*starts, len(order)])
    free = _WORD - max(len(order) - 1, 0).bit_length() - (len(sizes) - 1).bit_length()
    word, used = np.zeros(len(order), np.uint64), 0
    for codes in _codes(data, columns):
        if used + codes.bits <= free:
            word = word << np.uint64(codes.bits) | codes.values
            used += codes.bits
    groups = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes) << np.uint64(used)
    return order[stable_order([groups | word[order]])]


def is_sortable(kind: pa.DataType) -> bool:
    """Tell whether rows can be sorted inside of a row group by a type: numbers and times, or any with a dictionary."""
    if pa.types.is_dictionary(kind):
        return True
    family = family_of(kind)
    return family not in (None, "null", "bytes") and not pa.types.is_decimal256(kind)


def _codes(data: pa.Table, columns: Iterable[str]) -> Iterator[Codes]:
    for name in columns:
        column = leaf(data, find(data.schema, name))
        if is_sortable(column.type):
            yield _numbered(column)


def _numbered(column: pa.ChunkedArray) -> Codes:
    """Number a column's values, equal ones alike and nulls as 0: by their order, or as its dictionary has them."""
    if pa.types.is_dictionary(column.type):
        parts = [
            chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy() + 1 for chunk in column.unify_dictionaries().chunks
        ]
        return _counted(np.concatenate(parts).astype(np.uint64) if parts else np.zeros(0, np.uint64))
    family = str(family_of(column.type))
    chunks = [decoded_array(chunk) for chunk in column.chunks]
    values = np.concatenate([np.zeros(0, np.uint64), *(_last_word(chunk, family) for chunk in chunks)])
    known = np.concatenate([np.zeros(0, np.bool_), *(_known(chunk) for chunk in chunks)])
    low = values[known].min(initial=_HIGHEST)
    return _counted(np.where(known, values - low + np.uint64(1), np.uint64(0)))


def _last_word(array: pa.Array, family: str) -> UInt64Array:
    """Return a value's last word, by which values are told apart; few decimals need more than 64 bits."""
    word = words_of(array, family).at(words_in(family) - 1)
    return word ^ _SIGN if family.startswith("decimal") else word


def _known(array: pa.Array) -> BoolArray:
    valid = validity(array)
    return np.ones(len(array), np.bool_) if valid is None else valid


def _counted(values: UInt64Array) -> Codes:
    return Codes(values, int(values.max(initial=0)).bit_length())
