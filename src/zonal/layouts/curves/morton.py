"""Z-order (Morton) keys: the columns' bits interleaved, the first column's first.

Bits are spread with "magic numbers": each step moves the upper half of every group of bits to its place, so 32 bits
take five steps. The masks follow from the number of columns, so one routine serves two, three and up to eight.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from zonal.values.arrays import UInt64Array


@cache
def _steps(columns: int, bits: int) -> tuple[tuple[np.uint64, np.uint64], ...]:
    """Return one (shift, mask) per step, from the widest groups to single bits.

    Before a step of size s, groups of 2s bits stand 2s·columns apart; after it groups of s bits, s·columns apart.
    """
    steps = []
    size = 1 << (max(bits - 1, 1).bit_length() - 1)
    while size and columns > 1 and bits > 1:
        group = (1 << size) - 1
        mask = sum(group << start for start in range(0, 64, size * columns)) & (2**64 - 1)
        steps.append((np.uint64(size * (columns - 1)), np.uint64(mask)))
        size //= 2
    return tuple(steps)


def _spread(code: npt.NDArray[np.unsignedinteger], columns: int, bits: int) -> UInt64Array:
    value = code.astype(np.uint64)
    moved = np.empty_like(value)
    for shift, mask in _steps(columns, bits):
        np.left_shift(value, shift, out=moved)
        value |= moved
        value &= mask
    return value


def encode(codes: Sequence[npt.NDArray[np.unsignedinteger]], bits: int) -> UInt64Array:
    """Interleave codes of `bits` bits each into keys of at most 64 bits.

    >>> encode([np.array([0b11], np.uint32), np.array([0b01], np.uint32)], 2) == 0b1011
    array([ True])
    """
    columns = len(codes)
    key = _spread(codes[0], columns, bits)
    for code in codes[1:]:
        key <<= np.uint64(1)
        key |= _spread(code, columns, bits)
    return key
