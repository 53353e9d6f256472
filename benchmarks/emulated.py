"""Emulate the orders in which peers put rows, each over the columns that suit it best.

Iceberg's `zorder` interleaves the first eight bytes of each column. Delta's liquid clustering orders along a Hilbert
curve over the numbers of 1,000 ranges per column, not scaled to the curve's width. Both cut files of equal size.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from zonal.layouts.curves import encode
from zonal.trials.boxes import Boxes, Coded, meets, units_of
from zonal.values.arrays import Int64Array, UInt64Array
from zonal.values.words import decoded_array, family_of, validity, words_of

RANGES, RANGE_BITS = 1000, 10
MOST_COLUMNS = 4
_TRIED = 6
"""Number of columns whose combinations are tried: those that do best alone."""


@dataclass(frozen=True, eq=False)
class Ground:
    """All rows, the sample of them, and the training queries."""

    data: pa.Table
    coded: Coded
    sample: Int64Array
    boxes: Boxes
    files: int


Keys = Callable[[Ground, Sequence[str], Int64Array], UInt64Array]
"""Returns the keys of some rows, given the columns to order by."""


def raw_bytes(ground: Ground, columns: Sequence[str], rows: Int64Array) -> UInt64Array:
    """Interleave the first eight bytes of each column; bits that all rows share are left out."""
    words = [_word(ground.data[name].take(pa.array(rows))) for name in columns]
    key, used = np.zeros(len(rows), np.uint64), 0
    for place in range(63, -1, -1):
        for word in words:
            bit = (word >> np.uint64(place)) & np.uint64(1)
            if used < 64 and bit.min() != bit.max():
                key, used = (key << np.uint64(1)) | bit, used + 1
    return key


def _word(column: pa.ChunkedArray) -> UInt64Array:
    array = decoded_array(column.combine_chunks())
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    family = family_of(array.type)
    word = words_of(array, str(family)).at(1 if family and family.startswith("decimal") else 0)
    known = validity(array)
    return word if known is None else np.where(known, word, np.uint64(0))


def range_ids(ground: Ground, columns: Sequence[str], rows: Int64Array) -> UInt64Array:
    """Encode on a Hilbert curve the numbers of ranges with about equally many rows of the sample."""
    codes = []
    for name in columns:
        values = ground.coded.codes[:, ground.coded.columns.index(name)]
        known = np.sort(values[ground.sample])
        borders = np.unique(known[np.arange(1, RANGES) * len(known) // RANGES])
        codes.append(np.searchsorted(borders, values[rows]).astype(np.uint32))
    return encode("hilbert", codes, RANGE_BITS)[0] if len(codes) > 1 else codes[0].astype(np.uint64)


def equal_cuts(rows: int, files: int) -> Int64Array:
    """Return where each file begins."""
    return np.unique(np.arange(files) * rows // files)


def best_columns(ground: Ground, names: Sequence[str], keys: Keys) -> tuple[str, ...]:
    """Choose one to four columns, by what the training queries would read of the sample."""
    singles = sorted(names, key=lambda name: _read(ground, (name,), keys))[:_TRIED]
    tried = [some for count in range(1, MOST_COLUMNS + 1) for some in combinations(singles, count)]
    return min(tried, key=lambda some: _read(ground, some, keys))


def _read(ground: Ground, columns: Sequence[str], keys: Keys) -> float:
    order = ground.sample[np.argsort(keys(ground, columns, ground.sample), kind="stable")]
    units = units_of(ground.coded, order, equal_cuts(len(order), ground.files))
    return float(units.rows @ meets(units, ground.boxes).mean(axis=1))


def order_by(ground: Ground, columns: Sequence[str], keys: Keys) -> Int64Array:
    """Return all rows in the order of their keys."""
    rows = np.arange(ground.data.num_rows)
    return np.argsort(keys(ground, columns, rows), kind="stable")
