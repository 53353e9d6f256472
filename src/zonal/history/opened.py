"""The history that a verb is given: a database by its URL, an open one, or none."""

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

from zonal.history.records import HistoryError, RunRecord
from zonal.history.store import History

Database = Annotated[History | str | None, "the URL of a history, an open one, or None"]
"""A history, the URL of one, or none."""


def opened(database: Database) -> AbstractContextManager[History | None]:
    """Open a history by its URL, and close it in the end; one that is open stays so."""
    return History.open(database) if isinstance(database, str) else nullcontext(database)


def remember_run(database: Database, run: RunRecord) -> str:
    """Add a run to the history; return a sentence where that fails, for what is committed stays done."""
    try:
        with opened(database) as history:
            if history is not None:
                history.add_run(run)
    except HistoryError as error:
        return f"The run isn't in the history. {error}"
    return ""
