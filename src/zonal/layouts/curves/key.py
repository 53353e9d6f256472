"""Keys of every curve, as one or two sortable 64-bit words, computed in blocks that stay in the cache."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from zonal.errors import LayoutError, suggestion
from zonal.layouts.curves import hilbert, linear, morton
from zonal.layouts.layout import CURVES, MAX_COLUMNS, most_bits
from zonal.values.arrays import UInt64Array
from zonal.values.words import BLOCK_ROWS

_SIGN = np.uint64(1 << 63)


def encode(kind: str, codes: Sequence[npt.NDArray[np.unsignedinteger]], bits: int) -> tuple[UInt64Array, ...]:
    """Return the keys of rows with these codes: one word up to 64 bits, else two, the more significant first.

    Sorted by their words, the first word first, rows are in the order of the curve.

    >>> corners = [np.array([0, 0, 1, 1], np.uint32), np.array([0, 1, 1, 0], np.uint32)]
    >>> encode("hilbert", corners, 1)
    (array([0, 1, 2, 3], dtype=uint64),)
    """
    _check(kind, len(codes), bits)
    rows = len(codes[0])
    words = tuple(np.empty(rows, np.uint64) for _ in range(_words(len(codes), bits)))
    for start in range(0, rows, BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        for word, part in zip(words, _encode_block(kind, [code[block] for code in codes], bits), strict=True):
            word[block] = part
    return words


def to_signed(word: UInt64Array) -> npt.NDArray[np.int64]:
    """Return signed integers of the same order: Spark has no unsigned ones.

    >>> to_signed(np.array([0, 2**64 - 1], np.uint64))
    array([-9223372036854775808,  9223372036854775807])
    """
    return (word ^ _SIGN).view(np.int64)


def _words(columns: int, bits: int) -> int:
    return 1 if columns * bits <= 64 else 2


def _check(kind: str, columns: int, bits: int) -> None:
    if kind not in CURVES:
        raise LayoutError(f"Unknown curve {kind!r}. {suggestion(kind, CURVES)}")
    if not 1 <= columns <= MAX_COLUMNS:
        raise LayoutError(f"A key takes 1 to {MAX_COLUMNS} columns, not {columns}.")
    if not 1 <= bits <= most_bits(columns):
        raise LayoutError(f"A key of {columns} columns takes 1 to {most_bits(columns)} bits per column, not {bits}.")


def _encode_block(kind: str, codes: Sequence[npt.NDArray[np.unsignedinteger]], bits: int) -> tuple[UInt64Array, ...]:
    if kind == "linear":
        return linear.encode(codes, bits)[2 - _words(len(codes), bits) :]
    if kind == "hilbert":
        codes = hilbert.to_transposed(codes, bits)
    if _words(len(codes), bits) == 1:
        return (morton.encode(codes, bits),)
    low = 64 // len(codes)  # the first word interleaves the upper bits of the codes, the second the lower ones
    lower = [code & code.dtype.type((1 << low) - 1) for code in codes]
    upper = [code >> code.dtype.type(low) for code in codes]
    return morton.encode(upper, bits - low), morton.encode(lower, low)
