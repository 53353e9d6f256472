"""Open files of tables on local disks and in object stores, through pyarrow's file systems."""

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os.path import abspath
from stat import S_ISREG
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs

from zonal.errors import TableError, ZonalError
from zonal.storage.arguments import azure_arguments, gcs_arguments, in_location, s3_arguments, s3_environment
from zonal.storage.causes import STORAGE_ERRORS, told
from zonal.storage.connection import connect
from zonal.storage.loans import Loan
from zonal.storage.location import is_uri, local_path, refuse_host, refuse_other_names, store_of
from zonal.storage.objects import Objects
from zonal.storage.options import Given
from zonal.storage.ranged import TAIL, RangedS3
from zonal.storage.store import Store

__all__ = ["Storage", "local_path", "open_regular", "refuse_special"]

Result = TypeVar("Result")


class Storage:
    """The location of a table, and how its files are opened.

    Locations of files are literal (nothing is percent-encoded) and carry no credentials: local paths, or
    `scheme://bucket/key`. A store that doesn't answer is refused within seconds when the first of its files is located,
    and at once from then on.
    """

    def __init__(self, location: str, options: Mapping[str, str], *, loan: Loan | None = None) -> None:
        """Open a location with options; with a loan, they are those of the moment."""
        refuse_other_names(location)
        self._loan = loan
        self._options = {name.lower(): value for name, value in options.items()}
        self._stores: dict[tuple[str, str], Store] = {}
        self._filesystems: dict[tuple[str, str], pa.fs.FileSystem | TableError] = {}
        if not is_uri(location):
            self.root = abspath(location)
        elif urlsplit(location).scheme.lower() == "file":
            refuse_host(urlsplit(location).netloc, location)
            self.root = abspath(unquote(urlsplit(location).path))
        else:
            parts = urlsplit(location)
            scheme, host = parts.scheme.lower(), parts.netloc
            if store_of(scheme) != "abfss":
                host = host.rpartition("@")[2]
            self.root = f"{scheme}://{host}{parts.path}".rstrip("/")
            self._stores[scheme, host] = self._store(scheme, host, in_location(store_of(scheme), location))

    def __getstate__(self) -> dict[str, object]:
        """Leave connections out: other processes make their own, or get the error themselves.

        They can't ask for a loan's options again, so that they get new ones.
        """
        if self._loan is not None:
            self._take(self._loan.sent())
        return self.__dict__ | {"_filesystems": {}, "_loan": None}

    def renewing(self, work: Callable[[], Result]) -> Result:
        """Do work that locates and opens files; where a loan has ended, do it once more with a new one."""
        try:
            return work()
        except STORAGE_ERRORS as error:
            if self._loan is None or not self._loan.after(error, self._options):
                raise
        return work()

    @contextmanager
    def advising(self) -> Iterator[None]:
        """Add to errors of workers that a loan has ended, where that is why."""
        try:
            yield
        except ZonalError as error:
            if self._loan is None or not (advice := self._loan.advice(error)):
                raise
            raise type(error)(f"{str(error).rstrip('.')}. {advice}") from error

    def _take(self, options: Mapping[str, str]) -> None:
        """Open stores with other options from now on; in this order, so that no thread mixes them up."""
        if options != self._options:
            self._options, self._stores, self._filesystems = dict(options), {}, {}

    def resolve(self, path: str) -> str:
        """Return the location of a path in a Delta log: relative or a URI, percent-encoded once ("Add File")."""
        full, literal = is_uri(path), unquote(path) if "%" in path else path
        if full:
            return local_path(literal) or literal
        if not literal.startswith("/"):
            return f"{self.root}/{literal}"
        # As in every URI, a leading slash means the store's root.
        return literal if not is_uri(self.root) else "/".join(self.root.split("/", 3)[:3]) + literal

    def locate(self, location: str) -> tuple[pa.fs.FileSystem, str]:
        """Return the file system of a location, and the path in it."""
        if (path := local_path(location)) is not None:
            return pa.fs.LocalFileSystem(), path
        if self._loan is not None:
            self._take(self._loan.options())
        scheme, host, path = self._parts(location)
        inside = f"/{path}" if store_of(scheme) == "hdfs" else f"{host.partition('@')[0]}/{path}"
        filesystems = self._filesystems  # another thread may replace it; what is opened with older options stays there
        if (filesystem := filesystems.get((scheme, host))) is None:
            filesystem = filesystems[scheme, host] = self._connected(location, inside)
        if isinstance(filesystem, TableError):
            raise TableError(str(filesystem))
        return filesystem, inside

    def told(self, error: Exception, location: str | None = None) -> str:
        """Say what went wrong with a location: the cause, the server, and what to check."""
        location = self.root if location is None else location
        if local_path(location) is not None:
            return told(error)
        store = self.store_at(location)
        return told(error, store=store.kind, endpoint=store.endpoint, secrets=store.secrets)

    def _connected(self, location: str, inside: str) -> "pa.fs.FileSystem | TableError":
        try:
            return connect(self.store_at(location), inside)
        except TableError as error:
            return error

    def store_at(self, location: str) -> Store:
        """Return the object store of a location, and how it is opened."""
        scheme, host, _ = self._parts(location)
        stores = self._stores
        if (scheme, host) not in stores:
            refuse_other_names(location)
            stores[scheme, host] = self._store(scheme, host, {})
        return stores[scheme, host]

    def objects_at(self, folder: str) -> Objects:
        """Open a folder of an object store as objects."""
        filesystem, path = self.locate(folder)
        return Objects(self.store_at(folder), path.partition("/")[2], region=getattr(filesystem, "region", None))

    @staticmethod
    def _parts(location: str) -> tuple[str, str, str]:
        scheme, _, rest = location.partition("://")
        host, _, path = rest.partition("/")
        return scheme.lower(), host, path

    def _store(self, scheme: str, host: str, own: Mapping[str, str]) -> Store:
        kind = store_of(scheme)
        given = Given((self._options, own))
        if kind == "s3":
            arguments = s3_arguments(Given((*given.layers, s3_environment(os.environ))))
        elif kind == "gs":
            arguments = gcs_arguments(given)
        else:
            arguments = azure_arguments(given, host) if kind == "abfss" else {}
        return Store(kind, host, tuple(arguments.items()))


def open_regular(
    filesystem: pa.fs.FileSystem, path: str, *, size: int | None = None, tail: int = TAIL
) -> pa.NativeFile:
    """Open a file for random access; on a local disk, refuse special files as `refuse_special` does.

    Its `size`, where it is known, and how many bytes of its end will be read, may save requests to an object store.
    """
    if isinstance(filesystem, RangedS3):
        return filesystem.open_input_file(path, size=size, tail=tail)
    if isinstance(filesystem, pa.fs.LocalFileSystem):
        refuse_special(path)
    return filesystem.open_input_file(path)


def refuse_special(location: str) -> None:
    """Raise an `OSError` for a local pipe, socket or device: opening one may wait forever, and reading never end."""
    path = local_path(location)
    if path is not None and not S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "It isn't a regular file", path)
