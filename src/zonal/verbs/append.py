"""`append`: add rows to a table in one atomic commit whose files are in the table's layout already."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Literal, TypedDict, overload

from zonal.arguments import check_arguments
from zonal.errors import LayoutError, TableError, ZonalError, option, quoted
from zonal.history.opened import Database, opened
from zonal.layouts.layout import Layout
from zonal.plan.append import Transaction, TransactionSeenError
from zonal.plan.run import new_run
from zonal.rewriting.appended import Appended, AppendPlan, remembered
from zonal.rewriting.arrival import Appender
from zonal.rewriting.in_place import Runner, refuse_filters
from zonal.rewriting.incoming import Rows, incoming, is_frame
from zonal.rewriting.ledger import LedgerEntry
from zonal.rewriting.on_this_machine import ThisMachine
from zonal.rewriting.places import Place, check_place, runner_at
from zonal.rewriting.request import chosen_layout, refuse, refuse_unwritable
from zonal.snapshot import Snapshot
from zonal.tables.protocol import Appendable, Table, is_appendable
from zonal.tables.registry import read_snapshot, table_of
from zonal.values.progress import Progress, Step, only_notices

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AppendOptions(TypedDict, total=False):
    """What `append` takes, with and without `dry_run`."""

    by: str | Sequence[str] | None
    layout: str | Layout | None
    transaction: tuple[str, int] | None
    catalog: str | None
    storage_options: Mapping[str, str] | None
    spark: Place
    database: Database
    progress: Progress | None


@overload
def append(
    table: Table | str, data: Rows, *, dry_run: Literal[False] = False, **options: "Unpack[AppendOptions]"
) -> Appended: ...
@overload
def append(
    table: Table | str, data: Rows, *, dry_run: Literal[True], **options: "Unpack[AppendOptions]"
) -> AppendPlan: ...
def append(
    table: Table | str,
    data: Rows,
    *,
    by: str | Sequence[str] | None = None,
    layout: str | Layout | None = None,
    transaction: tuple[str, int] | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: Place = None,
    database: Database = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Appended | AppendPlan:
    """Add rows to a table: all of them appear in one commit, in files that are clustered as a run of their own.

    Rows must fit the table's schema; types are widened where that changes no value, and columns that are missing become
    null, or their default, where the table allows it. A failure leaves the table as it was.

    Arguments:
        table: a path or a name, as for `open_table`, or an open table.
        data: a Spark DataFrame, whose query runs once; Arrow data: a table, a batch, a reader, a dataset, a scanner, or
            whatever else gives an Arrow stream, as Polars' and DuckDB's results do; or paths of Parquet files, folders
            or other tables.
        by, layout: as for `cluster`, for a table that records no layout yet: it is recorded with the commit.
        transaction: a name and a number, such as those of a stream and its batch: what the table has already is not
            appended again, nor are lower numbers.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.
        spark: where rows are sorted: a session, a `Spark`, or a function, as for `cluster`; without, in the DataFrame's
            session, and all else in this process.
        database: the history to which the run is added: a URL, an open `History`, or None for nowhere.
        dry_run: take and check the rows, which are read once, change nothing, start no Spark, and return the plan.
        progress: hears each step.

    Example:
        >>> zonal.append("delta:lake/orders", pa.table({"id": [7]}), transaction=("till-4", 18)).rows  # doctest: +SKIP
        1
    """
    check_arguments(append, locals())
    check_place(spark)
    if dry_run and is_frame(data):
        raise ZonalError(
            f"{option('dry_run')} starts no Spark, and the rows of a DataFrame are known when its query has run: give "
            "files or Arrow data, such as its toArrow()."
        )
    began = time.monotonic()
    named = Transaction.of(transaction)
    with opened(database):
        pass  # a history that can't be opened is refused before any work
    target = _appendable(table_of(table, catalog=catalog, storage_options=storage_options))
    report = progress or only_notices
    report(Step("reading the table's metadata"))
    snapshot = read_snapshot(target)
    chosen = _layout(snapshot, by, layout)
    run = new_run()
    appending = target.appending(snapshot, layout=chosen, run=run)
    refuse_filters(appending.writing)
    last = None if named is None else target.last_transaction(snapshot, named.application)
    if named is not None and last is not None and last >= named.version:
        again = Appended.again(snapshot, chosen, named, began)
        return AppendPlan.again(again) if dry_run else again
    rows = incoming(data, storage_options)
    for each in rows:
        each.check(snapshot.name, appending)
    appender = Appender(target.newest(), snapshot, chosen, run, appending, named)
    if dry_run:
        return AppendPlan.of(snapshot, *appender.expect(rows, report), chosen)
    refuse_unwritable(appending.writing, run)
    try:
        with _running(data, spark, report) as runner:
            done = appender.append(rows, runner, report)
    except TransactionSeenError:  # another attempt at the same batch was faster
        if named is None:
            raise
        return Appended.again(snapshot, chosen, named, began)
    appended = Appended.of(snapshot, chosen, run, done, began)
    return remembered(appended, database, lambda: LedgerEntry(run, "append", done, chosen, target.newest().snapshot()))


def _running(data: Rows, spark: Place, report: Progress) -> AbstractContextManager[Runner]:
    """Return what sorts the rows: what the caller gave, the session of a DataFrame, or this process."""
    if spark is None and not is_frame(data):
        return nullcontext(ThisMachine(threads=1))
    place = data.sparkSession if spark is None else spark
    return runner_at(place, lambda notice: report(Step("starting Spark", notice=notice)))


def _appendable(table: Table) -> Appendable:
    if not is_appendable(table):
        read_snapshot(table)  # which says so if there is no table at all
        raise TableError(
            f"Rows can't be appended to {quoted(table.name, limit=300)}: plain Parquet has no atomic commit. Make a "
            f"Delta or an Iceberg table of it with `cluster` and {option('into')}."
        )
    return table


def _layout(snapshot: Snapshot, by: str | Sequence[str] | None, layout: str | Layout | None) -> Layout:
    """Return the layout of the new files: the one that the table records, and the given one where there is none."""
    chosen = chosen_layout(snapshot, by, layout, None)
    if snapshot.layout is not None and snapshot.layout.id != chosen.id:
        raise LayoutError(
            f"{quoted(snapshot.name, limit=200)} records the layout {snapshot.layout}, and rows are appended in that. "
            f"Leave out {option('by')} and {option('layout')}, or change the table's layout with `cluster`."
        )
    refuse(snapshot, chosen)
    return chosen
