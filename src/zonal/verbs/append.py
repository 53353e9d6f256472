"""`append`: add rows to a table in one atomic commit whose files are in the table's layout already."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from zonal.errors import LayoutError, TableError, option, quoted
from zonal.history.opened import Database, opened
from zonal.layouts.layout import Layout
from zonal.plan.append import Transaction, TransactionSeenError
from zonal.plan.run import new_run
from zonal.rewriting.appended import Appended, remembered
from zonal.rewriting.arrival import Appender
from zonal.rewriting.in_place import Runner, refuse_filters
from zonal.rewriting.in_process import run_in_process
from zonal.rewriting.incoming import Rows, incoming, is_frame
from zonal.rewriting.on_spark import spark_runner
from zonal.rewriting.request import chosen_layout, refuse, refuse_unwritable
from zonal.snapshot import Snapshot
from zonal.tables.protocol import Appendable, Table, is_appendable
from zonal.tables.registry import read_snapshot, table_of
from zonal.verbs.cluster import Progress, Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def append(
    table: Table | str,
    data: Rows,
    *,
    by: str | Sequence[str] | None = None,
    layout: str | Layout | None = None,
    transaction: tuple[str, int] | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: "SparkSession | None" = None,
    runner: Runner | None = None,
    database: Database = None,
    progress: Progress | None = None,
) -> Appended:
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
        spark: the session that sorts the rows; without, that of the DataFrame, and else this process.
        runner: runs the work elsewhere.
        database: the history to which the run is added: a URL, an open `History`, or None for nowhere.
        progress: hears each step.

    Example:
        >>> zonal.append("delta:lake/orders", pa.table({"id": [7]}), transaction=("till-4", 18)).rows  # doctest: +SKIP
        1
    """
    began = time.monotonic()
    named = None if transaction is None else Transaction(*transaction)
    with opened(database):
        pass  # a history that can't be opened is refused before any work
    target = _appendable(table_of(table, catalog=catalog, storage_options=storage_options))
    report = progress or _silent
    report(Step("reading the table's metadata"))
    snapshot = read_snapshot(target)
    chosen = _layout(snapshot, by, layout)
    run = new_run()
    appending = target.appending(snapshot, layout=chosen, run=run)
    refuse_filters(appending.writing)
    last = None if named is None else target.last_transaction(snapshot, named.application)
    if named is not None and last is not None and last >= named.version:
        return Appended.again(snapshot, chosen, named, began)
    rows = incoming(data, storage_options)
    for each in rows:
        each.check(snapshot.name, appending)
    refuse_unwritable(appending.writing, run)
    appender = Appender(target.newest(), snapshot, chosen, run, appending, named)
    try:
        with _running(data, spark, runner) as sort:
            done = appender.append(rows, sort, partial(_tell, report))
    except TransactionSeenError:  # another attempt at the same batch was faster
        if named is None:
            raise
        return Appended.again(snapshot, chosen, named, began)
    return remembered(Appended.of(snapshot, chosen, run, done, began), database)


def _running(data: Rows, spark: "SparkSession | None", runner: Runner | None) -> AbstractContextManager[Runner]:
    """Return what sorts the rows: the caller's runner or session, the session of a DataFrame, or this process."""
    session = spark if spark is not None else data.sparkSession if is_frame(data) else None
    if runner is not None or session is None:
        return nullcontext(runner or run_in_process)
    return spark_runner(session, None, None, None)


def _silent(step: Step) -> None:
    """Tell nobody of a step."""


def _tell(report: Progress, name: str, done: int = 0, total: int = 0, notice: str = "") -> None:
    report(Step(name, done=done, total=total, notice=notice))


def _appendable(table: Table) -> Appendable:
    if not is_appendable(table):
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
