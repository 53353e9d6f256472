"""Make errors of catalogs fit to be shown."""

from zonal.errors import TableError, quoted
from zonal.storage.causes import hidden, store_in, told


def what_of(error: Exception) -> str:
    """Tell what a client's error says, without the user and password of any URL in it."""
    if isinstance(error, TableError):  # of the storage: it speaks to people already
        return str(error)
    if store_in(error):
        return told(error)
    return quoted(hidden(f"{type(error).__name__}: {error}"), limit=300)
