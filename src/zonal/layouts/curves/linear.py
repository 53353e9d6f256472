"""Linear keys: the columns' bits concatenated, as a plain sort orders them."""

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
    for code, place in zip(codes, range(bits * (len(codes) - 1), -1, -bits), strict=True):
        wide = code.astype(np.uint64)
        if place < 64:
            low |= wide << np.uint64(place)
        if place + bits > 64:
            high |= wide << np.uint64(place - 64) if place >= 64 else wide >> np.uint64(64 - place)
    return high, low
