"""The official engines and others read every newer encoding of every type that may have it, with and without nulls."""

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from interop.clustering import clustered, rows_of
from zonal.tables.iceberg.table import IcebergTable
from zonal.tables.registry import table_of

pytestmark = pytest.mark.interop

NEWER = {"DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
TYPES = {
    "i8": "cast(id % 100 AS tinyint)",
    "i16": "cast(id * 7 % 30011 AS smallint)",
    "i32": "cast(id * 2654435 % 2000003 AS int)",
    "i64": "id * 1000003 - 5000000000",
    "day": "date_add(DATE '1999-01-01', cast(id * 13 % 9001 AS int))",
    "ts": "timestamp_micros(id * 86400000321)",
    "local": "cast(timestamp_micros(id * 3600000007) AS timestamp_ntz)",
    "small": "cast(id * 17 % 99991 / 100 AS decimal(9, 2))",
    "large": "cast(id * 17000003 / 10000 AS decimal(18, 4))",
    "text": "concat('https://example.org/items/', id * 7919 % 100003)",
    "word": "sha2(cast(id AS string), 256)",
    "bytes": "unhex(substr(sha2(cast(id + 1 AS string), 256), 1, 1 + cast(id % 20 AS int) * 2 + 1))",
    "flag": "id % 500 < 3",
}
COLUMNS = ", ".join(f"{expression} AS {name}" for name, expression in TYPES.items())
NULLS = ", ".join(f"IF(id % 7 = 3, null, {expression}) AS {name}_n" for name, expression in TYPES.items())
ROWS = f"SELECT id, {COLUMNS}, {NULLS} FROM range(0, 20000, 1, 3)"


def encodings_of(paths):
    found = set()
    for path in paths:
        footer = pq.read_metadata(path)
        for group in map(footer.row_group, range(footer.num_row_groups)):
            found |= {each for at in range(group.num_columns) for each in group.column(at).encodings}
    return found


def test_delta(spark, tmp_path):
    name, path = f"delta.`{tmp_path}/t`", f"{tmp_path}/t"
    spark.sql(f"CREATE TABLE {name} USING delta AS {ROWS}")
    before = rows_of(spark, f"SELECT * FROM {name}")
    clustered(path, by=("i64", "day"), target_file_size="200KB")
    files = table_of(path).snapshot().files.paths.to_pylist()
    assert encodings_of(files) >= NEWER
    assert rows_of(spark, f"SELECT * FROM {name}") == before
    some = "i64 BETWEEN 0 AND 5000000000 AND text_n > 'https://example.org/items/5'"
    expected = spark.sql(f"SELECT count(*), sum(i32), sum(large_n) FROM ({ROWS}) WHERE {some}").first()
    assert spark.sql(f"SELECT count(*), sum(i32), sum(large_n) FROM {name} WHERE {some}").first() == expected
    asked = f"SELECT count(*), sum(i32), sum(large_n) FROM read_parquet({files!r}) WHERE {some}"
    assert duckdb.sql(asked).fetchall() == [tuple(expected)]
    table = DeltaTable(path)
    assert table.to_pyarrow_table().num_rows == before.total()
    polars = pl.read_parquet(files, hive_partitioning=False)
    kept = polars.filter(
        (pl.col("i64").is_between(0, 5_000_000_000)) & (pl.col("text_n") > "https://example.org/items/5")
    )
    assert (kept.height, kept["i32"].cast(pl.Int64).sum()) == tuple(expected)[:2]


def test_iceberg_with_newer_encodings_and_by_default_without(spark, folder_of_engines):
    name = "ice.db.newer_encodings"
    spark.sql(f"CREATE TABLE {name} USING iceberg AS {ROWS}")
    before = rows_of(spark, f"SELECT * FROM {name}")
    uri, warehouse = f"sqlite:///{folder_of_engines / 'catalog.db'}", f"file://{folder_of_engines / 'warehouse'}"
    properties = {"type": "sql", "uri": uri, "warehouse": warehouse}
    table = IcebergTable.from_catalog("db.newer_encodings", catalog="ice", catalog_properties=properties)
    for encodings, newer in ((None, False), ("modern", True)):
        clustered(table, by=("i64", "day"), target_file_size="200KB", encodings=encodings, full=True)
        table = table.newest()
        files = [path.removeprefix("file://") for path in table.snapshot().files.paths.to_pylist()]
        assert bool(NEWER & encodings_of(files)) == newer
        spark.sql(f"REFRESH TABLE {name}")
        assert rows_of(spark, f"SELECT * FROM {name}") == before
