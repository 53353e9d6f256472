"""Official engines of every Spark that they are fetched for: they read what zonal wrote there, and go on writing."""

import pytest

import zonal
from interop.clustering import FILE_BYTES, rows_of

pytestmark = pytest.mark.interop
ROWS = "SELECT id, id * 7919 % 4001 AS x, cast(id * 104729 % 3989 AS double) AS y, cast(id % 97 AS string) AS s"
SMALL_FILES = zonal.NewFiles(target_file_size=FILE_BYTES // 2, verify=True)


def judged(spark, name, table, compact, **options):
    """Let zonal cluster a table with deleted rows, and the engine judge it, delete from it and compact it."""
    for part in range(3):
        spark.sql(f"INSERT INTO {name} {ROWS} FROM range({1000 * part}, {1000 * part + 1000}, 1, 1)")
    spark.sql(f"DELETE FROM {name} WHERE id % 7 = 3")
    everything = f"SELECT * FROM {name}"
    before = rows_of(spark, everything)
    done = zonal.cluster(table, by=["x", "y"], files=SMALL_FILES, spark=spark, **options)
    assert len(done.run.versions) == 1
    assert done.change.added_files > 3, "conditions can skip some"
    assert done.change.rows == before.total()
    assert rows_of(spark, everything) == before
    assert rows_of(spark, f"{everything} WHERE x < 300") == {row: many for row, many in before.items() if _x(row) < 300}
    spark.sql(f"DELETE FROM {name} WHERE id % 11 = 5")
    left = rows_of(spark, everything)
    assert left.total() < before.total()
    assert not left - before
    assert zonal.read(spark, table, **options).count() == left.total()
    spark.sql(compact)
    assert rows_of(spark, everything) == left
    zonal.cluster(table, scope=zonal.Scope(full=True), files=SMALL_FILES, spark=spark, **options)
    assert rows_of(spark, everything) == left


def _x(row):
    return int(row.partition("x=")[2].partition(",")[0])


def test_delta_with_deletion_vectors(spark, folder_of_engines):
    path = folder_of_engines / "each_spark"
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (id bigint, x bigint, y double, s string) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    judged(spark, name, f"delta:{path}", f"OPTIMIZE {name}")
    assert '"deletionVector"' in "".join(log.read_text() for log in (path / "_delta_log").glob("*.json"))


def test_iceberg_with_position_deletes(spark, folder_of_engines):
    spark.sql(
        "CREATE TABLE ice.db.each_spark (id bigint, x bigint, y double, s string) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    uri, warehouse = f"sqlite:///{folder_of_engines / 'catalog.db'}", f"file://{folder_of_engines / 'warehouse'}"
    options = {"catalog": "ice", "storage_options": {"type": "sql", "uri": uri, "warehouse": warehouse}}
    compact = "CALL ice.system.rewrite_data_files(table => 'db.each_spark', options => map('rewrite-all', 'true'))"
    judged(spark, "ice.db.each_spark", "iceberg:db.each_spark", compact, **options)
    deleted = spark.sql("SELECT operation FROM ice.db.each_spark.snapshots WHERE summary['added-delete-files'] > 0")
    assert deleted.count() == 2, "by positions, before zonal's commit and after it"
