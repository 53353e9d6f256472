"""Makes tables for commits of rewrites, and reads them, in tests."""

from datetime import datetime

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType

from support.iceberg_rewriting import Writer, opened, rows_of
from zonal.tables.iceberg.table import IcebergTable

SCHEMA = Schema(
    NestedField(1, "x", LongType(), required=False),
    NestedField(2, "y", DoubleType(), required=False),
    NestedField(3, "s", StringType(), required=False),
)


def rows(start: int, count: int = 25) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table(
        {
            "x": pa.array(numbers, pa.int64()),
            "y": pa.array([float(n % 7) for n in numbers]),
            "s": pa.array([f"s{n}" for n in numbers], pa.large_string()),
        }
    )


def made(catalog, *, version: int = 2, files: int = 4, schema=SCHEMA, **options):
    """Make `db.t` of some files with 25 rows each."""
    first = min(version, 2)
    table = catalog.create_table("db.t", schema, properties={"format-version": str(first)}, **options)
    for number in range(files):
        table.append(rows(25 * number))
    if version == 3:
        upgraded(catalog)
    return opened(catalog)


def upgraded(catalog) -> None:
    """Upgrade a table to version 3 and give all rows ids, by a snapshot that changes nothing."""
    writer = Writer(catalog, format_version=3)
    for manifest in list(writer.manifests):
        writer.manifests.remove(manifest)
        writer.manifests.append(manifest)
        writer.add_rows(manifest.added_rows_count)
    writer.publish()


def read(table: IcebergTable) -> list[int]:
    """Return the values of `x`, as the scan says that they are read."""
    snapshot = table.snapshot()
    scan = table.scan(snapshot, np.arange(len(snapshot.files)))
    return sorted(x for source in scan.sources for x in rows_of(source, scan.reading)["x"].to_pylist())


def summary(catalog) -> dict[str, str]:
    return dict(catalog.load_table("db.t").current_snapshot().summary.additional_properties)


def paths(snapshot, files) -> set[str]:
    return {snapshot.files.paths[file].as_py() for file in files}


PARTITIONED = Schema(
    NestedField(1, "x", LongType(), required=False),
    NestedField(2, "y", DoubleType(), required=False),
    NestedField(3, "s", StringType(), required=False),
    NestedField(4, "ts", TimestampType(), required=False),
)


def partitioned_rows(start: int) -> pa.Table:
    numbers = range(start, start + 40)
    names = ["a", None, "", "x/y", "p%q", "é=+"]
    days = [None if n % 5 == 0 else datetime(2026, 1, 1 + n % 2, 3) for n in numbers]
    return pa.table(
        {
            "x": pa.array([None if n % 11 == 0 else n for n in numbers], pa.int64()),
            "y": pa.array([float("nan") if n % 3 == 0 else n / 2 for n in numbers]),
            "s": pa.array([names[n % 6] for n in numbers], pa.large_string()),
            "ts": pa.array(days, pa.timestamp("us")),
        }
    )
