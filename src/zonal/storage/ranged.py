"""Read objects of a store by ranges, with one request for a file's end instead of one for its size and one for its end.

pyarrow asks for the size of every file that it opens. Readers of Parquet begin with a file's end, where the footer is,
and the answer to a request for that tells the size as well. Small files are then whole already.
"""

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.fs

from zonal.storage.objects import Objects, reads
from zonal.storage.store import Store

TAIL = 64 * 1024
"""Bytes from the end that the first request asks for: most footers, and most commits of logs as a whole."""


def open_object(objects: Objects, name: str, *, size: int | None = None, tail: int = TAIL) -> "RangedFile":
    """Open an object; ask for `tail` bytes from its end, unless its `size` is known and larger."""
    return RangedFile(_Ranges(objects, name, size if size is not None and size > tail else None, tail), mode="r")


class RangedFile(pa.PythonFile):  # type: ignore[misc]
    """An object that is open for random access."""

    def __init__(self, ranges: "_Ranges", mode: str) -> None:  # noqa: ARG002 - pyarrow takes both before this
        self._ranges = ranges

    def load(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Fetch ranges (from, to) that will be read next, near ones together, in place of those loaded before."""
        self._ranges.load(ranges)


class _Ranges(io.RawIOBase):
    """An object as a file of Python; it keeps its end and the ranges that were loaded."""

    def __init__(self, objects: Objects, name: str, size: int | None, tail: int) -> None:
        super().__init__()
        self._objects, self._name = objects, name
        self._kept: dict[int, memoryview] = {}
        """By where they begin, the end first."""
        self._at = 0
        if size is None:
            end, size = objects.read_end(name, tail)
            self._kept[size - len(end)] = end
        self._size = size
        self._ends = dict(self._kept)

    def load(self, ranges: Sequence[tuple[int, int]]) -> None:
        self._kept = dict(self._ends)
        missing = [(start, stop) for start, stop in ranges if stop > start and self._held(start, stop) is None]
        parts = self._objects.read_ranges(self._name, missing)
        self._kept |= {start: part for (start, _), part in zip(missing, parts, strict=True)}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        return bytes(self._taken(size))

    def read_buffer(self, size: int = -1) -> pa.Buffer:
        """Read without a copy, which pyarrow prefers."""
        return pa.py_buffer(self._taken(size))

    def _taken(self, size: int | None) -> memoryview:
        start = self._at
        stop = self._size if size is None or size < 0 else min(start + size, self._size)
        self._at = max(start, stop)
        if start >= stop:
            return memoryview(b"")
        held = self._held(start, stop)
        return self._objects.read_ranges(self._name, [(start, stop)])[0] if held is None else held

    def _held(self, start: int, stop: int) -> memoryview | None:
        for begin, data in self._kept.items():
            if begin <= start and stop <= begin + len(data):
                return data[start - begin : stop - begin]
        return None


class RangedS3(pa.fs.S3FileSystem):  # type: ignore[misc]
    """pyarrow's access to S3, but files are read by ranges where that can be done with the same credentials."""

    _store: Store | None = None
    _objects: Objects | None = None

    def of(self, store: Store) -> "RangedS3":
        """Say which store it is; until then files are read as pyarrow does."""
        self._store = store if reads(store) else None
        return self

    def open_input_file(self, path: str, *, size: int | None = None, tail: int = TAIL) -> pa.NativeFile:
        """Open a file for random access: see `open_object`."""
        if self._store is None:
            return super().open_input_file(path)
        if self._objects is None:
            self._objects = Objects(self._store, "", region=self.region)
        return open_object(self._objects, path.partition("/")[2], size=size, tail=tail)
