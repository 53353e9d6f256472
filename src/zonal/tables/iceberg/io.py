"""The files of Iceberg tables for PyIceberg, opened by zonal's storage: with its options, limits of time and errors."""

import os
from typing import Any

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from zonal.storage import Storage
from zonal.storage.location import STORES, is_uri, store_of
from zonal.storage.options import needs_pyiceberg, store_options
from zonal.storage.store import Store
from zonal.values.cache import Cache

NAME = f"{__name__}.StoredFileIO"
_WHOLE: Cache[tuple[Store, str], bytes] = Cache(32 * 1024**2, len)
"""Manifests by their store and location: PyIceberg makes a new `FileIO` each time it loads a table."""


def opened_by_storage(properties: Properties) -> dict[str, Any]:
    """Add the property that lets files be opened here, unless they must be opened by a class of PyIceberg or others."""
    return {**properties} if needs_pyiceberg(properties) else {"py-io-impl": NAME, **properties}


class StoredFileIO(PyArrowFileIO):
    """PyIceberg's access to files, but of object stores as `Storage` opens them.

    What isn't in a store that `Storage` knows (local files, HDFS) is opened as PyIceberg does.
    """

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._storage = Storage(os.curdir, store_options(self.properties))

    def new_input(self, location: str) -> PyArrowFile:
        """Return a file to be read; a store that doesn't answer is a `TableError`."""
        return self._file(location) if _is_stored(location) else super().new_input(location)

    def new_output(self, location: str) -> PyArrowFile:
        """Return a file to be written; a store that doesn't answer is a `TableError`."""
        return self._file(location) if _is_stored(location) else super().new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Remove a file."""
        name = location if isinstance(location, str) else location.location
        if not _is_stored(name):
            super().delete(location)
            return
        filesystem, path = self._storage.locate(name)
        filesystem.delete_file(path)

    def _file(self, location: str) -> PyArrowFile:
        filesystem, path = self._storage.locate(location)
        return PyArrowFile(location=location, path=path, fs=filesystem)

    def whole(self, location: str) -> bytes:
        """Return a file that never changes once it is there, such as a manifest; those read last are remembered."""
        return _WHOLE.get((self._storage.store_at(location), location), lambda: self._read(location))

    def _read(self, location: str) -> bytes:
        with self._file(location).open() as stream:
            return stream.read()


def read_whole(io: FileIO, location: str) -> bytes:
    """Return a file that never changes once it is there; one in a store may have been read before."""
    if isinstance(io, StoredFileIO) and _is_stored(location):
        return io.whole(location)
    with io.new_input(location).open() as stream:
        return stream.read()


def _is_stored(location: str) -> bool:
    return is_uri(location) and store_of(location.partition(":")[0]) in STORES
