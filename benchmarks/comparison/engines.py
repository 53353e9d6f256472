"""Engines that run the timed queries: each opens a rewritten table once, and then answers statements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl
from deltalake import DeltaTable, QueryBuilder

from benchmarks.rewriters.copies import CATALOG, TABLE, catalog_properties, result_folder, table_folder

Answer = tuple[str, ...]
Ask = Callable[[str], Answer]
"""Runs a statement on the table `t`."""


@dataclass(frozen=True)
class Place:
    """A rewritten table: its format, the job's folder, and its live files as plain Parquet."""

    format: str
    folder: Path
    live: Path


def in_duckdb(place: Place) -> Ask:
    """Let DuckDB read the live files, whose footers it opens in every query."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.read_parquet(f"{place.live}/*.parquet").create_view("t")
    return lambda sql: _answer(connection.execute(sql).fetchall())


def in_polars(place: Place) -> Ask:
    """Let polars scan the table by its format, with the statistics of its metadata."""
    if place.format == "delta":
        frame = pl.scan_delta(str(table_folder(place.folder)))
    elif place.format == "iceberg":
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - takes most of a second, and few need it

        frame = pl.scan_iceberg(SqlCatalog(CATALOG, **catalog_properties(place.folder)).load_table(TABLE))
    else:
        frame = pl.scan_parquet(f"{place.live}/*.parquet")
    context = pl.SQLContext(t=frame, eager=True)
    # Its TIMESTAMP has no time zone, and it compares no times with a zone to it.
    return lambda sql: _answer(context.execute(sql.replace("TIMESTAMP '", "TIMESTAMPTZ '")).rows())


def in_delta_rs(place: Place) -> Ask:
    """Let the DataFusion inside delta-rs read the table, which must be Delta's."""
    context = QueryBuilder().register("t", DeltaTable(table_folder(place.folder)))

    def ask(sql: str) -> Answer:
        read = context.execute(sql).read_all()
        return _answer([[column[0].as_py() for column in read.columns]])

    return ask


def in_spark(place: Place) -> Ask:
    """Let Spark read the table with its format's official connector."""
    from benchmarks.rewriters.delta_spark import delta_session  # noqa: PLC0415 - not needed without Spark
    from benchmarks.rewriters.iceberg_spark import iceberg_session  # noqa: PLC0415
    from benchmarks.rewriters.spark_session import session  # noqa: PLC0415

    starts = {"delta": delta_session, "iceberg": iceberg_session, "parquet": session}
    started = starts[place.format](place.folder)
    names = {
        "delta": f"delta.`{table_folder(place.folder)}`",
        "iceberg": f"{CATALOG}.{TABLE}",
        "parquet": f"parquet.`{result_folder(place.folder)}`",
    }
    started.table(names[place.format]).createOrReplaceTempView("t")
    return lambda sql: _answer([list(row) for row in started.sql(sql).collect()])


def _answer(rows: Sequence[Sequence[object]]) -> Answer:
    """Write the one row of aggregates; the sum of no rows is null in some engines and 0 in others."""
    (row,) = rows
    return tuple("-" if value is None or row[0] == 0 else str(value) for value in row)


ENGINES = {"duckdb": in_duckdb, "polars": in_polars, "delta-rs": in_delta_rs, "spark": in_spark}
FORMATS = {"delta-rs": ("delta",)}
"""Engines that read only some formats."""
