"""Write deletion vectors: positions as 64-bit roaring bitmaps, several in one file, as Delta stores them.

The file begins with a byte of version 1; each vector is framed as `plan.rewrite.Vector` says.
"""

import struct
import zlib
from collections.abc import Mapping

import numpy as np
import pyarrow.fs

from zonal.plan.rewrite import Vector
from zonal.storage import Storage
from zonal.storage.durability import flush_file
from zonal.values.arrays import Int64Array, UInt16Array
from zonal.worker.problem import naming
from zonal.worker.read.deletes import MAGIC

_VERSION = b"\x01"
_COOKIE = 12346
"""Begins a 32-bit bitmap without run containers."""
_LARGEST_ARRAY = 4096
"""Positions of a container that are listed; more are a bit each."""


def write_vectors(storage: Storage, location: str, positions: Mapping[str, Int64Array]) -> dict[str, Vector]:
    """Write a file of one vector per name, of ascending positions, and return where each of them is."""
    content = bytearray(_VERSION)
    vectors = {}
    for name, deleted in positions.items():
        data = struct.pack("<I", MAGIC) + encoded(deleted)
        framed = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        vectors[name] = Vector(len(deleted), location=location, offset=len(content), size=len(framed))
        content += framed
    filesystem, inside = storage.locate(location)
    with naming(location, doing="write"):
        if isinstance(filesystem, pyarrow.fs.LocalFileSystem):
            filesystem.create_dir(inside.rpartition("/")[0], recursive=True)
        with filesystem.open_output_stream(inside) as sink:
            sink.write(bytes(content))
        flush_file(location)
    return vectors


def encoded(positions: Int64Array) -> bytes:
    """Serialize ascending positions as a 64-bit roaring bitmap; `worker.read.roaring.positions` reads it.

    >>> encoded(np.array([], np.int64)).hex()
    '0000000000000000'
    """
    keys, starts = np.unique(positions >> 32, return_index=True)
    bitmaps = [
        struct.pack("<I", key) + _bitmap(part & 0xFFFFFFFF)
        for key, part in zip(keys.tolist(), np.split(positions, starts[1:]), strict=False)
    ]
    return struct.pack("<Q", len(bitmaps)) + b"".join(bitmaps)


def _bitmap(positions: Int64Array) -> bytes:
    """Serialize positions below 2^32: cookie, keys and counts, offsets, containers."""
    keys, starts, counts = np.unique(positions >> 16, return_index=True, return_counts=True)
    low = (positions & 0xFFFF).astype("<u2")
    containers = [_container(part) for part in np.split(low, starts[1:])]
    header = np.column_stack([keys, counts - 1]).astype("<u2").tobytes()
    first = 8 + len(header) + 4 * len(keys)
    offsets = np.cumsum([first, *map(len, containers[:-1])]).astype("<u4").tobytes()
    return struct.pack("<II", _COOKIE, len(keys)) + header + offsets + b"".join(containers)


def _container(low: UInt16Array) -> bytes:
    if len(low) <= _LARGEST_ARRAY:
        return low.tobytes()
    bits = np.zeros(2**16, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()
