"""Decode 64-bit roaring bitmaps in their portable serialization to sorted positions.

The layout is that of the Roaring format specification, "Extension for 64-bit implementations"; Delta ("Deletion Vector
Format") and Iceberg (Puffin, "deletion-vector-v1") both use it. The bytes are untrusted: every length is checked before
it is used, and nothing is expanded before the number of positions is known to be the expected one.
"""

from dataclasses import dataclass

import numpy as np

from zonal.values.arrays import Int64Array, UInt16Array
from zonal.worker.problem import FileError

_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_OFFSETS_FROM = 4
"""A bitmap with run containers has offsets from this many containers on; one without run containers always has."""
_LARGEST_ARRAY = 4096
_BITMAP_BYTES = 8192
_LARGEST_KEY = 2**31 - 1
"""Java's implementation reads the key as a signed number; up to this key every position fits 63 bits."""


@dataclass(frozen=True, eq=False)
class _Container:
    """Up to 65,536 positions that share all but their lowest 16 bits."""

    base: int
    count: int
    kind: str
    data: bytes


def positions(data: bytes, *, count: int) -> Int64Array:
    """Return the positions of a bitmap, ascending; raise a `FileError` if it is damaged or hasn't `count` of them.

    >>> positions(bytes(8), count=0)
    array([], dtype=int64)
    """
    containers = _containers(data)
    total = sum(container.count for container in containers)
    if total != count:
        raise FileError(f"the bitmap has {total:,} positions instead of {count:,}")
    decoded = [container.base + _decoded(container) for container in containers]
    if not decoded:
        return np.empty(0, np.int64)
    joined = np.concatenate(decoded)
    if len(joined) != count or not (joined[1:] > joined[:-1]).all():
        raise FileError("the bitmap's positions are not in ascending order")
    return joined


class _Bytes:
    """A cursor over bytes, which are read from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._at = 0

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise FileError("the bitmap ends too early")
        self._at += size
        return bytes(self._data[self._at - size : self._at])

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def shorts(self, count: int) -> UInt16Array:
        return np.frombuffer(self.take(2 * count), "<u2")

    @property
    def left(self) -> int:
        return len(self._data) - self._at


def _containers(data: bytes) -> list[_Container]:
    source = _Bytes(data)
    bitmaps = source.number(8)
    if bitmaps > source.left // 8:  # a key and the start of a bitmap take more than that
        raise FileError("the bitmap ends too early")
    containers: list[_Container] = []
    previous = -1
    for _ in range(bitmaps):
        key = source.number(4)
        if not previous < key <= _LARGEST_KEY:
            raise FileError(f"the bitmap's key {key:,} is out of order or too large")
        containers += _containers_of_one(source, key << 32)
        previous = key
    if source.left:
        raise FileError(f"the bitmap has {source.left:,} bytes too many")
    return containers


def _containers_of_one(source: _Bytes, high: int) -> list[_Container]:
    """Read one 32-bit bitmap: cookie, keys and counts, offsets, containers."""
    cookie = source.number(4)
    if cookie & 0xFFFF == _WITH_RUNS:
        size = (cookie >> 16) + 1
        flags = np.frombuffer(source.take((size + 7) // 8), np.uint8)
        runs = np.unpackbits(flags, bitorder="little")[:size].tolist()
    elif cookie == _WITHOUT_RUNS:
        size = source.number(4)
        if size > 2**16:
            raise FileError(f"the bitmap has {size:,} containers; at most 65,536 are possible")
        runs = [0] * size
    else:
        raise FileError(f"the bitmap begins with {cookie}, which no version of the format does")
    header = source.shorts(2 * size)
    if cookie == _WITHOUT_RUNS or size >= _OFFSETS_FROM:
        source.take(4 * size)  # for random access; the containers follow each other without gaps
    keys, counts = header[0::2].tolist(), header[1::2].tolist()
    return [
        _container(source, high + (key << 16), count + 1, bool(run))
        for key, count, run in zip(keys, counts, runs, strict=True)
    ]


def _container(source: _Bytes, base: int, count: int, run: bool) -> _Container:
    if run:
        return _Container(base, count, "runs", source.take(4 * source.number(2)))
    if count <= _LARGEST_ARRAY:
        return _Container(base, count, "array", source.take(2 * count))
    return _Container(base, count, "bits", source.take(_BITMAP_BYTES))


def _decoded(container: _Container) -> Int64Array:
    """Return the lowest 16 bits of each position; raise a `FileError` if there aren't as many as the header says."""
    if container.kind == "bits":
        bits = np.unpackbits(np.frombuffer(container.data, np.uint8), bitorder="little")
        low = np.flatnonzero(bits).astype(np.int64)
    elif container.kind == "array":
        low = np.frombuffer(container.data, "<u2").astype(np.int64)
    else:
        pairs = np.frombuffer(container.data, "<u2").astype(np.int64).reshape(-1, 2)
        starts, lengths = pairs[:, 0], pairs[:, 1] + 1
        ends = np.cumsum(lengths)
        if lengths.sum() != container.count or (starts + lengths > 2**16).any():
            raise FileError("a container of the bitmap hasn't as many positions as its header says")
        low = np.repeat(starts - (ends - lengths), lengths) + np.arange(container.count)
    if len(low) != container.count:
        raise FileError("a container of the bitmap hasn't as many positions as its header says")
    return low
