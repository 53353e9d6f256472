"""Linear keys: the columns' bits one behind the other, as a plain sort orders them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from zonal.values.arrays import UInt64Array


def encode(codes: Sequence[npt.NDArray[np.unsignedinteger]], bits: int) -> tuple[UInt64Array, UInt64Array]:
    """Concatenate codes of `bits` bits each into the high and the low word of keys of at most 128 bits.

    >>> encode([np.array([2], np.uint32), np.array([3], np.uint32)], 4)[1] == 0x23
    array([ True])
    """
    high, low = np.zeros(len(codes[0]), np.uint64), np.zeros(len(codes[0]), np.uint64)
    for code, place in zip(codes, _places(len(codes), bits), strict=True):
        wide = code.astype(np.uint64)
        if place < 64:
            low |= wide << np.uint64(place)
        if place + bits > 64:
            high |= wide << np.uint64(place - 64) if place >= 64 else wide >> np.uint64(64 - place)
    return high, low


def decode(high: UInt64Array, low: UInt64Array, columns: int, bits: int) -> list[UInt64Array]:
    """Return the codes of each column."""
    mask = np.uint64((1 << bits) - 1)
    codes = []
    for place in _places(columns, bits):
        code = low >> np.uint64(place) if place < 64 else high >> np.uint64(place - 64)
        if place < 64 < place + bits:
            code = code | (high << np.uint64(64 - place))
        codes.append(code & mask)
    return codes


def _places(columns: int, bits: int) -> range:
    return range(bits * (columns - 1), -1, -bits)
