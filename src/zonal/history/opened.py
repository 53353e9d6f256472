"""The history that a verb is given: a database by its URL, an open one, or none."""

from contextlib import AbstractContextManager, nullcontext

from zonal.errors import ZonalError, quoted
from zonal.history.store import History

Database = History | str | None
"""A history, the URL of one, or none."""


def check_database(database: object) -> None:
    """Refuse what is no history, before any work is done for it."""
    if not isinstance(database, History | str | None):
        raise ZonalError(f"database={quoted(repr(database))} is no history: give its URL, an open one, or None.")


def opened(database: Database) -> AbstractContextManager[History | None]:
    """Open a history by its URL, and close it in the end; one that is open stays so."""
    check_database(database)
    return History.open(database) if isinstance(database, str) else nullcontext(database)
