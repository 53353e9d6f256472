"""Arrays of 64-bit integers packed as short text, and unpacked from untrusted text."""

import base64
import binascii
import zlib

import numpy as np
import numpy.typing as npt


def pack(values: npt.NDArray[np.uint64] | npt.NDArray[np.int64]) -> str:
    """Write integers as base64 of deflated bytes, the most significant bytes of all values first.

    >>> unpack(pack(np.arange(3)), 10)
    array([0, 1, 2], dtype=uint64)
    """
    planes = values.astype(">u8", copy=False).view(np.uint8).reshape(-1, 8).T
    return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode()


def unpack(text: str, most: int) -> npt.NDArray[np.uint64]:
    """Read what `pack` wrote; more than `most` integers or anything else is a `ValueError`."""
    try:
        inflate = zlib.decompressobj()
        data = inflate.decompress(base64.b64decode(text, validate=True), 8 * most + 1)
    except (zlib.error, binascii.Error) as error:
        raise ValueError(f"damaged array ({error})") from None
    if len(data) % 8 or len(data) > 8 * most or not inflate.eof:
        raise ValueError("an array of an unexpected size")
    planes = np.frombuffer(data, np.uint8).reshape(8, -1)
    return np.ascontiguousarray(planes.T).view(">u8").reshape(-1).astype(np.uint64)
