"""The files of Iceberg tables for PyIceberg, opened by zonal's storage: with its options, limits of time and errors."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.typedef import EMPTY_DICT, Properties

from zonal.storage import Storage
from zonal.storage.loans import Loan
from zonal.storage.location import STORES, is_uri, store_of
from zonal.storage.options import needs_pyiceberg, store_options
from zonal.storage.store import Store
from zonal.values.cache import Cache

NAME = f"{__name__}.StoredFileIO"
_WHOLE: Cache[tuple[Store, str], bytes] = Cache(32 * 1024**2, len)
"""Manifests by their store and location: PyIceberg makes a new `FileIO` each time it loads a table."""
Result = TypeVar("Result")
_VENDED = ("s3.access-key-id", "s3.session-token", "gcs.oauth2.token", "adls.sas-token")
"""Beginnings of properties by which catalogs vend credentials."""


def opened_by_storage(properties: Properties) -> dict[str, Any]:
    """Add the property that lets files be opened here, unless they must be opened by a class of PyIceberg or others."""
    return {**properties} if needs_pyiceberg(properties) else {"py-io-impl": NAME, **properties}


def lend(table: Table, load: Callable[[], Table]) -> None:
    """Let a table's files be opened with credentials of the moment, where the catalog vends some with the table."""
    own = table.catalog.properties
    vended = (name for name in table.io.properties if name.startswith(_VENDED))
    if not isinstance(table.io, StoredFileIO) or table.io.loan is not None:
        return
    if any(table.io.properties[name] != own.get(name) for name in vended):
        table.io.lend(lambda: load().io.properties)


class StoredFileIO(PyArrowFileIO):
    """PyIceberg's access to files, but of object stores as `Storage` opens them.

    What isn't in a store that `Storage` knows (local files, HDFS) is opened as PyIceberg does.
    """

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._storage = Storage(os.curdir, store_options(self.properties))
        self.loan: Loan | None = None

    def lend(self, ask: Callable[[], Properties]) -> None:
        """Open files with options that a catalog lends for some time, and is asked for again."""
        self.loan = Loan(self.properties, ask)
        self._storage = Storage(os.curdir, store_options(self.properties), loan=self.loan)

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

        def remove() -> None:
            filesystem, path = self._storage.locate(name)
            filesystem.delete_file(path)

        self._storage.renewing(remove)

    def _file(self, location: str) -> PyArrowFile:
        return _StoredFile(location, self._storage)

    def whole(self, location: str) -> bytes:
        """Return a file that never changes once it is there, such as a manifest; those read last are remembered."""
        return _WHOLE.get((self._storage.store_at(location), location), lambda: self._read(location))

    def _read(self, location: str) -> bytes:
        with self._file(location).open() as stream:
            return stream.read()


class _StoredFile(PyArrowFile):
    """A file that is located whenever it is opened: what opened it before may have expired."""

    def __init__(self, location: str, storage: Storage) -> None:
        self._storage = storage
        filesystem, path = storage.locate(location)
        super().__init__(location=location, path=path, fs=filesystem)

    def _anew(self, work: Callable[[PyArrowFile], Result]) -> Result:
        def located() -> Result:
            filesystem, path = self._storage.locate(self.location)
            return work(PyArrowFile(location=self.location, path=path, fs=filesystem))

        return self._storage.renewing(located)

    def __len__(self) -> int:
        return self._anew(len)

    def exists(self) -> bool:
        """Tell whether there is such a file."""
        return self._anew(lambda file: file.exists())

    def open(self, seekable: bool = True) -> InputStream:
        """Open it to be read."""
        return self._anew(lambda file: file.open(seekable))

    def create(self, overwrite: bool = False) -> OutputStream:
        """Create it."""
        return self._anew(lambda file: file.create(overwrite))


def read_whole(io: FileIO, location: str) -> bytes:
    """Return a file that never changes once it is there; one in a store may have been read before."""
    if isinstance(io, StoredFileIO) and _is_stored(location):
        return io.whole(location)
    with io.new_input(location).open() as stream:
        return stream.read()


def _is_stored(location: str) -> bool:
    return is_uri(location) and store_of(location.partition(":")[0]) in STORES
