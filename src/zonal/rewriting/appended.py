"""The result of an append and of its dry run as values, and its record for the history."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from zonal.display import Shown
from zonal.history.opened import Database, remember_run
from zonal.history.records import RunRecord
from zonal.layouts.layout import Layout, short_text
from zonal.plan.append import Transaction
from zonal.rewriting.arrival import Arrival
from zonal.rewriting.done import Done
from zonal.rewriting.ledger import LedgerEntry
from zonal.snapshot import Snapshot


@dataclass(frozen=True)
class Appended(Shown):
    """What an append did."""

    table: str
    format: str
    layout: str
    run: str
    version: int | None
    """The version or snapshot that has the rows; None where nothing was committed."""
    rows: int
    files: int
    bytes: int
    """Size of the new files: what arrived."""
    seconds: float
    repeated: bool = False
    """Whether the table had the transaction already, so that nothing was added."""
    note: str = ""
    """Why nothing was committed, or why the run isn't in the history."""
    location: str = ""
    """Where the table is stored."""

    @classmethod
    def of(cls, snapshot: Snapshot, layout: Layout, run: str, done: Done, began: float) -> "Appended":
        """Return the result of a run that began at this time of `time.monotonic`."""
        return cls(
            table=snapshot.name,
            format=snapshot.format,
            layout=str(layout),
            run=run,
            version=done.versions[-1] if done.versions else None,
            rows=done.change.rows,
            files=done.change.added_files,
            bytes=done.change.added_bytes,
            seconds=time.monotonic() - began,
            note="" if done.versions else "There were no rows to append.",
            location=snapshot.location,
        )

    @classmethod
    def again(cls, snapshot: Snapshot, layout: Layout, transaction: Transaction, began: float) -> "Appended":
        """Return the result for a transaction that the table has already."""
        done = cls.of(snapshot, layout, "", Done(), began)
        what = f"Version {transaction.version} of {transaction.application}"
        return replace(done, repeated=True, note=f"{what}, or a later one, is in the table already: nothing was added.")


@dataclass(frozen=True)
class AppendPlan(Shown):
    """What an append would do."""

    table: str
    format: str
    layout: str
    rows: int = 0
    partitions: int = 0
    """Partitions to which rows would be added; 1 for a table without partitions."""
    files: int = 0
    """New files, estimated from a sample."""
    bytes: int = 0
    """Their size, estimated from rows that were sorted and written on trial."""
    file_size: int = 0
    """Size of a file that new ones would be made for."""
    repeated: bool = False
    """Whether the table has the transaction already, so that nothing would be added."""
    note: str = ""
    """Why nothing would be added."""

    @classmethod
    def of(cls, snapshot: Snapshot, arrival: Arrival | None, expected: Done, layout: Layout) -> "AppendPlan":
        """Return what is expected of these rows."""
        if arrival is None:
            return cls(snapshot.name, snapshot.format, str(layout), note="There are no rows to append.")
        return cls(
            table=snapshot.name,
            format=snapshot.format,
            layout=str(arrival.layout),
            rows=arrival.rows,
            partitions=len(arrival.partitions),
            files=expected.change.predicted_files,
            bytes=expected.change.predicted_bytes,
            file_size=arrival.layout.file_bytes,
        )

    @classmethod
    def again(cls, done: Appended) -> "AppendPlan":
        """Return the plan for a transaction that the table has already."""
        return cls(done.table, done.format, done.layout, repeated=True, note=done.note.replace("was added", "is added"))


def remembered(done: Appended, database: Database, entry: Callable[[], LedgerEntry]) -> Appended:
    """Add an append to the history; what is committed stays done where that fails, and a note says so.

    `entry` reads the table anew, for its ledger.
    """
    if done.version is None:
        return done
    problem = remember_run(database, _record(done), lambda history: entry().keep(history))
    return replace(done, note=f"{done.note} {problem}".strip())


def _record(done: Appended) -> RunRecord:
    """Return what the history records: a run that removes nothing, so that what it added is what arrived."""
    return RunRecord(
        table=done.table,
        location=done.location,
        format=done.format,
        version=done.version,
        finished=datetime.now(timezone.utc),
        run=done.run,
        layout=short_text(done.layout),
        rows=done.rows,
        removed_files=0,
        removed_bytes=0,
        added_files=done.files,
        added_bytes=done.bytes,
        queries=None,
        share_before=None,
        share_predicted=None,
        share_after=None,
        seconds=done.seconds,
    )
