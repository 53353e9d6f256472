"""`read`: a table as a Spark DataFrame over only the files that can match."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from zonal.arguments import check_arguments
from zonal.errors import TableError, quoted
from zonal.skipping.files import FileIndex
from zonal.sql.dialect import Dialect
from zonal.tables.protocol import Table, is_readable
from zonal.tables.registry import read_snapshot, table_of
from zonal.worker.splits import plan_splits, refuse_wrong_sizes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(
    spark: "SparkSession",
    table: Table | str,
    *,
    where: str | None = None,
    dialect: Dialect | str | None = None,
    catalog: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "DataFrame":
    """Return the rows of the files that might hold a row for which `where` is true; deleted rows are left out.

    Files are skipped, not rows: filter the result as usual. No jar of the table's format is needed.

    Arguments:
        spark: the session to read in.
        table: a path or a name, as for `open_table`, or an open table.
        where: a condition, as after WHERE; by default, all files are read.
        dialect: of the SQL, such as `spark` or `trino`, or `Dialect`, with the session's time zone and time.
        catalog: of an Iceberg table, as PyIceberg is configured for it.
        storage_options: of the storage.

    Example:
        >>> rows = zonal.read(spark, "events", where="day = 2")  # doctest: +SKIP
        >>> rows.filter("day = 2").count()  # doctest: +SKIP
        10
    """
    check_arguments(read, locals())
    from zonal.spark.versions import check_pyspark  # noqa: PLC0415 - pyspark is an extra

    check_pyspark()
    from zonal.spark.rows import read_rows  # noqa: PLC0415

    named = table_of(table, catalog=catalog, storage_options=storage_options)
    if not is_readable(named):
        raise TableError(f"{quoted(named.name, limit=300)} can't be read by workers.")
    snapshot = read_snapshot(named)
    files = np.arange(len(snapshot.files))
    if where is not None:
        how = Dialect.of(dialect)
        bound = how.bound(how.condition(where), snapshot.schema)
        files = np.flatnonzero(FileIndex(snapshot).prune(bound).kept)
    scan = named.scan(snapshot, files, columns=snapshot.schema.names)
    refuse_wrong_sizes(scan)
    return read_rows(spark, scan, snapshot.schema, plan_splits(scan.sources, 1))
