"""Errors about single files: raised without the file's name, which the caller who knows it adds."""

from collections.abc import Iterator
from contextlib import contextmanager

from zonal.errors import TableError, quoted
from zonal.storage.causes import STORAGE_ERRORS, told


class FileError(TableError):
    """Something is wrong with a file; its message doesn't name the file yet and has no full stop."""


@contextmanager
def naming(path: str, *, doing: str = "read") -> Iterator[None]:
    """Turn errors about a file into a `TableError` that names it; any other `TableError` passes unchanged."""
    try:
        yield
    except FileNotFoundError:
        if doing == "write":
            raise TableError(f"Can't write the file {quoted(path, limit=300)}: its folder is gone.") from None
        raise TableError(f"The file {quoted(path, limit=300)} doesn't exist.") from None
    except FileError as error:
        raise TableError(f"Can't {doing} the file {quoted(path, limit=300)}: {error}.") from None
    except STORAGE_ERRORS as error:
        raise TableError(f"Can't {doing} the file {quoted(path, limit=300)}: {told(error)}") from error
