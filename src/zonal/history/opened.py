"""The history that a verb is given: a database by its URL, an open one, or none."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, cast

from zonal.errors import ZonalError
from zonal.history.records import HistoryError, LedgerRecord, OpenHistory, RunRecord

if TYPE_CHECKING:
    from zonal.history.store import History

Database = Annotated[OpenHistory | str | None, "the URL of a history, an open one, or None"]
"""A history, the URL of one, or none."""


def opened(database: Database) -> "AbstractContextManager[History | None]":
    """Open a history by its URL, and close it in the end; one that is open stays so."""
    if not isinstance(database, str):
        return nullcontext(cast("History | None", database))
    from zonal.history.store import History  # noqa: PLC0415 - slow to import, and only needed here

    return History.open(database)


def ledger_of(database: Database, location: str) -> tuple[LedgerRecord, ...]:
    """Return a table's ledger; empty where there is no history, or none that can be read: the commits tell most."""
    try:
        with opened(database) as history:
            return () if history is None else history.ledger(location)
    except HistoryError:
        return ()


def remember_run(database: Database, run: RunRecord, keep: "Callable[[History], None]") -> str:
    """Add a run to the history; return a sentence where that fails, for what is committed stays done.

    `keep` adds it to the table's ledger, for which the table may be read anew.
    """
    try:
        with opened(database) as history:
            if history is not None:
                history.add_run(run)
                keep(history)
    except ZonalError as error:
        return f"The run isn't in the history. {error}"
    return ""
