"""Hilbert curves in any number of dimensions: neighbors on the curve are neighbors in space.

J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004): the codes are turned, level by
level, into the "transposed" index, whose interleaved bits are the position on the curve. There are no branches, and
codes are in the narrowest integers that hold them, so that numpy works on many rows per instruction.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from zonal.values.arrays import UnsignedArray


def _axes(codes: Sequence[npt.NDArray[np.unsignedinteger]], bits: int) -> list[UnsignedArray]:
    dtype = np.uint16 if bits <= 16 else np.uint32
    return [code.astype(dtype) for code in codes]


def _turn(axes: list[UnsignedArray], position: int, bit: int, scratch: tuple[UnsignedArray, UnsignedArray]) -> None:
    """Invert the first axis' lower bits where this axis' bit is set; elsewhere swap them with this axis'."""
    first, axis = axes[0], axes[position]
    mask, swap = scratch
    low = axis.dtype.type((1 << bit) - 1)
    np.right_shift(axis, axis.dtype.type(bit), out=mask)
    mask &= axis.dtype.type(1)
    np.subtract(mask, axis.dtype.type(1), out=mask)  # all ones where the bit is 0
    mask &= low
    if position:
        np.bitwise_xor(first, axis, out=swap)
        swap &= mask
        first ^= swap
        axis ^= swap
    mask ^= low
    first ^= mask


def to_transposed(codes: Sequence[npt.NDArray[np.unsignedinteger]], bits: int) -> list[UnsignedArray]:
    """Return the transposed Hilbert index; its bits interleaved in Z-order are the key."""
    axes = _axes(codes, bits)
    if len(axes) == 1:
        return axes
    scratch = np.empty_like(axes[0]), np.empty_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        for position in range(len(axes)):
            _turn(axes, position, bit, scratch)
    for before, axis in pairwise(axes):
        axis ^= before
    # Gray decoding: below each set bit of the last axis, all axes' bits are inverted.
    inverted = axes[-1] >> axes[-1].dtype.type(1)
    for shift in (1, 2, 4, 8, 16):
        if shift < bits:
            inverted ^= inverted >> inverted.dtype.type(shift)
    for axis in axes:
        axis ^= inverted
    return axes
